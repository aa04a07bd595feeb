//! The context of a gardenlet of the seed `seed-a`, with an API server that serves as garden and seed.

use std::sync::Arc;

use anyhow::Result;
use api::constants::seed_user;
use clap::Parser;
use gardenlet::{Config, Context, context::Heartbeat, move_trace::MoveTraces, shoots};
use kube::Client;
use runtime::{
    client::{Garden, Permit, Seed},
    controller::Events,
    process::metrics::Metrics,
};
use tokio_util::sync::CancellationToken;

/// With these flags besides those that every gardenlet needs.
pub fn context(client: &Client, flags: &[&str]) -> Result<Context> {
    let needed = [
        "gardenlet",
        "--garden-kubeconfig=/none",
        "--seed-name=seed-a",
        "--seed-config=/none",
    ];
    let config = Config::try_parse_from(needed.iter().chain(flags))?;
    let permit = Permit::sole("a test");
    let garden = Garden::new(client.clone(), &permit);
    Ok(Context {
        shoots: shoots::watch(&garden, "seed-a"),
        garden,
        seed: Seed::new(client.clone(), &permit),
        seed_name: "seed-a".into(),
        settings: Arc::new(config.settings()),
        config: Arc::new(config),
        garden_events: Events::of_seed(client.clone(), "gardenlet", seed_user("seed-a")),
        metrics: Metrics::default(),
        shutdown: CancellationToken::new(),
        certificate_expiry: None,
        heartbeat: Heartbeat::default(),
        move_traces: MoveTraces::default(),
    })
}
