//! A ShootState that a hostile source wrote, on a real API server: no planted entry is applied, and no key of
//! the shoot is hidden.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use anyhow::Result;
use api::{
    constants::condition::SHOOT_STATE_COMPLETE,
    gardencore::{Shoot, ShootState, ShootStateSpec},
    meta::find_condition,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use parts::{
    Deploy, Destroy, ExtensionSecrets, Facts, Infrastructure, Namespace, Operation, Secrets, Settings,
    shoot_state::{self, left_out::STATE_NOT_RESTORED},
};
use parts_fixture::{NAMESPACE, PROJECT, World};
use serde_json::{Value, json};

const TOKEN: &str = "kubernetes.io/service-account-token";

#[tokio::test]
async fn a_hostile_source_plants_nothing_and_hides_no_key() -> Result<()> {
    let (world, honest) = Box::pin(handed_over("hostile")).await?;
    let destination = world.facts(Operation::Restore, Settings::default()).await?;
    for (planted, reason) in plants() {
        write(&world, &with(&honest, planted)).await?;
        Box::pin(expect_keys(&world, &destination, &honest)).await?;
        ExtensionSecrets::restore(&destination).await?;
        let reported = reported(&world).await?.unwrap_or_default();
        assert!(reported.contains(reason), "{reported}; expected: {reason}");
        nothing_is_planted(&world).await?;
    }
    // The next attempt, after an administrator has removed the planted pieces.
    write(&world, &honest).await?;
    let destination = world.facts(Operation::Restore, Settings::default()).await?;
    Box::pin(expect_keys(&world, &destination, &honest)).await?;
    ExtensionSecrets::restore(&destination).await?;
    assert_eq!(reported(&world).await?, None);
    // A state that is left out stops the object of this state: a provider would create the objects again.
    for (planted, reason) in plants() {
        if planted[0].0 != "extensions" {
            continue;
        }
        write(&world, &with(&honest, planted)).await?;
        refused(&Infrastructure::deploy(&destination).await.unwrap_err(), reason);
        nothing_is_planted(&world).await?;
    }
    Ok(())
}

/// The last write of a hostile host keeps all keys, and adds content that no reader knows.
#[tokio::test]
async fn content_beside_the_keys_hides_no_key() -> Result<()> {
    let (world, honest) = Box::pin(handed_over("beside")).await?;
    let destination = world.facts(Operation::Restore, Settings::default()).await?;
    let entry = |pointer: &str, value: Value| {
        let mut spec = honest.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        spec["gardener"][0].pointer_mut(parent).unwrap()[key] = value;
        spec
    };
    let name = &honest["gardener"][0]["name"];
    let beside = |planted: Value| with(&honest, vec![("gardener", planted)]);
    let chunks = |size: i64| {
        let mut spec = honest.clone();
        let chunk = json!({"name": "web.state-1-0", "size": 1, "sha256": "x"});
        spec["inChunks"] = json!({"size": size, "sha256": "x", "chunks": [chunk]});
        spec
    };
    for spec in [
        entry("/data/x", json!(1)),
        entry("/data/type", json!("kubernetes.io/tls")),
        entry("/data/type", json!(7)),
        entry("/data/immutable", json!("x")),
        entry("/data/data/foreign", json!("no base64")),
        entry("/labels/no label!", json!("x")),
        entry("/labels/persist", json!("false")),
        beside(json!({"name": name, "type": "a", "data": {}})),
        beside(json!({"name": name, "type": "y", "data": {}})),
        beside(json!({"name": name, "type": "secret", "data": {"data": {}}})),
        chunks(1),
        chunks(9_007_199_254_740_991),
    ] {
        write(&world, &spec).await?;
        Box::pin(expect_keys(&world, &destination, &honest)).await?;
        ExtensionSecrets::restore(&destination).await?;
    }
    // The last ShootState has lost its chunks: each object waits for its state.
    let reported = reported(&world).await?.unwrap_or_default();
    assert!(reported.contains("only the keys of the shoot"), "{reported}");
    let refused = Infrastructure::deploy(&destination).await.unwrap_err();
    assert_eq!(refused.class(), "Config", "{refused}");
    Box::pin(broken_keys_stop_the_restore(&world, &honest)).await
}

/// No key is written before all keys are verified.
async fn broken_keys_stop_the_restore(world: &World, honest: &Value) -> Result<()> {
    let destination = world.facts(Operation::Restore, Settings::default()).await?;
    let mut broken = honest.clone();
    broken["inChunks"] = Value::Null;
    let last = broken["gardener"].as_array_mut().unwrap().last_mut().unwrap();
    let name = last["name"].as_str().unwrap().to_owned();
    last["data"]["data"] = json!({});
    let mut other = honest["gardener"][0].clone();
    for value in other["data"]["data"].as_object_mut().unwrap().values_mut() {
        *value = json!("b3RoZXI=");
    }
    let several = with(honest, vec![("gardener", other)]);
    let mut missing = honest.clone();
    let entries = missing["gardener"].as_array_mut().unwrap();
    entries.retain(|entry| entry["name"] != "ca-etcd");
    for (spec, words) in [
        (
            broken,
            format!("entry {name} in spec.gardener of ShootState web does not decode"),
        ),
        (several, "several entries of this name".to_owned()),
        (
            missing,
            "Secret ca-etcd is not in the shoot's namespace".to_owned(),
        ),
    ] {
        write(world, &spec).await?;
        delete_secrets(world).await?;
        refused(&Secrets::deploy(&destination).await.unwrap_err(), &words);
        assert_eq!(world.secrets().await?.len(), 0, "no key is restored");
    }
    Ok(())
}

/// A shoot that has left the seed of the fixture, and the honest content of its ShootState.
async fn handed_over(name: &str) -> Result<(World, Value)> {
    let world = World::start(name).await?;
    let source = world.facts(Operation::Reconcile, Settings::default()).await?;
    Namespace::deploy(&source).await?;
    Secrets::deploy(&source).await?;
    let honest = collected(&source).await?;
    Namespace::destroy(&source.residency).await?;
    Namespace::gone(&source.residency).await?;
    let destination = world.facts(Operation::Restore, Settings::default()).await?;
    Namespace::deploy(&destination).await?;
    Ok((world, honest))
}

/// A restore into an empty namespace puts back the keys as the source had the keys, and no planted Secret.
async fn expect_keys(world: &World, destination: &Facts, honest: &Value) -> Result<()> {
    delete_secrets(world).await?;
    Secrets::deploy(destination).await?;
    let mut restored = collected(destination).await?;
    let mut expected = honest.clone();
    for spec in [&mut restored, &mut expected] {
        for entry in spec["gardener"].as_array_mut().unwrap() {
            // A planted value of this field has no effect on the keys.
            entry["data"].as_object_mut().unwrap().remove("immutable");
        }
    }
    assert_eq!(restored["gardener"], expected["gardener"]);
    Ok(())
}

async fn delete_secrets(world: &World) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(world.client(), NAMESPACE);
    secrets
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    Ok(())
}

