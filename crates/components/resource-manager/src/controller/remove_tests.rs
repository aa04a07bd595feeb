//! The permission to delete objects of a shoot, with the API server of a seed.

use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use api::{constants::LEFT_IN_EPOCH, crds_of};
use kube::Client;
use owner_checks::SharedChecks;
use runtime::{
    client::{Cluster as _, Permit, Seed},
    controller::Events,
    process::metrics::Metrics,
};
use serde_json::{Value, json};
use testkit::{ControlPlane, apply, apply_crds};
use tokio::sync::Semaphore;

use crate::{
    controller::Controller,
    names::NAME,
    numbers::Numbers,
    object::{Key, Owner},
    target::Targets,
    watches::Watcher,
};

const NAMESPACE: &str = "shoot--dev--web";

fn controller(client: &Client) -> Controller {
    let seed = Seed::new(client.clone(), &Permit::sole("a test"));
    // No watch begins here.
    let (watcher, _) = Watcher::new(Arc::new(|_| {}));
    Controller {
        targets: Arc::new(Targets::new(seed.clone(), watcher)),
        ledger: Arc::default(),
        owners: SharedChecks::default(),
        events: Events::new(seed.client().clone(), NAME),
        numbers: Numbers::new(&Metrics::default()),
        work: Semaphore::new(1),
        seed,
    }
}

/// The namespace with these annotations.
async fn write_namespace(client: &Client, annotations: Value) -> Result<()> {
    let meta = json!({"name": NAMESPACE, "annotations": annotations});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta});
    apply(client, namespace).await.map(drop)
}

/// The Cluster in seed-a of a shoot that runs in this seed.
async fn write_cluster(client: &Client, host: &str) -> Result<()> {
    let cluster = json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster",
        "metadata": {"name": NAMESPACE},
        "spec": {
            "cloudProfile": {}, "seed": {"metadata": {"name": "seed-a"}},
            "shoot": {"status": {"seedName": host}},
        },
    });
    apply(client, cluster).await.map(drop)
}

async fn may_delete(controller: &Controller, in_seed: bool, name: &str) -> Result<bool> {
    let owner = Owner {
        in_seed,
        namespace: NAMESPACE.to_owned(),
        name: name.to_owned(),
    };
    let key = Key::new("v1", "ConfigMap", Some("default"), "map");
    let answer = controller.may_delete(&owner, &key).await;
    answer.map_err(|trouble| anyhow!(trouble.words()))
}

/// The mark of a departure counts also where the deletion began before the mark.
#[tokio::test(flavor = "multi_thread")]
async fn no_object_is_deleted_once_the_shoot_has_left() -> Result<()> {
    let plane = ControlPlane::start("departure").await?;
    let client = plane.admin();
    apply_crds(&client, &crds_of(api::Target::Seed)).await?;
    write_namespace(&client, json!({})).await?;
    let meta = json!({"name": "core", "namespace": NAMESPACE});
    let resource = json!({"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
        "metadata": meta, "spec": {"secretRefs": [{"name": "core"}]}});
    apply(&client, resource).await?;
    let controller = controller(&client);
    ensure!(may_delete(&controller, false, "core").await?, "the shoot is here");
    let other = may_delete(&controller, false, "other").await?;
    ensure!(!other, "there is no such ManagedResource");

    write_namespace(&client, json!({(LEFT_IN_EPOCH): "1"})).await?;
    let without_cluster = may_delete(&controller, false, "core").await?;
    ensure!(!without_cluster, "the shoot has left");
    let of_seed = may_delete(&controller, true, "core").await?;
    ensure!(of_seed, "the objects are in the seed");
    write_cluster(&client, "seed-b").await?;
    let elsewhere = may_delete(&controller, false, "core").await?;
    ensure!(!elsewhere, "the shoot runs in seed-b");
    write_cluster(&client, "seed-a").await?;
    let back = may_delete(&controller, false, "core").await?;
    ensure!(back, "the mark is from an earlier residency");
    Ok(())
}
