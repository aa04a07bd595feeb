//! The watches of a gardenlet: the controllers share one watch of all Shoots. A real API server serves as
//! garden and seed; a proxy records the requests of the gardenlet.

#![allow(clippy::unwrap_used, clippy::large_futures)]

#[path = "ground/context.rs"]
mod context;

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use gardenlet::{care, shoot, shoot_state};
use kube::{Client, Config, config::KubeConfigOptions};
use testkit::{Asked, ControlPlane, Relay, eventually};
use tokio::task::JoinSet;

use context::context;

/// For a busy machine.
const SOON: Duration = Duration::from_secs(120);
/// The controllers that subscribe to the watch, by the names in metrics.
const SUBSCRIBERS: [&str; 4] = ["care", "shoot", "shoot-state", "shoot-zone"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_controllers_share_a_single_watch_of_shoots() -> Result<()> {
    let plane = ControlPlane::start("watches").await?;
    let client = plane.admin();
    let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
    testkit::apply_crds(&client, &crds).await?;
    let relay = Relay::start(client).await?;
    let config = Config::from_custom_kubeconfig(relay.kubeconfig()?, &KubeConfigOptions::default()).await?;
    let context = Arc::new(context(&Client::try_from(config)?, &[])?);
    let mut running = JoinSet::new();
    running.spawn(Box::pin(shoot::run(Arc::clone(&context))));
    running.spawn(Box::pin(shoot_state::run(Arc::clone(&context))));
    running.spawn(Box::pin(care::run(Arc::clone(&context))));

    // Without any Shoot, no change would wake a controller that waits for the end of the list.
    eventually("all controllers have listed all Shoots", SOON, || {
        let text = context.metrics.encode();
        let is_synced = |name: &&str| text.contains(&format!("controller_synced{{controller=\"{name}\"}} 1"));
        let missing: Vec<_> = SUBSCRIBERS.iter().filter(|name| !is_synced(name)).collect();
        std::future::ready(if missing.is_empty() {
            Ok(())
        } else {
            Err(format!("{missing:?} have not"))
        })
    })
    .await?;
    relay.until(1, SOON, is_watch_of_shoots).await?;
    let asked = relay.asked();
    let watches = asked.iter().filter(|asked| is_watch_of_shoots(asked)).count();
    ensure!(watches == 1, "{watches} watches of all Shoots");
    Ok(())
}

fn is_watch_of_shoots(asked: &Asked) -> bool {
    asked
        .path
        .starts_with("/apis/core.gardener.cloud/v1beta1/shoots?")
        && asked.path.contains("watch=true")
}
