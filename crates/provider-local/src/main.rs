//! The process: reads flags, connects to the seed, runs the controllers.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::Parser;
use extension::heartbeat;
use lease::migration::{Locks, PROVIDER_LOCAL, answer_if_asked};
use provider_local::{
    MANAGER,
    controllers::{self, Context},
    guests,
};
use runtime::{Cluster, Events, Process, Seed, connect, runner::Settings};

/// Looks after extension objects of type `local` in one seed.
#[derive(Parser)]
#[command(version)]
struct Flags {
    /// Image of the cloud-controller-manager that runs in the control planes of shoots.
    #[arg(long, default_value = "repot/cloud-controller-manager-local:dev")]
    cloud_controller_manager_image: String,
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
    /// What guests need.
    #[command(flatten)]
    guests: guests::Flags,
    /// Under which locks the controllers run.
    #[command(flatten)]
    lease: lease::migration::Flags,
}

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&PROVIDER_LOCAL) {
        return answered;
    }
    let flags = Flags::parse();
    let process = Process::new(MANAGER.0);
    runtime::process::run(start(process, flags))
}

async fn start(mut process: Process, flags: Flags) -> Result<(), String> {
    let locks = Locks::assign(&flags.lease, &PROVIDER_LOCAL).map_err(|error| error.to_string())?;
    let guests = flags.guests.open(&locks).await?;
    let seed = Seed::new(connect("--kubeconfig", flags.kubeconfig.as_deref()).await?);
    process.serve_health(flags.health_address);
    let context = Context {
        settings: Settings {
            concurrency: flags.concurrent_syncs,
            shutdown: process.shutdown.clone(),
            metrics: process.metrics.clone(),
            events: Events::new(seed.client().clone(), MANAGER.0),
        },
        seed: seed.clone(),
        cloud_controller_manager_image: flags.cloud_controller_manager_image,
        guests,
    };
    // Also of a process that waits for its lock: it lives, and can take over.
    process.part(
        "heartbeat",
        heartbeat::run(seed.clone(), MANAGER, flags.namespace, flags.identity),
    );
    let health = process.health.clone();
    process.fallible_part("controllers", async move {
        let Settings {
            metrics, shutdown, ..
        } = context.settings.clone();
        let register = |locks: &lease::Metrics| {
            let overdue = locks.clone();
            health.add(move || overdue.overdue());
            metrics.register(|all| locks.register(all));
        };
        locks
            .run(seed.client(), register, shutdown, |names, held| {
                controllers::run(names, context.clone(), held)
            })
            .await
    });
    process.run().await.map_err(|error| error.to_string())
}