/// The message of constraint `ShootStateComplete` about content that the restore has left out.
async fn reported(world: &World) -> Result<Option<String>> {
    let shoots: Api<Shoot> = Api::namespaced(world.client(), PROJECT);
    let constraints = shoots.get("web").await?.status.unwrap_or_default().constraints;
    let found = find_condition(&constraints, SHOOT_STATE_COMPLETE);
    let found = found.filter(|found| found.reason == STATE_NOT_RESTORED);
    Ok(found.map(|found| found.message.clone()))
}

/// A controller of the seed has written into Secrets with reserved names, and the source into a CA. A foreign
/// key in the Secret of a ManagedResource would be applied in the shoot.
#[tokio::test]
async fn reserved_secrets_hold_no_foreign_keys() -> Result<()> {
    let world = World::start("reserved").await?;
    let source = world.facts(Operation::Reconcile, Settings::default()).await?;
    Namespace::deploy(&source).await?;
    Secrets::deploy(&source).await?;
    let clean = keys(&world).await?;
    let mut hostile = collected(&source).await?;
    hostile["gardener"][0]["data"]["data"]["foreign"] = json!("dg==");
    write(&world, &hostile).await?;
    Namespace::destroy(&source.residency).await?;
    Namespace::gone(&source.residency).await?;

    let destination = world.facts(Operation::Restore, Settings::default()).await?;
    Namespace::deploy(&destination).await?;
    for name in ["etcd-server", "gardenlet", "ca-etcd", "managedresource-x"] {
        plant(&world, name).await?;
    }
    Secrets::deploy(&destination).await?;
    let manifests = runtime::workload::manifests::Manifests::new("x", &[]);
    manifests
        .deploy(
            runtime::client::apply::FieldManager("gardenlet"),
            &destination.residency.seed,
            NAMESPACE,
        )
        .await?;
    let mut restored = keys(&world).await?;
    let manifests = restored.remove("managedresource-x").unwrap();
    assert_eq!(manifests.len(), 1, "{manifests:?}");
    assert_eq!(restored, clean);

    // A later foreign key is removed by the next reconciliation, and the certificate stays.
    let before: Secret = world.read("etcd-server").await?;
    plant(&world, "etcd-server").await?;
    Secrets::deploy(&destination).await?;
    let after: Secret = world.read("etcd-server").await?;
    assert_eq!(before.data, after.data);
    Ok(())
}

