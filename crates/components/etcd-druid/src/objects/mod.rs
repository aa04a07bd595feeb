//! The objects of an Etcd: a file for each, every builder pure.
//!
//! | file | content |
//! |---|---|
//! | `stateful_set` | the StatefulSet |
//! | `etcd` | the container of etcd |
//! | `backup_restore` | the containers of etcd-backup-restore |
//! | `copy_job` | the Job that copies backups |
//! | `services` | the two Services |
//! | `volumes` | the volumes and the mount paths |
//! | `security` | the rights of the pods; `service_account`: the identity |

pub mod backup_restore;
pub mod copy_job;
pub mod etcd;
pub mod security;
pub mod service_account;
pub mod services;
pub mod stateful_set;
pub mod volumes;

#[cfg(test)]
pub(crate) mod owner_tests;
#[cfg(test)]
pub(crate) mod tests;

use k8s_openapi::{
    api::core::v1::ResourceRequirements,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};

use crate::{names, wanted::ValidatedEtcd};

/// The default requests of a container: enough for a small shoot, so that a node is not overcommitted. There
/// is no limit: an out-of-memory kill of etcd costs the shoot its API.
fn requests(cpu: &str, memory: &str) -> ResourceRequirements {
    let of = |name: &str, amount: &str| (name.to_owned(), Quantity(amount.to_owned()));
    ResourceRequirements {
        requests: Some([of("cpu", cpu), of("memory", memory)].into()),
        ..ResourceRequirements::default()
    }
}

/// Metadata of an object that belongs to the Etcd and is deleted with it.
fn meta(wanted: &ValidatedEtcd, name: &str, component: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(wanted.namespace.clone()),
        labels: Some(names::labels(&wanted.name, component)),
        owner_references: Some(vec![wanted.owner.clone()]),
        ..ObjectMeta::default()
    }
}

/// Metadata of a pod: the user's labels and annotations, and the labels for selectors, which take precedence.
fn pod_meta(wanted: &ValidatedEtcd, component: &str) -> ObjectMeta {
    let mut labels = wanted.pod_labels.clone();
    labels.extend(names::labels(&wanted.name, component));
    ObjectMeta {
        labels: Some(labels),
        annotations: Some(wanted.pod_annotations.clone()).filter(|a| !a.is_empty()),
        ..ObjectMeta::default()
    }
}
