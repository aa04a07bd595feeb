//! The namespace of a seed in the garden, for objects of its gardenlet.

use std::collections::BTreeMap;

use api::{
    constants::{ROLE, seed_name_label},
    gardencore::Seed,
};
use k8s_openapi::{
    api::core::v1::Namespace,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{Resource, ResourceExt};
use placement::credentials::seed_namespace;

/// `seed-<name>`, with the credentials of the seed. Deleted together with the Seed.
#[must_use]
pub fn desired(seed: &Seed) -> Namespace {
    let owner = OwnerReference {
        api_version: Seed::api_version(&()).into_owned(),
        kind: Seed::kind(&()).into_owned(),
        name: seed.name_any(),
        uid: seed.uid().unwrap_or_default(),
        ..OwnerReference::default()
    };
    Namespace {
        metadata: ObjectMeta {
            name: Some(seed_namespace(&seed.name_any())),
            labels: Some(BTreeMap::from([
                (ROLE.to_owned(), "seed".to_owned()),
                (seed_name_label(&seed.name_any()), "true".to_owned()),
            ])),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}
