//! State that no seed could restore: a move is refused because of such state before a process stops, and all
//! further state stays up to date.

use std::time::Duration;

use anyhow::Result;
use api::{
    constants::condition::SHOOT_STATE_COMPLETE,
    extensions,
    gardencore::Shoot,
    meta::{ConditionStatus, find_condition},
};
use k8s_openapi::{
    api::core::v1::Secret, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use parts::{Facts, Operation, Settings, ShootState};
use parts_fixture::{NAMESPACE, World};
use runtime::client::Cluster;
use serde_json::{Value, json};

use super::{EXTENSIONS, planted::write, shoot, state};

/// Longer than an API server takes to serve a kind.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn unfit_state_is_left_out_and_refuses_a_move_before_it_begins() -> Result<()> {
    let world = Box::pin(shoot("left")).await?;
    let facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    ShootState::check(&facts).await?;
    a_kind_of_a_provider(&world).await?;
    world
        .apply(
            EXTENSIONS,
            "Gadget",
            Some(NAMESPACE),
            "g",
            json!({"spec": {"type": "x"}}),
        )
        .await?;
    // A kind of the provider may exist; only the state of the kind is not carried.
    ShootState::check(&facts).await?;
    ShootState::persist(&facts).await?;

    world
        .status(EXTENSIONS, "Gadget", "g", json!({"state": {"a": 1}}))
        .await?;
    refused(&facts, "the state of Gadget g cannot be carried").await;
    world
        .status(EXTENSIONS, "Gadget", "g", json!({"state": null}))
        .await?;

    secret(
        &world,
        "of-provider",
        json!({"persist": "true"}),
        "bootstrap.kubernetes.io/token",
    )
    .await?;
    refused(&facts, "Secret of-provider cannot be carried").await;
    secret(&world, "referenced", json!({}), "bootstrap.kubernetes.io/token").await?;
    let to = |version: &str, kind: &str, name: &str| json!({"name": name, "resourceRef": {"apiVersion": version, "kind": kind, "name": name}});
    let resources = json!([
        to("v1", "PersistentVolumeClaim", "disk"),
        to("v1", "Secret", "referenced")
    ]);
    let status = json!({"state": {"networkID": "n2"}, "resources": resources});
    world.status(EXTENSIONS, "Infrastructure", "web", status).await?;
    world
        .status(EXTENSIONS, "Gadget", "g", json!({"state": {"a": 1}}))
        .await?;

    let kept = ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    assert_eq!(kept.left_out.len(), 4, "{:?}", kept.left_out);
    for (told, what) in kept.left_out.iter().zip([
        "Secret of-provider",
        "the state of Gadget g",
        "PersistentVolumeClaim disk, to which Infrastructure web refers,",
        "Secret referenced, to which Infrastructure web refers,",
    ]) {
        assert!(told.starts_with(what) && told.contains("(remedy: "), "{told}");
    }
    let whole = ShootState::whole(&facts).await?.unwrap();
    let infrastructure = &whole.extensions[0];
    assert_eq!(
        infrastructure.state.as_ref().unwrap().0,
        json!({"networkID": "n2"})
    );
    assert!(infrastructure.resources.is_empty() && whole.resources.is_empty());
    assert_eq!(whole.extensions.len(), 1);

    let gadgets = world.any(EXTENSIONS, "Gadget", Some(NAMESPACE));
    gadgets.delete("g", &DeleteParams::default()).await?;
    let secrets: Api<Secret> = Api::namespaced(world.client(), NAMESPACE);
    secrets.delete("of-provider", &DeleteParams::default()).await?;
    refused(
        &facts,
        "PersistentVolumeClaim disk, to which Infrastructure web refers,",
    )
    .await;
    let infrastructures: Api<extensions::Infrastructure> = Api::namespaced(world.client(), NAMESPACE);
    infrastructures.delete("web", &DeleteParams::default()).await?;
    let kept = ShootState::sync(&facts.garden, &facts.residency, &facts.shoot).await?;
    assert!(kept.left_out.is_empty(), "{:?}", kept.left_out);
    Ok(())
}

/// The check before a move refuses the state.
async fn refused(facts: &Facts, what: &str) {
    let refused = ShootState::check(facts).await.unwrap_err();
    assert_eq!(refused.class(), "Config");
    assert!(refused.to_string().contains(what), "{refused}");
}