/// Writes a data key beside the owner's keys.
async fn plant(world: &World, name: &str) -> Result<()> {
    let foreign = json!({"stringData": {"foreign": "v"}});
    world.apply("v1", "Secret", Some(NAMESPACE), name, foreign).await
}

async fn keys(world: &World) -> Result<BTreeMap<String, Vec<String>>> {
    let keys = |secret: Secret| secret.data.unwrap_or_default().into_keys().collect();
    let all = world.secrets().await?.into_iter();
    Ok(all.map(|(name, secret)| (name, keys(secret))).collect())
}

fn with(honest: &Value, planted: Vec<(&'static str, Value)>) -> Value {
    let mut spec = honest.clone();
    for (list, piece) in planted {
        spec[list].as_array_mut().unwrap().push(piece);
    }
    spec
}

#[track_caller]
fn refused(error: &runtime::Error, reason: &str) {
    assert_eq!(error.class(), "Config", "{error}");
    assert!(error.to_string().contains(reason), "{error}; expected: {reason}");
}

/// Entries that a compromised source adds to an honest ShootState.
fn plants() -> Vec<(Vec<(&'static str, Value)>, &'static str)> {
    let infrastructure = |kind: &str, name: &str| {
        json!({"kind": "Infrastructure", "name": "web", "state": {"networkID": "n1"},
            "resources": [{"name": "r", "resourceRef": {"apiVersion": "v1", "kind": kind, "name": name}}]})
    };
    let resource = |kind: &str, name: &str, data: Value| json!({"apiVersion": "v1", "kind": kind, "name": name, "data": data});
    let metadata = json!({"name": "x", "annotations": {"kubernetes.io/service-account.name": "default"}});
    let token = json!({"apiVersion": "v1", "kind": "Secret", "type": TOKEN, "metadata": metadata});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
        "spec": {"containers": [{"name": "x", "image": "x"}], "serviceAccountName": "default"}});
    let owned =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "finalizers": ["x/y"]}});
    let entry = |name: &str, type_: &str| json!({"name": name, "type": "secret", "labels": {"persist": "true"}, "data": {"data": {}, "type": type_}});
    let mut labelled = entry("x", "Opaque");
    labelled["labels"]["no label!"] = json!("v");
    vec![
        (vec![("gardener", entry("x", TOKEN))], "are not carried"),
        // The API server refuses a Secret of this type without data.
        (
            vec![("gardener", entry("x", "kubernetes.io/tls"))],
            "Secret x in spec.gardener of the ShootState cannot be made",
        ),
        (
            vec![("gardener", labelled)],
            "Secret x in spec.gardener of the ShootState cannot be made",
        ),
        (
            vec![("gardener", entry("gardenlet", "Opaque"))],
            "each seed creates the Secret of this name itself",
        ),
        (
            vec![("gardener", entry("../../kube-system/secrets/x", "Opaque"))],
            "no name of an object",
        ),
        (
            vec![
                ("extensions", infrastructure("Secret", "x")),
                ("resources", resource("Secret", "x", token)),
            ],
            "are not carried",
        ),
        (
            vec![
                ("extensions", infrastructure("Pod", "x")),
                ("resources", resource("Pod", "x", pod)),
            ],
            "only Secrets and ConfigMaps are carried",
        ),
        (
            vec![
                ("extensions", infrastructure("ConfigMap", "x")),
                ("resources", resource("ConfigMap", "x", owned)),
            ],
            "more than a name, labels, annotations, data and a type",
        ),
    ]
}

async fn collected(facts: &Facts) -> Result<Value> {
    let carried = facts.residency.carried_secrets().await?;
    Ok(json!({"gardener": shoot_state::to_shoot_state(&carried)?, "extensions": [], "resources": []}))
}

async fn write(world: &World, spec: &Value) -> Result<()> {
    let states: Api<ShootState> = Api::namespaced(world.client(), PROJECT);
    if states.get_opt("web").await?.is_none() {
        world.make_shoot_state(ShootStateSpec::default()).await?;
    }
    let patch = Patch::Merge(json!({"spec": spec}));
    states.patch("web", &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn nothing_is_planted(world: &World) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(world.client(), NAMESPACE);
    let pods: Api<Pod> = Api::namespaced(world.client(), NAMESPACE);
    let everywhere: Api<Secret> = Api::all(world.client());
    assert!(maps.get_opt("x").await?.is_none());
    assert_eq!(pods.list(&ListParams::default()).await?.items.len(), 0);
    let found = everywhere.list(&ListParams::default()).await?;
    assert!(found.iter().all(|secret| secret.name_any() != "x"));
    Ok(())
}
