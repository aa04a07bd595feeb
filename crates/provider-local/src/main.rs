//! The process: reads flags, connects to the seed, runs the controllers.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::Parser;
use extension::heartbeat;
use provider_local::{MANAGER, controllers};
use runtime::{Events, Process, Seed, connect, runner::Settings};

/// Looks after extension objects of type `local` in one seed.
#[derive(Parser)]
#[command(version)]
struct Flags {
    /// At most so many objects of each kind at the same time.
    #[arg(long, default_value_t = 5)]
    concurrent_syncs: u16,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    health_address: SocketAddr,
    /// Kubeconfig of the seed; the account of the pod if not given.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Namespace of this process in the seed, for its heartbeat.
    #[arg(long, env = "POD_NAMESPACE", default_value = "extension-provider-local")]
    namespace: String,
    /// Name of this process in its heartbeat.
    #[arg(long, env = "POD_NAME", default_value = "provider-local")]
    identity: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    let flags = Flags::parse();
    let mut process = Process::new(MANAGER.0);
    let seed = match connect("--kubeconfig", flags.kubeconfig.as_deref()).await {
        Ok(client) => Seed::new(client),
        Err(why) => {
            tracing::error!(%why, "cannot connect to the seed");
            return ExitCode::FAILURE;
        }
    };
    let settings = Settings {
        concurrency: flags.concurrent_syncs,
        shutdown: process.shutdown.clone(),
        metrics: process.metrics.clone(),
        events: Events::new(runtime::Cluster::client(&seed).clone(), MANAGER.0),
    };
    process.serve_health(flags.health_address);
    process.part(
        "heartbeat",
        heartbeat::run(seed.clone(), MANAGER, flags.namespace, flags.identity),
    );
    controllers::add(&mut process, &seed, &settings);
    match process.run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!(%why, "the process ends");
            ExitCode::FAILURE
        }
    }
}
