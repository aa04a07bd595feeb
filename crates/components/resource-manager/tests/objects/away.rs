//! Unreachable shoots.

use anyhow::{Result, ensure};
use api::meta::ConditionStatus;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, api::DeleteParams};
use resource_manager::names::KUBECONFIG_SECRET;
use serde_json::json;

use crate::world::{World, condition, map};

/// The shoot's API does not answer: the condition reports that, and the ManagedResource can be deleted with
/// the namespace.
pub async fn a_shoot_that_is_away(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--away").await?;
    place
        .resource("core", json!({}), &[map(place.name, "map", "1", &[])])
        .await?;
    place.applied("core", None).await?;
    let mut nowhere: serde_json::Value = serde_json::from_slice(world.way())?;
    nowhere["clusters"][0]["cluster"]["server"] =
        json!(format!("https://127.0.0.1:{}", testkit::free_port()?));
    place.give_way(&serde_json::to_vec(&nowhere)?).await?;
    let told = "the API server of the shoot does not answer: ";
    let resource = place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    let healthy = condition(&resource, "ResourcesHealthy").unwrap();
    ensure!(
        healthy.status == ConditionStatus::Unknown && healthy.reason == "TargetUnavailable",
        "{healthy:?}"
    );
    place.delete("core").await?;
    let told = "It ends when that is over, when spec.keepObjects is true, or with its namespace.";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::Progressing, told)
        .await?;
    Api::<Namespace>::all(world.seed.clone())
        .delete(place.name, &DeleteParams::default())
        .await?;
    place.gone("core").await
}

/// The kubeconfig Secret does not exist yet, or was deleted.
pub async fn a_shoot_without_a_way(world: &World) -> Result<()> {
    let place = world.namespace("shoot--dev--new").await?;
    place
        .resource("core", json!({}), &[map(place.name, "map", "1", &[])])
        .await?;
    let told = "there is no way into the shoot: the Secret resource-manager of this namespace is awaited";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    place.give_way(b"users: [s3cret").await?;
    let told =
        "there is no way into the shoot: key kubeconfig of the Secret resource-manager is no kubeconfig";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    place.give_way(world.way()).await?;
    place.applied("core", None).await?;
    place
        .in_seed::<Secret>()
        .delete(KUBECONFIG_SECRET, &DeleteParams::default())
        .await?;
    let told = "there is no way into the shoot: the Secret resource-manager of this namespace is awaited";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    place.give_way(world.way()).await?;
    place.applied("core", None).await?;
    Ok(())
}
