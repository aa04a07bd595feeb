//! The role of this seed for the shoot of an object (RX-41, R17-60), read from the Cluster in the shoot's
//! namespace. The gardenlet writes the Cluster first in every flow and deletes the Cluster last.
//!
//! An actuator needs the permit of the process (the lock) *and* this role. Where the seed checks owners, an
//! actuator also needs the permit of the shoot's owner ([`crate::owner`]). Through these checks, a seed that
//! is cut off from the garden learns of the loss. The role is checked before an operation begins, and
//! periodically during the operation. When a different seed acts for the shoot, the work is dropped and no
//! further request leaves. `migrate` needs only the lock: `migrate` cleans Kubernetes objects of this seed,
//! and must run exactly when the shoot was handed over (RX-42).

use std::fmt;

use api::extensions::{Cluster as ClusterObject, ExtensionClass, ExtensionObject};
use kube::ResourceExt;
use mutation::Mutation;
use serde_json::Value;

use crate::{Operation, kind};

/// The seed that acts on the shoot of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The object belongs to no shoot: a BackupBucket, a BackupEntry, or an object for the seed.
    Shootless,
    /// This seed acts.
    Acting,
    /// A different seed acts.
    Another {
        /// The name of that seed.
        seed: String,
    },
    /// The Cluster is missing or names no seed.
    Unknown,
}

impl Role {
    /// The role for an object with the present Cluster of the object's namespace.
    #[must_use]
    pub fn for_object<K: ExtensionObject>(object: &K, cluster: Option<&ClusterObject>) -> Self {
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

/// `status.seedName` counts. Without `status.seedName` the shoot is new, and `spec.seedName` names the acting
/// seed.
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

/// The name of a permit that follows from a role.
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
                Role::for_object(&record(None), Some(&cluster(status, spec))),
                role,
                "{status:?} {spec:?}"
            );
        }
        assert_eq!(Role::for_object(&record(None), None), Role::Unknown);
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
        assert_eq!(Role::for_object(&entry, None), Role::Shootless);
        assert_eq!(Role::for_object(&record(Some("seed")), None), Role::Shootless);
    }
}
