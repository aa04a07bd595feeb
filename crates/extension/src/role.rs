//! What this seed may do for the shoot of an object (RX-41, R17-60), as the Cluster beside it says: the
//! gardenlet writes the Cluster first in every flow and deletes it last.
//!
//! An actuator's right is that of its process (the lock) *and* this role, and where the seed checks owners
//! that of the shoot's owner besides ([`crate::owner`]): a seed that is cut off from the garden learns of it
//! there. It is asked before an operation begins, and again and again while it lasts: when another seed has
//! the shoot the work is dropped, and no request of it leaves any more. `migrate` needs the lock's only: it
//! cleans Kubernetes objects of this seed, and must be able to run exactly when the shoot was given away
//! (RX-42).

use std::fmt;

use api::extensions::{Cluster as ClusterObject, ExtensionClass, ExtensionObject};
use kube::ResourceExt;
use mutation::Mutation;
use serde_json::Value;

use crate::{Operation, kind};

/// Who acts on the shoot of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The object belongs to no shoot: a bucket, an entry in it, or what the seed itself needs.
    Shootless,
    /// This seed does.
    Acting,
    /// Another one does.
    Another {
        /// Its name.
        seed: String,
    },
    /// There is no Cluster, or it does not say.
    Unknown,
}

impl Role {
    /// The role for an object with the Cluster of its namespace, as they are now.
    #[must_use]
    pub fn of<K: ExtensionObject>(object: &K, cluster: Option<&ClusterObject>) -> Self {
        let class = object.default_spec().class;
        if object.namespace().is_none() || class.is_some_and(|class| class != ExtensionClass::Shoot) {
            return Self::Shootless;
        }
        cluster.map_or(Self::Unknown, by_cluster)
    }

    /// Whether the operation may begin, or go on.
    #[must_use]
    pub fn allows(&self, operation: Operation) -> bool {
        !operation.acts_outside()
            || matches!(self, Self::Shootless | Self::Acting)
            || Mutation::RoleIgnored.is_active()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shootless => f.write_str("it belongs to no shoot"),
            Self::Acting => f.write_str("this seed acts on the shoot"),
            Self::Another { seed } => write!(f, "the seed {seed} acts on the shoot"),
            Self::Unknown => f.write_str("no Cluster says that this seed acts on the shoot"),
        }
    }
}

/// `status.seedName` counts. Before there is one, the shoot is new, and `spec.seedName` says who makes it.
fn by_cluster(cluster: &ClusterObject) -> Role {
    let this = cluster
        .spec
        .seed
        .as_ref()
        .and_then(|seed| text(&seed.0, &["metadata", "name"]));
    let shoot = &cluster.spec.shoot.0;
    let acting = text(shoot, &["status", "seedName"]).or_else(|| text(shoot, &["spec", "seedName"]));
    match (this, acting) {
        (Some(this), Some(acting)) if this == acting => Role::Acting,
        (Some(_), Some(acting)) => Role::Another {
            seed: acting.to_owned(),
        },
        _ => Role::Unknown,
    }
}

fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    found.as_str().filter(|text| !text.is_empty())
}

/// What a right that follows from a role is called.
pub(crate) fn name_of<K: ExtensionObject>(object: &K) -> String {
    let namespace = object.namespace().unwrap_or_default();
    format!(
        "the Cluster {namespace} (for {} {})",
        kind::name::<K>(),
        object.name_any()
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::extensions::{BackupEntry, DNSRecord};
    use serde_json::json;

    use super::*;

    fn cluster(status: Option<&str>, spec: Option<&str>) -> ClusterObject {
        serde_json::from_value(json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": "shoot--a--b"},
            "spec": {"cloudProfile": {}, "seed": {"metadata": {"name": "here"}},
                     "shoot": {"spec": {"seedName": spec}, "status": {"seedName": status}}},
        }))
        .unwrap()
    }

    fn record(class: Option<&str>) -> DNSRecord {
        serde_json::from_value(json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "DNSRecord",
            "metadata": {"name": "owner", "namespace": "shoot--a--b"},
            "spec": {"type": "local", "class": class, "secretRef": {"name": "s"}, "name": "a.b", "recordType": "A", "values": []},
        }))
        .unwrap()
    }

    #[test]
    fn the_recorded_seed_acts_whatever_is_wanted() {
        let elsewhere = Role::Another { seed: "there".into() };
        for (status, spec, role) in [
            (Some("here"), Some("here"), Role::Acting),
            (Some("here"), Some("there"), Role::Acting),
            (Some("there"), Some("here"), elsewhere.clone()),
            (Some("there"), Some("there"), elsewhere.clone()),
            (None, Some("here"), Role::Acting),
            (None, Some("there"), elsewhere),
            (None, None, Role::Unknown),
        ] {
            assert_eq!(
                Role::of(&record(None), Some(&cluster(status, spec))),
                role,
                "{status:?} {spec:?}"
            );
        }
        assert_eq!(Role::of(&record(None), None), Role::Unknown);
    }

    #[test]
    fn who_does_not_act_may_only_migrate() {
        use Operation::{Create, Delete, ForceDelete, Migrate, Reconcile, Restore};
        for role in [Role::Unknown, Role::Another { seed: "there".into() }] {
            assert!(role.allows(Migrate));
            for operation in [Create, Delete, ForceDelete, Reconcile, Restore] {
                assert!(!role.allows(operation), "{role:?} {operation:?}");
            }
        }
        assert!(Role::Acting.allows(Delete) && Role::Shootless.allows(Delete));
    }

    #[test]
    fn a_role_that_is_ignored_is_noticed() {
        Mutation::RoleIgnored.assert_killed_by(who_does_not_act_may_only_migrate, "Unknown Create");
    }

    #[test]
    fn what_belongs_to_no_shoot_needs_no_cluster() {
        let entry: BackupEntry = serde_json::from_value(json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "BackupEntry", "metadata": {"name": "shoot--a--b--uid"},
            "spec": {"type": "local", "bucketName": "b", "region": "r", "secretRef": {"name": "s"}},
        }))
        .unwrap();
        assert_eq!(Role::of(&entry, None), Role::Shootless);
        assert_eq!(Role::of(&record(Some("seed")), None), Role::Shootless);
    }
}
