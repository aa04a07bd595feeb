//! Each annotation of api.md 5.2, on objects and on ManagedResources.

use anyhow::{Result, ensure};
use api::{meta::ConditionStatus, resources::ManagedResource};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret, Service},
};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::{
    life::deployment,
    world::{World, change, checksum, is, map, names, uid, until, value_of},
};

fn balancer(namespace: &str, annotations: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "lb", "namespace": namespace, "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}})
}

fn objects(
    namespace: &str,
    value: &str,
    cpu: &str,
    released: &[(&str, &str)],
    unjudged: &Value,
) -> [Value; 6] {
    let preserving = json!({"resources.gardener.cloud/preserve-replicas": "true", "resources.gardener.cloud/preserve-resources": "true"});

    let mut remade = map(
        namespace,
        "remade",
        value,
        &[("delete-on-invalid-update", "true")],
    );
    remade["immutable"] = json!(true);
    [
        map(namespace, "plain", value, &[("what-nobody-knows", "true")]),
        map(namespace, "ignored", value, &[("ignore", "true")]),
        map(namespace, "released", value, released),
        remade,
        deployment(namespace, &preserving, cpu),
        balancer(namespace, unjudged),
    ]
}

pub async fn of_objects(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--annotations").await?;
    place
        .resource(
            "core",
            json!({}),
            &objects(place.name, "1", "1m", &[], &json!({})),
        )
        .await?;
    let before = place.applied("core", None).await?;
    let told = "Service shoot--dev--annotations/lb: its load balancer has no address yet";
    place
        .tells("core", "ResourcesHealthy", ConditionStatus::False, told)
        .await?;
    let maps: Api<ConfigMap> = place.in_shoot();
    let first = uid(&maps, "remade").await?;
    let deployments: Api<Deployment> = place.in_shoot();
    change(&deployments, "web", json!({"spec": {"replicas": 3}})).await?;
    let resources = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/resources/requests/cpu", "value": "7m"}]);
    let patch = kube::api::Patch::Json::<()>(serde_json::from_value(resources)?);
    deployments
        .patch("web", &kube::api::PatchParams::default(), &patch)
        .await?;

    let skipped = json!({"resources.gardener.cloud/skip-health-check": "true"});
    place
        .manifests(
            "core",
            &objects(place.name, "2", "2m", &[("mode", "Ignore")], &skipped),
        )
        .await?;
    let resource = place.applied("core", checksum(&before)).await?;
    place
        .tells(
            "core",
            "ResourcesHealthy",
            ConditionStatus::True,
            "All resources are healthy.",
        )
        .await?;
    let plain = place.says("plain", "2").await?;
    ensure!(plain.annotations()["resources.gardener.cloud/what-nobody-knows"] == "true");
    place.says("remade", "2").await?;
    ensure!(uid(&maps, "remade").await? != first, "it cannot be changed");
    for name in ["ignored", "released"] {
        ensure!(value_of(&maps.get(name).await?) == Some("1"), "{name}");
    }
    ensure!(
        names(&resource) == ["ignored", "plain", "remade", "lb", "web"],
        "{:?}",
        names(&resource)
    );
    let web = deployments.get("web").await?.spec.unwrap();
    let cpu = &web.template.spec.unwrap().containers[0]
        .resources
        .clone()
        .unwrap()
        .requests
        .unwrap()["cpu"];
    ensure!(
        (web.replicas, cpu.0.as_str()) == (Some(3), "7m"),
        "{:?} {cpu:?}",
        web.replicas
    );
    // An object with `ignore` is created again if missing.
    let once = uid(&maps, "ignored").await?;
    maps.delete("ignored", &kube::api::DeleteParams::default())
        .await?;
    until(&maps, "ignored", "another one", |map| {
        map.uid().unwrap() != once && value_of(map) == Some("2")
    })
    .await?;
    place.delete("core").await?;
    place.gone("core").await?;
    ensure!(maps.get_opt("released").await?.is_some());
    ensure!(place.in_shoot::<Service>().get_opt("lb").await?.is_none());
    Ok(())
}

