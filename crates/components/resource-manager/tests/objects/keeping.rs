//! No object in a shoot is deleted while `keepObjects` is set (RX-02, RX-23).

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::world::{World, change, checksum, map, names, until};

pub async fn objects_are_kept(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--keep").await?;
    let objects = [map(place.name, "a", "1", &[]), map(place.name, "b", "1", &[])];
    place
        .resource("core", json!({"keepObjects": true}), &objects)
        .await?;
    let before = place.applied("core", None).await?;
    // Also after the loss of a manifest: the object is deleted when `keepObjects` is removed.
    place.manifests("core", &objects[..1]).await?;
    let resource = place.applied("core", checksum(&before)).await?;
    ensure!(names(&resource) == ["a", "b"], "{:?}", names(&resource));
    let maps: Api<ConfigMap> = place.in_shoot();
    ensure!(maps.get("b").await?.metadata.deletion_timestamp.is_none());
    place.delete("core").await?;
    place.gone("core").await?;
    for name in ["a", "b"] {
        ensure!(
            maps.get(name).await?.metadata.deletion_timestamp.is_none(),
            "{name}"
        );
    }
    // The next ManagedResource, as after a move, takes over the wanted objects.
    place.resource("next", json!({}), &objects[..1]).await?;
    let taken = until(&maps, "a", "it is the next one's", |map| {
        map.annotations()["resources.gardener.cloud/origin"] == "shoot--dev--keep/next"
    });
    taken.await?;
    Ok(())
}

/// A deletion has begun and waits for an object; then a user sets `keepObjects`.
pub async fn objects_are_kept_half_way(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--half").await?;
    let mut held = map(place.name, "held", "1", &[]);
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    let carried = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "carried"}});
    place.resource("core", json!({}), &[held, carried]).await?;
    place.applied("core", None).await?;
    place.delete("core").await?;
    let waits = "ConfigMap shoot--dev--half/held: it is being deleted and waits for example.org/hold";
    place
        .tells(
            "core",
            "ResourcesApplied",
            api::meta::ConditionStatus::Progressing,
            waits,
        )
        .await?;
    change(&place.resources(), "core", json!({"spec": {"keepObjects": true}})).await?;
    place.gone("core").await?;
    let namespaces: Api<Namespace> = Api::all(world.shoot.clone());
    ensure!(
        namespaces
            .get("carried")
            .await?
            .metadata
            .deletion_timestamp
            .is_none()
    );
    Ok(())
}
