//! The objects made for an Etcd: one file each, every builder pure.

pub mod backup_restore;
pub mod copy_job;
pub mod etcd;
pub mod security;
pub mod service_account;
pub mod services;
pub mod stateful_set;
pub mod volumes;

#[cfg(test)]
pub(crate) mod tests;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::{names, wanted::Wanted};

/// Metadata of an object that belongs to the Etcd and goes with it.
fn meta(wanted: &Wanted, name: &str, component: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(wanted.namespace.clone()),
        labels: Some(names::labels(&wanted.name, component)),
        owner_references: Some(vec![wanted.owner.clone()]),
        ..ObjectMeta::default()
    }
}

/// Metadata of a pod: the user's labels and annotations, and the labels that selectors go by, which win.
fn pod_meta(wanted: &Wanted, component: &str) -> ObjectMeta {
    let mut labels = wanted.pod_labels.clone();
    labels.extend(names::labels(&wanted.name, component));
    ObjectMeta {
        labels: Some(labels),
        annotations: Some(wanted.pod_annotations.clone()).filter(|a| !a.is_empty()),
        ..ObjectMeta::default()
    }
}
