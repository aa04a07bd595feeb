//! Starts the controllers of [`gardenlet`].

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use gardenlet::{Config, Context, backup_bucket, backup_entry, care, seed, shoot};
use runtime::{Events, Garden, Process, Seed, clusters::Cluster, connect};

#[tokio::main]
async fn main() -> ExitCode {
    let config = Config::parse();
    let process = Process::new("gardenlet");
    match start(process, config).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!(%why, "the process ends");
            ExitCode::FAILURE
        }
    }
}

async fn start(mut process: Process, config: Config) -> Result<(), String> {
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
    let context = Arc::new(context);
    seed::register(&context).await.map_err(|e| e.to_string())?;
    process.part("seed lease", seed::renew_lease(Arc::clone(&context)));
    process.part("seed controller", seed::run(Arc::clone(&context)));
    process.part(
        "backup bucket controller",
        backup_bucket::run(Arc::clone(&context)),
    );
    process.part("backup entry controller", backup_entry::run(Arc::clone(&context)));
    process.part("care controller", care::run(Arc::clone(&context)));
    process.part("shoot controller", shoot::run(context));
    process.run().await.map_err(|e| e.to_string())
}
