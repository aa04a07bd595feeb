//! A ShootState that a hostile source wrote, on a real API server: no entry is applied.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use anyhow::Result;
use api::gardencore::{ShootState, ShootStateSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use parts::{Deploy, Destroy, Facts, Infrastructure, Namespace, Operation, Secrets, Settings, shoot_state};
use parts_fixture::{NAMESPACE, PROJECT, World};
use serde_json::{Value, json};

const TOKEN: &str = "kubernetes.io/service-account-token";

#[tokio::test]
async fn a_hostile_source_makes_the_destination_apply_nothing() -> Result<()> {
    let world = World::start("hostile").await?;
    let source = world.facts(Operation::Reconcile, Settings::default()).await?;
    Namespace::deploy(&source).await?;
    Secrets::deploy(&source).await?;
    let honest = collected(&source).await?;
    Namespace::destroy(&source.residency).await?;
    Namespace::gone(&source.residency).await?;
    let destination = world.facts(Operation::Restore, Settings::default()).await?;
    Namespace::deploy(&destination).await?;
    for (planted, reason) in plants() {
        write(&world, &with(&honest, planted)).await?;
        let error = Secrets::deploy(&destination).await.unwrap_err();
        refused(&error, reason);
        assert_eq!(
            world.secrets().await?.len(),
            0,
            "not even what is honest is applied"
        );
        nothing_is_planted(&world).await?;
    }
    // The ShootState without the planted entries is restored. Extension objects get their states later, by a
    // separate read.
    write(&world, &honest).await?;
    Secrets::deploy(&destination).await?;
    assert_eq!(collected(&destination).await?["gardener"], honest["gardener"]);
    for (planted, reason) in plants() {
        write(&world, &with(&honest, planted)).await?;
        refused(&Infrastructure::deploy(&destination).await.unwrap_err(), reason);
        nothing_is_planted(&world).await?;
    }
    Ok(())
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
    vec![
        (vec![("gardener", entry("x", TOKEN))], "are not carried"),
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
