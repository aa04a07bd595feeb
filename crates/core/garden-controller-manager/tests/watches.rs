//! The watches of a garden-controller-manager with all controllers: the controllers share one watch of all
//! Shoots. A proxy records the requests to a real API server.

#![allow(clippy::unwrap_used, clippy::large_futures)]

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use api::gardencore::{Shoot, ShootState};
use clap::Parser;
use garden_controller_manager::{Config, Context, backup_entries, controllers, shoots};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use manager::GARDEN_CONTROLLER_MANAGER;
use runtime::{
    client::{Garden, Permit, wait},
    clock,
    controller::Events,
    process::metrics::Metrics,
};
use serde_json::json;
use testkit::{ControlPlane, Relay, apply, eventually};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const PROJECT: &str = "garden-dev";
/// For a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// The controllers that subscribe to the watch, by the names in metrics.
const SUBSCRIBERS: [&str; 16] = [
    "backup-entry-placement",
    "backup-entry-preparation",
    "controller-registration",
    "seed-protection",
    "seed-rights",
    "shoot-domain",
    "shoot-hibernation",
    "shoot-kubeconfig",
    "shoot-migration",
    "shoot-placement",
    "shoot-preparation",
    "shoot-state",
    "shoot-state-making",
    "shoot-takeover",
    "shoot-version",
    "shoot-zone-expiry",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_controllers_share_a_single_watch_of_shoots() -> Result<()> {
    let plane = ControlPlane::start("watches").await?;
    let client = plane.admin();
    let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
    testkit::apply_crds(&client, &crds).await?;
    let labels = json!({"project.gardener.cloud/name": "dev"});
    let project =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PROJECT, "labels": labels}});
    apply(&client, project).await?;
    let relay = Relay::start(client.clone()).await?;
    let metrics = Metrics::default();
    let _running = start(&relay, &metrics).await?;

    testkit::controllers_synced(&SUBSCRIBERS, SOON, || metrics.encode()).await?;
    relay.until_watched::<Shoot>(SOON).await?;

    // A change, and a deletion.
    let (shoots, states) = (
        Api::<Shoot>::namespaced(client.clone(), PROJECT),
        Api::<ShootState>::namespaced(client, PROJECT),
    );
    shoots.create(&PostParams::default(), &shoot()).await?;
    eventually("the Shoot has a ShootState", SOON, || async {
        let found = states.get_opt("web").await.map_err(|error| error.to_string())?;
        found.map(drop).ok_or_else(|| "there is none".to_owned())
    })
    .await?;
    // During a move the ShootState stays. The end of the Shoot is the only change that releases it.
    let last = json!({"type": "Migrate", "state": "Processing", "progress": 10, "description": "",
        "lastUpdateTime": clock::now_k8s()});
    let moving = Patch::Merge(json!({"status": {"seedName": "seed-a", "lastOperation": last}}));
    shoots
        .patch_status("web", &PatchParams::default(), &moving)
        .await?;
    states.delete("web", &DeleteParams::default()).await?;
    shoots.delete("web", &DeleteParams::default()).await?;
    testkit::measured("the object is gone", SOON, |bound| {
        wait::until_gone(&states, "web", bound)
    })
    .await?;

    let watches = relay.watches::<Shoot>();
    ensure!(watches == 1, "{watches} watches of all Shoots");
    Ok(())
}

/// Runs all controllers, with requests through the proxy.
async fn start(relay: &Relay, metrics: &Metrics) -> Result<JoinSet<Result<(), String>>> {
    let client = relay.client().await?;
    let garden = Garden::new(client.clone(), &Permit::sole("a test"));
    let context = Context {
        shoots: shoots::watch(&garden),
        backup_entries: backup_entries::watch(&garden),
        garden,
        config: Arc::new(Config::parse_from(["garden-controller-manager"])),
        events: Events::new(client, "garden-controller-manager"),
        metrics: metrics.clone(),
        shutdown: CancellationToken::new(),
    };
    let mut running = JoinSet::new();
    let names = GARDEN_CONTROLLER_MANAGER.controllers.to_vec();
    running.spawn(controllers::run(names, context));
    Ok(running)
}

fn shoot() -> Shoot {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": PROJECT},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}},
    }))
    .unwrap()
}