/// The second run of a move after a crash skips the check, and the shoot's API may be down.
#[tokio::test]
async fn state_that_appears_after_the_check_is_left_out_and_named_and_does_not_stop_the_move() -> Result<()> {
    let world = Box::pin(shoot("late")).await?;
    let facts = world.facts(Operation::Migrate, Settings::default()).await?;
    ShootState::check(&facts).await?;
    ShootState::persist(&facts).await?;
    assert_eq!(named(&facts).await?, None);

    a_kind_of_a_provider(&world).await?;
    world
        .apply(
            EXTENSIONS,
            "Gadget",
            Some(NAMESPACE),
            "g",
            json!({"spec": {"type": "x"}}),
        )
        .await?;
    world
        .status(EXTENSIONS, "Gadget", "g", json!({"state": {"a": 1}}))
        .await?;
    let reference = json!([{"name": "disk", "resourceRef":
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "disk"}}]);
    let status = json!({"state": {"networkID": "n3"}, "resources": reference});
    world.status(EXTENSIONS, "Infrastructure", "web", status).await?;
    secret(
        &world,
        "of-provider",
        json!({"persist": "true"}),
        "bootstrap.kubernetes.io/token",
    )
    .await?;
    ShootState::persist(&facts).await?;

    let message = named(&facts).await?.unwrap_or_default();
    for what in [
        "The shoot moves without state",
        "Secret of-provider cannot be carried",
        "the state of Gadget g cannot be carried",
        "PersistentVolumeClaim disk, to which Infrastructure web refers, cannot be carried",
    ] {
        assert!(message.contains(what), "{message}");
    }
    let whole = ShootState::whole(&facts).await?.unwrap();
    let infrastructure = whole
        .extensions
        .iter()
        .find(|state| state.kind == "Infrastructure");
    let state = infrastructure.and_then(|found| found.state.as_ref());
    assert_eq!(state.unwrap().0, json!({"networkID": "n3"}));
    assert!(whole.extensions.iter().all(|state| state.kind != "Gadget"));
    Ok(())
}

/// A former host has planted content. An error would stop the move while the shoot's API is down.
#[tokio::test]
async fn content_that_a_former_host_has_planted_does_not_stop_the_move() -> Result<()> {
    let world = Box::pin(shoot("planted-before")).await?;
    let facts = world.facts(Operation::Migrate, Settings::default()).await?;
    ShootState::persist(&facts).await?;
    let honest = state(&world).await?.spec;
    let mut planted = serde_json::to_value(&honest)?;
    for (list, piece) in [
        ("gardener", json!({"type": "y", "name": "ca", "data": {}})),
        ("gardener", json!({"type": "secret", "name": "ca", "data": {}})),
        ("extensions", json!({"kind": "X", "name": "x"})),
    ] {
        planted[list].as_array_mut().unwrap().push(piece);
    }
    write(&world, planted).await?;
    ShootState::persist(&facts).await?;
    assert_eq!(state(&world).await?.spec, honest);
    let message = named(&facts).await?.unwrap_or_default();
    for what in ["entry \"ca\" in spec.gardener", "the state of X \"x\""] {
        assert!(message.contains(what), "{message}");
    }
    Ok(())
}

/// The message of constraint `ShootStateComplete` while the constraint is `False`.
async fn named(facts: &Facts) -> Result<Option<String>> {
    let shoots: Api<Shoot> = facts
        .garden
        .namespaced(&facts.shoot.namespace().unwrap_or_default());
    let shoot = shoots.get(&facts.shoot.name_any()).await?;
    let constraints = shoot.status.unwrap_or_default().constraints;
    let found = find_condition(&constraints, SHOOT_STATE_COMPLETE);
    let found = found.filter(|found| found.status == ConditionStatus::False);
    Ok(found.map(|found| found.message.clone()))
}

async fn secret(world: &World, name: &str, labels: Value, type_: &str) -> Result<()> {
    let metadata = json!({"name": name, "labels": labels});
    let secret: Secret = serde_json::from_value(json!({"metadata": metadata, "type": type_}))?;
    let secrets: Api<Secret> = Api::namespaced(world.client(), NAMESPACE);
    secrets.create(&PostParams::default(), &secret).await?;
    Ok(())
}

/// A kind in the group of extensions that the suite does not know.
async fn a_kind_of_a_provider(world: &World) -> Result<()> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "gadgets.extensions.gardener.cloud"},
        "spec": {
            "group": "extensions.gardener.cloud", "scope": "Namespaced",
            "names": {"kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}],
        },
    }))?;
    testkit::apply_crds(&world.client(), &[definition]).await?;
    // The API server adds a kind to the discovery a moment after the kind is established.
    testkit::eventually("the kind is in the discovery", SOON, || async {
        let found = world.client().list_api_group_resources(EXTENSIONS).await;
        let found = found.map_err(|error| error.to_string())?.resources;
        let is_there = found.iter().any(|resource| resource.name == "gadgets");
        is_there.then_some(()).ok_or_else(|| "it is not there".to_owned())
    })
    .await
}
