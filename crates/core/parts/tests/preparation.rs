//! The namespace of a preparation, on a real API server: the mark comes with the namespace alone, and goes
//! before the first step of an owner.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use anyhow::Result;
use api::constants::PREPARED_IN_EPOCH;
use k8s_openapi::api::core::v1;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use parts::{Facts, Namespace, Operation, PreparationFacts, Settings, prepared_in};
use serde_json::json;

use parts_fixture::{NAMESPACE, World};

/// The facts of a preparation under a grant of this epoch.
fn preparation(facts: &Facts, epoch: i64) -> PreparationFacts {
    PreparationFacts {
        residency: facts.residency.clone(),
        shoot: Arc::clone(&facts.shoot),
        project: facts.project.clone(),
        seed_object: facts.seed_object.clone(),
        epoch,
    }
}

#[tokio::test]
async fn no_mark_outlasts_the_first_step_of_an_owner() -> Result<()> {
    let world = World::start("preparation").await?;
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    let namespaces: Api<v1::Namespace> = Api::all(world.client());
    let prepared = preparation(&facts, 3);
    for _ in 0..2 {
        Namespace::prepare(&prepared).await?;
    }
    let found = namespaces.get(NAMESPACE).await?;
    assert_eq!(prepared_in(&found), Some(3));
    let why = Namespace::prepare(&preparation(&facts, 4)).await.unwrap_err();
    let why = why.to_string();
    assert!(
        why.contains("was prepared under a grant of a different epoch"),
        "{why}"
    );

    Namespace::deploy(&facts).await?;
    let owned = namespaces.get(NAMESPACE).await?;
    assert_eq!((prepared_in(&owned), owned.uid()), (None, found.uid()));
    // A removal that was decided before the owner began comes too late.
    let is_removed = Namespace::remove_prepared(&facts.residency, &found).await?;
    assert!(!is_removed, "the namespace of the owner is removed");
    let kept = namespaces.get(NAMESPACE).await?;
    assert_eq!(kept.metadata.deletion_timestamp, None);
    // No later preparation marks the namespace.
    let why = Namespace::prepare(&prepared).await.unwrap_err().to_string();
    assert!(why.contains("exists in this seed and was not prepared"), "{why}");
    assert_eq!(prepared_in(&namespaces.get(NAMESPACE).await?), None);
    let why = Namespace::remove_prepared(&facts.residency, &owned).await;
    assert!(why.unwrap_err().to_string().contains("was not prepared"));
    Box::pin(a_mark_of_a_user_removes_no_etcd(&world, &facts)).await
}

/// A user with the right to mark has marked the namespace of a control plane.
async fn a_mark_of_a_user_removes_no_etcd(world: &World, facts: &Facts) -> Result<()> {
    let namespaces: Api<v1::Namespace> = Api::all(world.client());
    let etcd =
        json!({"spec": {"labels": {}, "etcd": {}, "replicas": 1, "backup": {"store": {"prefix": "p"}}}});
    let druid = "druid.gardener.cloud/v1alpha1";
    world
        .apply(druid, "Etcd", Some(NAMESPACE), "etcd-main", etcd)
        .await?;
    let mark = json!({"metadata": {"annotations": {PREPARED_IN_EPOCH: "3"}}});
    let params = PatchParams::default();
    let marked = namespaces.patch(NAMESPACE, &params, &Patch::Merge(mark)).await?;
    let why = Namespace::remove_prepared(&facts.residency, &marked).await;
    let why = why.unwrap_err().to_string();
    assert!(why.contains("and an Etcd: no object is changed"), "{why}");
    let kept = namespaces.get(NAMESPACE).await?;
    assert_eq!(kept.metadata.deletion_timestamp, None);
    Ok(())
}
