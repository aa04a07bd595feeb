//! The watches of a gardenlet: the controllers share one watch of all Shoots. A real API server serves as
//! garden and seed; a proxy records the requests of the gardenlet.

#![allow(clippy::unwrap_used, clippy::large_futures)]

#[path = "ground/context.rs"]
mod context;

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use api::gardencore::Shoot;
use gardenlet::{care, shoot, shoot_state};
use testkit::{ControlPlane, Relay};
use tokio::task::JoinSet;

use context::context;

/// For a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// The controllers that subscribe to the watch, by the names in metrics.
const SUBSCRIBERS: [&str; 4] = ["care", "shoot", "shoot-state-sync", "shoot-zone"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_controllers_share_a_single_watch_of_shoots() -> Result<()> {
    let plane = ControlPlane::start("watches").await?;
    let client = plane.admin();
    let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
    testkit::apply_crds(&client, &crds).await?;
    let relay = Relay::start(client).await?;
    let context = Arc::new(context(&relay.client().await?, &[])?);
    let mut running = JoinSet::new();
    running.spawn(Box::pin(shoot::run(Arc::clone(&context))));
    running.spawn(Box::pin(shoot_state::run(Arc::clone(&context))));
    running.spawn(Box::pin(care::run(Arc::clone(&context))));

    testkit::controllers_synced(&SUBSCRIBERS, SOON, || context.metrics.encode()).await?;
    relay.until_watched::<Shoot>(SOON).await?;
    let watches = relay.watches::<Shoot>();
    ensure!(watches == 1, "{watches} watches of all Shoots");
    Ok(())
}
