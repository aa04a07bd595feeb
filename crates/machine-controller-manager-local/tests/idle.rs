//! A machine-controller-manager with many machines that are all well needs little. Its cloud is the local one
//! on a real API server, which is its seed and its shoot too; kubelets are played: an instance gets its Node
//! as soon as it is there.
//!
//! `make bench` runs it; `REPOT_IDLE_MACHINES` is how many. Making a thousand takes minutes, hence not with
//! every test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

#[path = "world/manager.rs"]
mod managers;
mod world;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{
    Target, crds_of,
    machine::{Machine, MachineDeployment},
};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use managers::{manager, pool, shoot};
use serde_json::json;
use testkit::{ControlPlane, Idle, PlayedKubelet, apply, size};
use tokio::task::JoinSet;
use world::{CLUSTER, account};

const MACHINES: usize = 1000;
/// What a process may have for itself, in KiB (the aim of `make bench`).
const AT_MOST: u64 = 40 * 1024;
/// On a busy machine.
const MADE_WITHIN: Duration = Duration::from_secs(1500);

#[ignore = "a measurement of some minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_controller_manager_idles_in_little_memory() -> Result<()> {
    let count = size("REPOT_IDLE_MACHINES", MACHINES)?;
    let mut plane = ControlPlane::start("idle").await?;
    let client = plane.admin();
    testkit::apply_crds(&client, &crds_of(Target::Seed)).await?;
    let credentials = account(&plane).await?;
    // A kubelet that is played says once that it is ready; after a minute they would not believe it any more.
    plane.stop_controllers();
    shoot(&plane, &credentials).await?;
    let _pods = PlayedKubelet::start(&client);
    let mut kubelets = JoinSet::new();
    kubelets.spawn(join(client.clone()));
    let folder = tempfile::tempdir()?;
    let mut manager = manager(&plane, folder.path(), Vec::new())?;
    pool(&client, count).await?;
    let made = tokio::time::timeout(MADE_WITHIN, all_are_there(client, i32::try_from(count)?)).await;
    manager.check_alive()?;
    made.with_context(|| format!("not all machines are there within {MADE_WITHIN:?}"))
        .flatten()
        .with_context(|| manager.log_tail())?;
    let idle = Idle::of(&manager).await?;
    idle.tell("machine-controller-manager-local", &format!("{count} machines"));
    ensure!(idle.own < AT_MOST, "{} KiB are more than {AT_MOST} KiB", idle.own);
    Ok(())
}

/// The kubelets of all instances: each registers its Node, and is ready.
async fn join(client: Client) {
    let machines: Api<Machine> = Api::namespaced(client.clone(), CLUSTER);
    let made = watcher(machines, watcher::Config::default())
        .default_backoff()
        .applied_objects();
    made.for_each_concurrent(4, |machine| {
        let client = client.clone();
        async move {
            let Ok(machine) = machine else { return };
            let Some(id) = machine.spec.provider_id.clone() else {
                return;
            };
            if let Err(error) = register(client, &machine.name_any(), &id).await {
                eprintln!("the Node of {} is not registered: {error:#}", machine.name_any());
            }
        }
    })
    .await;
}

async fn register(client: Client, name: &str, id: &str) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    if nodes.get_opt(name).await?.is_some() {
        return Ok(());
    }
    let node =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"providerID": id}});
    apply(&client, node).await?;
    let ready = json!({"type": "Ready", "status": "True", "reason": "Played", "message": "so",
        "lastTransitionTime": runtime::clock::now().to_string()});
    let status = Patch::Merge(json!({"status": {"conditions": [ready]}}));
    nodes.patch_status(name, &PatchParams::default(), &status).await?;
    Ok(())
}

/// Waits until all serve.
async fn all_are_there(client: Client, count: i32) -> Result<()> {
    let deployments: Api<MachineDeployment> = Api::namespaced(client, CLUSTER);
    let mut changes = watcher(deployments, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .boxed();
    while let Some(deployment) = changes.try_next().await? {
        let available = deployment.status.and_then(|status| status.available_replicas);
        if available == Some(count) {
            return Ok(());
        }
    }
    anyhow::bail!("the watch ended")
}
