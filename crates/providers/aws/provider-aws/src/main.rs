//! The process: reads flags, connects to the seed, runs the controllers.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::Parser;
use extension::{OwnerChecks, heartbeat};
use manager::{PROVIDER_AWS, answer_if_asked, assign, start_controllers};
use provider_aws::{
    MANAGER,
    account::AccountAccess,
    control_plane::cloud_controller_manager::CloudControllerManagerSettings,
    controllers::{self, Context},
};
use runtime::{
    client::{Cluster, Connection, Permit, Seed},
    controller::{Events, runner::Settings},
    process::Process,
    workload::Variable,
};

/// Reconciles extension objects of type `aws` in a seed.
#[derive(Parser)]
#[command(version)]
struct Flags {
    /// Endpoint of EC2 in place of the endpoint of each region. For tests.
    #[arg(long)]
    ec2_endpoint: Option<String>,
    /// Image of the machine-controller-manager of each shoot, with a tag.
    #[arg(long)]
    machine_controller_manager_image: String,
    /// Image of the cloud-controller-manager of each shoot, with a tag. Without the flag no shoot has a
    /// cloud-controller-manager, and kubelets start without `--cloud-provider=external`.
    #[arg(long)]
    cloud_controller_manager_image: Option<String>,
    /// A variable of the environment of each machine-controller-manager, `NAME=VALUE`, such as `HTTPS_PROXY`
    /// where EC2 is behind a proxy.
    #[arg(long = "machine-controller-manager-env", value_name = "NAME=VALUE")]
    machine_controller_manager_env: Vec<Variable>,
    /// At most so many objects of each kind at the same time.
    #[arg(long, default_value_t = 5)]
    concurrent_syncs: u16,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    health_address: SocketAddr,
    /// Kubeconfig of the seed; the account of the pod if not given.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Namespace of this process in the seed, for the heartbeat.
    #[arg(long, env = "POD_NAMESPACE", default_value = "extension-provider-aws")]
    namespace: String,
    /// Name of this process in the heartbeat.
    #[arg(long, env = "POD_NAME", default_value = "provider-aws")]
    identity: String,
    /// The locks of the controllers.
    #[command(flatten)]
    lease: leader_migration::Flags,
}

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&PROVIDER_AWS) {
        return answered;
    }
    let flags = Flags::parse();
    manager::run(MANAGER.0, |process| start(process, flags))
}

async fn start(mut process: Process, flags: Flags) -> Result<Process, String> {
    let locks = assign(&flags.lease, &PROVIDER_AWS).map_err(|error| error.to_string())?;
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
    let place = AccountAccess::new(flags.ec2_endpoint);
    let cloud_controller_manager =
        flags
            .cloud_controller_manager_image
            .map(|image| CloudControllerManagerSettings {
                image,
                endpoint: place.access.endpoint().map(str::to_owned),
                environment: flags.machine_controller_manager_env.clone(),
            });
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
            place: place.clone(),
            cloud_controller_manager: cloud_controller_manager.clone(),
            machine_controller_manager_image: flags.machine_controller_manager_image.clone(),
            machine_controller_manager_env: flags.machine_controller_manager_env.clone(),
        }
    };
    start_controllers(locks, &mut process, &elections, move |names, permit| {
        controllers::run(names, context(&permit))
    });
    Ok(process)
}
