//! How far a ManagedResource of class `seed` reaches.
//!
//! This process may hold rights that make whoever uses them the administrator of the seed. They are for the
//! landscape, which writes into the namespace `garden`. Others write ManagedResources too, in the namespaces
//! of shoots: what they say of the seed stays in that namespace, and gives nobody a right.

use api::constants::GARDEN_NAMESPACE;

use super::{Key, Owner};

/// The group of roles and bindings.
const RIGHTS: &str = "rbac.authorization.k8s.io";

impl Owner {
    /// Whether its objects may be there. The namespace is that of the cluster's rules.
    ///
    /// # Errors
    /// Why not.
    pub fn reaches(&self, key: &Key) -> Result<(), String> {
        if !self.in_seed || self.namespace == GARDEN_NAMESPACE {
            return Ok(());
        }
        let stays = key.namespace.as_ref() == Some(&self.namespace) && key.group != RIGHTS;
        if stays {
            return Ok(());
        }
        Err(format!(
            "{key}: a ManagedResource of class seed in namespace {} holds only objects of that namespace, and no roles and bindings; those of the seed itself are in namespace {GARDEN_NAMESPACE}",
            self.namespace
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_of_garden_nothing_of_the_seed_is_reached() {
        let owner = |in_seed, namespace: &str| Owner {
            in_seed,
            namespace: namespace.to_owned(),
            name: "m".to_owned(),
        };
        let (garden, tenant, shoot) = (
            owner(true, "garden"),
            owner(true, "shoot--a--b"),
            owner(false, "shoot--a--b"),
        );
        let rights = "rbac.authorization.k8s.io/v1";
        for (key, own) in [
            (Key::new("v1", "ConfigMap", Some("shoot--a--b"), "o"), true),
            (Key::new("v1", "ConfigMap", Some("kube-system"), "o"), false),
            (Key::new("v1", "Namespace", None, "shoot--a--b"), false),
            (Key::new(rights, "ClusterRoleBinding", None, "o"), false),
            (Key::new(rights, "RoleBinding", Some("shoot--a--b"), "o"), false),
            (Key::new("v1", "Secret", Some("garden"), "o"), false),
        ] {
            assert_eq!(tenant.reaches(&key).is_ok(), own, "{key}");
            assert!(
                garden.reaches(&key).is_ok() && shoot.reaches(&key).is_ok(),
                "{key}"
            );
        }
    }
}