/// A user makes a managed object immutable, so that the content cannot be changed any more.
pub async fn of_immutable_objects(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--immutable").await?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"k": "MQ=="},
        "metadata": {"name": "kept", "namespace": place.name}});
    let objects = [map(place.name, "kept", "1", &[]), secret];
    place.resource("core", json!({}), &objects).await?;
    place.applied("core", None).await?;
    let (maps, secrets): (Api<ConfigMap>, Api<Secret>) = (place.in_shoot(), place.in_shoot());
    let first = (uid(&maps, "kept").await?, uid(&secrets, "kept").await?);
    change(&maps, "kept", json!({"data": {"k": "2"}, "immutable": true})).await?;
    change(
        &secrets,
        "kept",
        json!({"data": {"k": "Mg=="}, "immutable": true}),
    )
    .await?;
    until(
        &maps,
        "kept",
        "another one with the content that is wanted",
        |map| map.uid().unwrap() != first.0 && value_of(map) == Some("1"),
    )
    .await?;
    until(
        &secrets,
        "kept",
        "another one with the content that is wanted",
        |secret: &Secret| {
            let value = secret.data.as_ref().and_then(|data| data.get("k"));
            secret.uid().unwrap() != first.1 && value.is_some_and(|value| value.0 == b"1")
        },
    )
    .await?;
    place.applied("core", None).await?;

    // Two cases delete no existing object: a user's object of the same name, and a manifest that could not be
    // created either.
    let theirs = map(place.name, "theirs", "3", &[]);
    let mut theirs: ConfigMap = serde_json::from_value(theirs)?;
    theirs.immutable = Some(true);
    let theirs = maps.create(&kube::api::PostParams::default(), &theirs).await?;
    change(&maps, "kept", json!({"immutable": true})).await?;
    let kept = uid(&maps, "kept").await?;
    let mut wrong = map(place.name, "kept", "4", &[]);
    wrong["data"] = json!({"not/a/key": "4"});
    place
        .resource("clash", json!({}), &[map(place.name, "theirs", "1", &[])])
        .await?;
    place.manifests("core", &[wrong]).await?;
    for name in ["clash", "core"] {
        let refused = |resource: &ManagedResource| {
            is(resource, "ResourcesApplied", ConditionStatus::False).then_some(())
        };
        place.until(name, "it is not applied", refused).await?;
    }
    ensure!(uid(&maps, "theirs").await? == theirs.uid().unwrap());
    ensure!(uid(&maps, "kept").await? == kept);
    for name in ["clash", "core"] {
        place.delete(name).await?;
        place.gone(name).await?;
    }
    Ok(())
}

pub async fn of_deletion(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--deletion").await?;
    let mut finalized = map(place.name, "finalized", "1", &[("finalize-deletion-after", "1s")]);
    finalized["metadata"]["finalizers"] = json!(["example.org/hold"]);
    let objects = [
        map(place.name, "rest", "1", &[]),
        map(place.name, "kept", "1", &[("keep-object", "true")]),
        finalized,
    ];
    place.resource("core", json!({}), &objects).await?;
    let before = place.applied("core", None).await?;
    place.manifests("core", &objects[..1]).await?;
    let resource = place.applied("core", checksum(&before)).await?;
    ensure!(names(&resource) == ["rest"], "{:?}", names(&resource));
    let maps: Api<ConfigMap> = place.in_shoot();
    ensure!(maps.get_opt("finalized").await?.is_none());
    ensure!(maps.get("kept").await?.metadata.deletion_timestamp.is_none());
    Ok(())
}

pub async fn of_managed_resources(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--ignored").await?;
    place
        .resource("core", json!({}), &[map(place.name, "map", "1", &[])])
        .await?;
    place.applied("core", None).await?;
    let ignore =
        |value: Value| json!({"metadata": {"annotations": {"resources.gardener.cloud/ignore": value}}});
    change(&place.resources(), "core", ignore(json!("true"))).await?;
    let told = "It is left alone: it has the annotation resources.gardener.cloud/ignore.";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::Unknown, told)
        .await?;
    place
        .manifests("core", &[map(place.name, "map", "2", &[])])
        .await?;
    place.delete("core").await?;
    place
        .tells(
            "core",
            "ResourcesApplied",
            ConditionStatus::Progressing,
            "It is left alone, also in its deletion",
        )
        .await?;
    ensure!(value_of(&place.in_shoot::<ConfigMap>().get("map").await?) == Some("1"));
    change(&place.resources(), "core", ignore(Value::Null)).await?;
    place.gone("core").await?;
    ensure!(place.in_shoot::<ConfigMap>().get_opt("map").await?.is_none());
    Ok(())
}
