//! The objects that a ManagedResource of class `seed` may write.
//!
//! The rights of this process can amount to the rights of the seed's administrator. Only ManagedResources in
//! the namespace `garden` may use these rights. Other writers create ManagedResources too, in the namespaces
//! of shoots. Such a ManagedResource may write to the seed only in that namespace, and may not grant rights.

use api::constants::GARDEN_NAMESPACE;

use super::{Key, Owner};

/// The API group of roles and bindings.
const RIGHTS: &str = "rbac.authorization.k8s.io";

impl Owner {
    /// Checks whether this ManagedResource may write the object. The namespace is that of the cluster's
    /// rules.
    ///
    /// # Errors
    /// The reason of the refusal.
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
