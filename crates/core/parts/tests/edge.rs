//! The entries of the edge on a real API server: a shoot never takes the name of a second shoot, and a
//! deletion removes the entries of the deleted shoot only (threats.md 9).

#![allow(clippy::unwrap_used)]

use anyhow::Result;
use api::meta::ErrorCode;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use parts::{Facts, KubeApiserverExposure, Operation, Settings};
use parts_fixture::{PROJECT, World};
use serde_json::json;

const CORE: &str = "core.gardener.cloud/v1beta1";
const LABEL: &str = "gardener.cloud/technical-id";
const VICTIM: &str = "shoot--prod--shop";
/// The user's name of the shoot of the fixture.
const HOST: &str = "api.web.customer.test";

fn edge(world: &World) -> Api<Service> {
    let namespace = Settings::default().exposure_namespace;
    Api::namespaced(world.client(), &namespace)
}

async fn entry_of(world: &World, host: &str) -> Result<Service> {
    let all = edge(world).list(&ListParams::default()).await?;
    let is_of_host = |service: &&Service| {
        service
            .annotations()
            .get("gardener.cloud/host")
            .is_some_and(|of| of == host)
    };
    let mut entries = all.items.iter().filter(is_of_host);
    Ok(entries.next().unwrap().clone())
}

fn owner(entry: &Service) -> &str {
    &entry.labels()[LABEL]
}

/// Gives the entry to a different shoot, as if that shoot had been first.
async fn give_to_victim(world: &World, entry: &Service) -> Result<()> {
    let body = json!({"metadata": {"labels": {LABEL: VICTIM}},
        "spec": {"externalName": format!("kube-apiserver.{VICTIM}.svc.cluster.local")}});
    edge(world)
        .patch(&entry.name_any(), &PatchParams::default(), &Patch::Merge(body))
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_name_of_a_different_shoot_is_refused() -> Result<()> {
    let world = World::start("edge").await?;
    world.apply("v1", "Namespace", None, VICTIM, json!({})).await?;
    let f = named_facts(&world).await?;
    KubeApiserverExposure::deploy(&f).await?;
    let own = entry_of(&world, HOST).await?;
    assert_eq!(owner(&own), f.residency.namespace);
    // A second deployment writes the own entries.
    KubeApiserverExposure::deploy(&f).await?;
    assert_eq!(entry_of(&world, HOST).await?.uid(), own.uid());

    give_to_victim(&world, &own).await?;
    let refused = KubeApiserverExposure::deploy(&f).await.unwrap_err();
    assert_eq!(refused.codes(), [ErrorCode::ErrConfigurationProblem], "{refused}");
    assert!(refused.to_string().contains("to a different shoot"), "{refused}");
    assert!(
        !refused.to_string().contains("shop"),
        "the owner is not disclosed: {refused}"
    );
    let kept = entry_of(&world, HOST).await?;
    assert_eq!(owner(&kept), VICTIM);
    let target = kept.spec.unwrap().external_name.unwrap();
    assert!(target.contains(VICTIM), "{target}");

    // The name in the internal domain belongs to the shoot by its technical id.
    let internal = f.names.internal_api.clone().unwrap();
    give_to_victim(&world, &entry_of(&world, &internal).await?).await?;
    KubeApiserverExposure::deploy(&f).await.unwrap_err();
    assert_eq!(owner(&entry_of(&world, &internal).await?), f.residency.namespace);

    // A refused shoot is deleted like any other shoot, and the entry of the victim stays.
    KubeApiserverExposure::destroy(&f.residency).await?;
    assert_eq!(owner(&entry_of(&world, HOST).await?), VICTIM);
    let left = edge(&world).list(&ListParams::default()).await?.items;
    assert!(left.iter().all(|entry| owner(entry) == VICTIM), "{left:?}");
    Ok(())
}

/// An entry of a shoot without a namespace is a leftover, and would keep the name for ever.
#[tokio::test]
async fn a_leftover_keeps_no_name() -> Result<()> {
    let world = World::start("edge-leftover").await?;
    let mut leftover: Service = serde_json::from_value(json!({
        "metadata": {"name": "x", "labels": {LABEL: VICTIM}},
        "spec": {"type": "ExternalName", "externalName": "kube-apiserver.gone.svc.cluster.local"},
    }))?;
    let f = named_facts(&world).await?;
    KubeApiserverExposure::deploy(&f).await?;
    leftover.metadata.name = Some(entry_of(&world, HOST).await?.name_any());
    let edge = edge(&world);
    edge.delete(&leftover.name_any(), &DeleteParams::default())
        .await?;
    edge.create(&kube::api::PostParams::default(), &leftover).await?;
    let namespaces: Api<Namespace> = Api::all(world.client());
    assert!(namespaces.get_opt(VICTIM).await?.is_none());
    KubeApiserverExposure::deploy(&f).await?;
    assert_eq!(owner(&entry_of(&world, HOST).await?), f.residency.namespace);
    Ok(())
}

/// The facts of the shoot with a name of its own.
async fn named_facts(world: &World) -> Result<Facts> {
    let dns = json!({"spec": {"dns": {"domain": "web.customer.test"}}});
    world
        .any(CORE, "Shoot", Some(PROJECT))
        .patch("web", &PatchParams::default(), &Patch::Merge(dns))
        .await?;
    Box::pin(world.facts(Operation::Reconcile, Settings::default())).await
}
