//! A ManagedResource from creation to deletion.

use anyhow::{Result, ensure};
use api::meta::ConditionStatus;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Namespace},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt, api::DeleteParams};
use runtime::client::wait;
use serde_json::{Value, json};

use crate::world::{SOON, World, change, checksum, map, names, uid, until};

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

pub fn deployment(namespace: &str, annotations: &Value, cpu: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace, "annotations": annotations},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}]}}}})
}

fn packed(objects: &[Value]) -> Vec<u8> {
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    let (text, mut packed) = (text.join("\n---\n"), Vec::new());
    brotli::BrotliCompress(
        &mut text.as_bytes(),
        &mut packed,
        &brotli::enc::BrotliEncoderParams::default(),
    )
    .unwrap();
    packed
}

pub async fn in_the_shoot(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--life").await?;
    let inside = "inside";
    let ground = [
        // Dependent objects come first in this list, and must be created last.
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "thing", "namespace": inside}}),
        map(inside, "map", "1", &[]),
        definition(),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inside}}),
        deployment(inside, &json!({}), "1m"),
    ];
    place
        .secret("core", &[("data.yaml.br", &packed(&ground))])
        .await?;
    place
        .naming("core", "core", json!({"injectLabels": {"injected": "yes"}}))
        .await?;
    let resource = place.applied("core", None).await?;
    ensure!(
        names(&resource) == ["map", inside, "things.example.org", "web", "thing"],
        "{:?}",
        names(&resource)
    );
    let maps: Api<ConfigMap> = Api::namespaced(world.shoot.clone(), inside);
    let written = maps.get("map").await?;
    ensure!(
        written.labels()["resources.gardener.cloud/managed-by"] == "gardener",
        "{written:?}"
    );
    ensure!(written.labels()["injected"] == "yes", "{written:?}");
    ensure!(
        written.annotations()["resources.gardener.cloud/origin"] == "shoot--dev--life/core",
        "{written:?}"
    );
    place
        .tells(
            "core",
            "ResourcesHealthy",
            ConditionStatus::True,
            "All resources are healthy.",
        )
        .await?;
    place
        .tells(
            "core",
            "ResourcesProgressing",
            ConditionStatus::False,
            "All resources have been fully rolled out.",
        )
        .await?;

    comes_back(&maps).await?;
    let deployments: Api<Deployment> = Api::namespaced(world.shoot.clone(), inside);
    // An object that is no longer wanted is deleted; the remaining objects stay unchanged.
    let before = uid(&deployments, "web").await?;
    let resource = place.resources().get("core").await?;
    place
        .secret(
            "core",
            &[("data.yaml.br", &packed(&[&ground[..1], &ground[2..]].concat()))],
        )
        .await?;
    let resource = place.applied("core", checksum(&resource)).await?;
    ensure!(
        names(&resource) == [inside, "things.example.org", "web", "thing"],
        "{:?}",
        names(&resource)
    );
    ensure!(maps.get_opt("map").await?.is_none());
    ensure!(uid(&deployments, "web").await? == before);
    place.delete("core").await?;
    place.gone("core").await?;
    ensure!(deployments.get_opt("web").await?.is_none());
    let definitions: Api<CustomResourceDefinition> = Api::all(world.shoot.clone());
    ensure!(definitions.get_opt("things.example.org").await?.is_none());
    ensure!(
        Api::<Namespace>::all(world.shoot.clone())
            .get_opt(inside)
            .await?
            .is_none()
    );
    Ok(())
}

/// The controller reverts changes and deletions by other writers.
async fn comes_back(maps: &Api<ConfigMap>) -> Result<()> {
    // A field of another writer stays.
    change(maps, "map", json!({"data": {"other": "field"}})).await?;
    change(maps, "map", json!({"data": {"k": "drift"}})).await?;
    until(maps, "map", "1 again", |map| {
        let data = map.data.as_ref().unwrap();
        data["k"] == "1" && data["other"] == "field"
    })
    .await?;
    change(
        maps,
        "map",
        json!({"metadata": {"labels": {"resources.gardener.cloud/managed-by": null}}}),
    )
    .await?;
    until(maps, "map", "the label again", |map| {
        map.labels().contains_key("resources.gardener.cloud/managed-by")
    })
    .await?;
    let before = uid(maps, "map").await?;
    maps.delete("map", &DeleteParams::default()).await?;
    until(maps, "map", "another one", |map| map.uid().unwrap() != before).await?;
    Ok(())
}

/// Class `seed` writes into the seed and needs no shoot; another class belongs to another controller.
pub async fn in_the_seed(world: &World) -> Result<()> {
    let place = world.namespace("garden-objects").await?;
    place
        .resource(
            "others",
            json!({"class": "other"}),
            &[map(place.name, "others", "1", &[])],
        )
        .await?;
    let objects = [
        map(place.name, "own", "1", &[]),
        map(place.name, "second", "1", &[]),
    ];
    place
        .resource(
            "own",
            json!({"class": "seed", "forceOverwriteLabels": true}),
            &objects,
        )
        .await?;
    place.applied("own", None).await?;
    let maps: Api<ConfigMap> = place.in_seed();
    let written = maps.get("own").await?;
    ensure!(
        written.annotations()["resources.gardener.cloud/origin"] == "seed:garden-objects/own",
        "{written:?}"
    );
    change(
        &maps,
        "own",
        json!({"metadata": {"labels": {"foreign": "label"}}}),
    )
    .await?;
    until(&maps, "own", "no label of others", |map| {
        !map.labels().contains_key("foreign")
    })
    .await?;

    let others = place.resources().get("others").await?;
    ensure!(
        others.status.is_none() && others.finalizers().is_empty(),
        "{others:?}"
    );
    ensure!(maps.get_opt("others").await?.is_none());
    // Objects beyond the rights of the chart are reported; only the namespace `garden` could have such
    // rights.
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "more"}});
    let elsewhere = map("default", "elsewhere", "1", &[]);
    let garden = world.namespace("garden").await?;
    for (place, object, words) in [
        (&garden, &role, "ClusterRole more: the API server answers 403"),
        (
            &place,
            &role,
            "ClusterRole more: a ManagedResource of class seed in namespace garden-objects",
        ),
        (
            &place,
            &elsewhere,
            "ConfigMap default/elsewhere: a ManagedResource of class seed",
        ),
    ] {
        let written = std::slice::from_ref(object);
        place.resource("more", json!({"class": "seed"}), written).await?;
        place
            .tells("more", "ResourcesApplied", ConditionStatus::False, words)
            .await?;
    }
    place.delete("more").await?;
    place.gone("more").await?;
    place.delete("own").await?;
    place.gone("own").await?;
    testkit::measured("the object is gone", SOON, |bound| {
        wait::until_gone(&maps, "own", bound)
    })
    .await?;
    Ok(())
}
