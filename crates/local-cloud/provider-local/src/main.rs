//! The process: reads flags, connects to the seed, runs the controllers.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::Parser;
use extension::{OwnerChecks, heartbeat};
use ipnet::Ipv4Net;
use manager::{PROVIDER_LOCAL, answer_if_asked, assign, start_controllers};
use provider_local::{
    MANAGER, context::Context, control_plane::cloud_controller_manager, controllers, guests,
};
use runtime::{
    client::{Cluster, Connection, Permit, Seed},
    controller::{Events, runner::Settings},
    process::Process,
};

/// Reconciles extension objects of type `local` in a seed.
#[derive(Parser)]
#[command(version)]
struct Flags {
    /// Image of the cloud-controller-manager that runs in the control planes of shoots.
    #[arg(long, default_value = "repot/cloud-controller-manager-local:dev")]
    cloud_controller_manager_image: String,
    /// Range for the addresses of shoots' load balancers; the range must lead to the local cloud. All seeds
    /// of an account should have the same range.
    #[arg(long)]
    load_balancer_range: Option<Ipv4Net>,
    /// Image of the machine-controller-manager that runs in the control planes of shoots with workers.
    #[arg(long, default_value = "repot/machine-controller-manager-local:dev")]
    machine_controller_manager_image: String,
    /// Image of the network agent on machines of shoots.
    #[arg(long, default_value = "repot/network-local:dev")]
    network_image: String,
    /// Maximum number of objects of each kind that are reconciled at the same time.
    #[arg(long, default_value_t = 5)]
    concurrent_syncs: u16,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    health_address: SocketAddr,
    /// Kubeconfig of the seed; the default is the ServiceAccount of the pod.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Namespace of this process in the seed, for the heartbeat.
    #[arg(long, env = "POD_NAMESPACE", default_value = "extension-provider-local")]
    namespace: String,
    /// Name of this process in the heartbeat.
    #[arg(long, env = "POD_NAME", default_value = "provider-local")]
    identity: String,
    /// The inputs of guests.
    #[command(flatten)]
    guests: guests::Flags,
    /// The locks of the controllers.
    #[command(flatten)]
    lease: leader_migration::Flags,
}

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&PROVIDER_LOCAL) {
        return answered;
    }
    let flags = Flags::parse();
    manager::run(MANAGER.0, |process| start(process, flags))
}

async fn start(mut process: Process, flags: Flags) -> Result<Process, String> {
    let locks = assign(&flags.lease, &PROVIDER_LOCAL).map_err(|error| error.to_string())?;
    let guests = flags.guests.open(&locks).await?;
    let connect = || Connection::of_flag("--kubeconfig", flags.kubeconfig.as_deref());
    let (seed, elections) = (connect().await?, connect().await?);
    process.serve_health(flags.health_address);
    let permit = Permit::sole(
        "the heartbeat is also of a process that waits for its lock: it lives, and can take over",
    );
    process.part(
        "heartbeat",
        heartbeat::run(
            Seed::new(seed.clone(), &permit),
            MANAGER,
            flags.namespace,
            flags.identity,
        ),
    );
    let owners = OwnerChecks::new(&process.metrics);
    let (metrics, shutdown) = (process.metrics.clone(), process.shutdown.clone());
    let context = move |permit: &Permit| {
        let seed = Seed::new(seed.clone(), permit);
        Context {
            settings: Settings {
                concurrency: flags.concurrent_syncs,
                shutdown: shutdown.clone(),
                permit: permit.clone(),
                metrics: metrics.clone(),
                events: Events::new(seed.client().clone(), MANAGER.0),
            },
            seed,
            owners: owners.clone(),
            cloud_controller_manager: cloud_controller_manager::Settings {
                image: flags.cloud_controller_manager_image.clone(),
                load_balancer_range: flags.load_balancer_range,
            },
            machine_controller_manager_image: flags.machine_controller_manager_image.clone(),
            network_image: flags.network_image.clone(),
            guests: guests.clone(),
        }
    };
    start_controllers(locks, &mut process, &elections, move |names, permit| {
        controllers::run(names, context(&permit))
    });
    Ok(process)
}
