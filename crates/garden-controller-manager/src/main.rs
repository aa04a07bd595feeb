//! Starts the controllers of [`garden_controller_manager`].

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use garden_controller_manager::{
    Config, Context, project, seed, shoot_migration, shoot_placement, shoot_state,
};
use runtime::{Events, Garden, Process, clusters::Cluster, connect};

#[tokio::main]
async fn main() -> ExitCode {
    let config = Config::parse();
    let process = Process::new("garden-controller-manager");
    match start(process, config).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!(%why, "the process ends");
            ExitCode::FAILURE
        }
    }
}

async fn start(mut process: Process, config: Config) -> Result<(), String> {
    let garden = Garden::new(connect("--garden-kubeconfig", config.garden_kubeconfig.as_deref()).await?);
    process.serve_health(config.health_address);
    let context = Context {
        events: Events::new(garden.client().clone(), "garden-controller-manager"),
        garden,
        config: Arc::new(config),
        metrics: process.metrics.clone(),
        shutdown: process.shutdown.clone(),
    };
    process.part("project controller", project::run(context.clone()));
    process.part("seed controller", seed::run(context.clone()));
    process.part(
        "shoot migration controller",
        shoot_migration::run(context.clone()),
    );
    process.part(
        "shoot placement controller",
        shoot_placement::run(context.clone()),
    );
    process.part("shoot state controller", shoot_state::run(context));
    process.run().await.map_err(|e| e.to_string())
}
