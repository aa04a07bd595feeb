//! Starts the controllers of [`gardenlet`].

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use gardenlet::{Config, Context, controllers};
use lease::migration::{GARDENLET, Locks, answer_if_asked};
use runtime::{Events, Garden, Process, Seed, clusters::Cluster, connect};

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&GARDENLET) {
        return answered;
    }
    let config = Config::parse();
    let process = Process::new("gardenlet");
    runtime::process::run(start(process, config))
}

async fn start(mut process: Process, config: Config) -> Result<(), String> {
    let locks = Locks::assign(&config.lease, &GARDENLET).map_err(|error| error.to_string())?;
    let garden = Garden::new(connect("--garden-kubeconfig", Some(&config.garden_kubeconfig)).await?);
    let own = Seed::new(connect("--seed-kubeconfig", config.seed_kubeconfig.as_deref()).await?);
    process.serve_health(config.health_address);
    let context = Context {
        garden_events: Events::new(garden.client().clone(), "gardenlet"),
        garden,
        seed: own,
        seed_name: config.seed_name.clone(),
        settings: Arc::new(config.settings()),
        config: Arc::new(config),
        metrics: process.metrics.clone(),
        shutdown: process.shutdown.clone(),
        heartbeat: gardenlet::context::Heartbeat::default(),
    };
    let health = process.health.clone();
    process.fallible_part("controllers", async move {
        let (seed, shutdown) = (context.seed.client().clone(), context.shutdown.clone());
        let register = |locks: &lease::Metrics| {
            let overdue = locks.clone();
            health.add(move || overdue.overdue());
            context.metrics.register(|all| locks.register(all));
        };
        locks
            .run(&seed, register, shutdown, |names, held| {
                controllers::run(names, context.clone(), held)
            })
            .await
    });
    process.run().await.map_err(|e| e.to_string())
}
