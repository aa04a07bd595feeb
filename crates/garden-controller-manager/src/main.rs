//! Starts the controllers of [`garden_controller_manager`].

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use garden_controller_manager::{Config, Context, controllers};
use lease::migration::{GARDEN_CONTROLLER_MANAGER as SELF, Locks, answer_if_asked};
use runtime::{Events, Garden, Process, clusters::Cluster, connect};

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&SELF) {
        return answered;
    }
    let config = Config::parse();
    let process = Process::new("garden-controller-manager");
    runtime::process::run(start(process, config))
}

async fn start(mut process: Process, config: Config) -> Result<(), String> {
    let locks = Locks::assign(&config.lease, &SELF).map_err(|error| error.to_string())?;
    let garden = Garden::new(connect("--garden-kubeconfig", config.garden_kubeconfig.as_deref()).await?);
    process.serve_health(config.health_address);
    let context = Context {
        events: Events::new(garden.client().clone(), "garden-controller-manager"),
        garden,
        config: Arc::new(config),
        metrics: process.metrics.clone(),
        shutdown: process.shutdown.clone(),
    };
    let health = process.health.clone();
    process.fallible_part("controllers", async move {
        let (garden, shutdown) = (context.garden.client().clone(), context.shutdown.clone());
        let register = |locks: &lease::Metrics| {
            let overdue = locks.clone();
            health.add(move || overdue.overdue());
            context.metrics.register(|all| locks.register(all));
        };
        locks
            .run(&garden, register, shutdown, |names, held| {
                controllers::run(names, context.clone(), held)
            })
            .await
    });
    process.run().await.map_err(|e| e.to_string())
}
