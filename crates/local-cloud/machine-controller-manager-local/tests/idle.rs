//! A machine-controller-manager with many healthy machines needs little memory. The cloud is the local cloud
//! on a real API server, also used as seed and shoot. Kubelets are simulated: an instance gets a Node as soon
//! as the instance exists.
//!
//! `make bench` runs this measurement; `REPOT_IDLE_MACHINES` is the number of machines. A thousand machines
//! take minutes, so the measurement is not part of every test run.
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
/// The memory limit of a process, in KiB (the aim of `make bench`).
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
    // A simulated kubelet reports readiness once. After a minute the controllers of the control plane would
    // treat the Node as not ready.
    plane.stop_controllers();
    shoot(&plane, &credentials).await?;
    let _pods = PlayedKubelet::start(&client);
    let mut kubelets = JoinSet::new();
    kubelets.spawn(join(client.clone()));
    let folder = tempfile::tempdir()?;
    let mut manager = manager(&plane, folder.path(), Vec::new())?;
    pool(&client, count).await?;
    let made = testkit::timeout(MADE_WITHIN, all_are_there(client, i32::try_from(count)?)).await;
    manager.check_alive()?;
    made.with_context(|| format!("not all machines are there within {MADE_WITHIN:?}"))
        .flatten()
        .with_context(|| manager.log_tail())?;
    let idle = Idle::measure(&manager).await?;
    idle.tell("machine-controller-manager-local", &format!("{count} machines"));
    ensure!(idle.own < AT_MOST, "{} KiB are more than {AT_MOST} KiB", idle.own);
    Ok(())
}

/// The kubelets of all instances: each kubelet registers a Node, and is ready.
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
