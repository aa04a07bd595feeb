//! Objects that cannot be applied are reported with fault and place, and without the content of Secrets.

use anyhow::{Result, ensure};
use api::meta::ConditionStatus;
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
use kube::api::ListParams;
use serde_json::json;
use testkit::eventually;

use crate::world::{SOON, World, condition, map, names};

pub async fn wrong_manifests(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--wrong").await?;
    place
        .resource(
            "core",
            json!({}),
            &[map(place.name, "a", "1", &[]), map(place.name, "b", "1", &[])],
        )
        .await?;
    place.applied("core", None).await?;
    place
        .secret("core", &[("objects.yaml", b"a: 1\nb: [s3cret")])
        .await?;
    let told = "Secret core, key objects.yaml: is not valid YAML (line 2";
    let resource = place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    ensure!(condition(&resource, "ResourcesApplied").unwrap().reason == "DecodingFailed");
    ensure!(names(&resource) == ["a", "b"], "nothing is pruned for that");
    ensure!(place.in_shoot::<ConfigMap>().get_opt("b").await?.is_some());

    let invalid = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": place.name},
        "type": "kubernetes.io/tls", "stringData": {"tls.crt": "s3cret"}});
    let unserved = json!({"apiVersion": "example.org/v7", "kind": "Nothing", "metadata": {"name": "x"}});
    place
        .manifests("core", &[invalid, unserved, map(place.name, "a", "2", &[])])
        .await?;
    // An invalid object does not block the remaining objects.
    place.says("a", "2").await?;
    let told = "Secret shoot--dev--wrong/s: it is refused as invalid: data[tls.key] is missing";
    let resource = place
        .tells("core", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    let message = &condition(&resource, "ResourcesApplied").unwrap().message;
    ensure!(
        message.contains("Nothing x is of a kind that is not served yet (example.org/v7)"),
        "{message}"
    );
    place.secret("core", &[]).await?;
    place.naming("core", "missing", json!({})).await?;
    place
        .tells(
            "core",
            "ResourcesApplied",
            ConditionStatus::False,
            "the Secret missing of spec.secretRefs is not there",
        )
        .await?;

    let seed = place.in_seed::<Event>();
    let events = eventually("an Event", SOON, || async {
        let events = seed.list(&ListParams::default()).await?;
        ensure!(!events.items.is_empty(), "none");
        anyhow::Ok(events)
    })
    .await?;
    let all = serde_json::to_string(&(resource, &events.items))?;
    ensure!(!all.contains("s3cret"), "{all}");
    Ok(())
}

/// A single ManagedResource manages an object. After the first ManagedResource releases the object, the
/// second gets the object.
pub async fn another_s_object(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--taken").await?;
    place
        .resource("first", json!({}), &[map(place.name, "map", "1", &[])])
        .await?;
    place.applied("first", None).await?;
    place
        .resource("second", json!({}), &[map(place.name, "map", "2", &[])])
        .await?;
    let told = "ConfigMap shoot--dev--taken/map is kept by ManagedResource shoot--dev--taken/first: take it out of one of the two";
    place
        .tells("second", "ResourcesApplied", ConditionStatus::False, told)
        .await?;
    place.says("map", "1").await?;
    place.delete("first").await?;
    place.gone("first").await?;
    place.says("map", "2").await?;
    place.applied("second", None).await?;
    Ok(())
}
