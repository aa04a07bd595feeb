//! The process: reads flags, waits for its lock, runs the controllers.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc};

use clap::Parser;
use leader_migration::{Locks, MACHINE_CONTROLLER_MANAGER, answer_if_asked, manager};
use machine_controller_manager_local::{MANAGER, driver::LocalDriver};
use machine_controllers::{Context, Timing};
use owner_checks::{OwnerFlags, while_owned};
use runtime::{Connection, Events, Permit, Process, Seed, Shoot, runner::Settings};

/// Looks after the machines of one shoot in the local cloud.
#[derive(Parser)]
#[command(version)]
struct Flags {
    /// Kubeconfig of the cluster with the machine objects; the account of the pod if not given.
    #[arg(long)]
    control_kubeconfig: Option<PathBuf>,
    /// Namespace of the machine objects.
    #[arg(long, env = "POD_NAMESPACE")]
    namespace: String,
    /// Kubeconfig of the shoot, which has the Nodes.
    #[arg(long)]
    target_kubeconfig: PathBuf,
    /// At most so many objects of each kind at the same time.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    concurrent_syncs: u16,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    health_address: SocketAddr,
    /// Under which lock the controllers run.
    #[command(flatten)]
    lease: leader_migration::Flags,
    /// Who must have the shoot.
    #[command(flatten)]
    owner: OwnerFlags,
}

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&MACHINE_CONTROLLER_MANAGER) {
        return answered;
    }
    let flags = Flags::parse();
    manager::run(MANAGER.0, |process| start(process, flags))
}

async fn start(mut process: Process, flags: Flags) -> Result<Process, String> {
    let locks =
        Locks::assign(&flags.lease, &MACHINE_CONTROLLER_MANAGER).map_err(|error| error.to_string())?;
    let control = || Connection::of_flag("--control-kubeconfig", flags.control_kubeconfig.as_deref());
    let (control, elections) = (control().await?, control().await?);
    let shoot = Connection::of_flag("--target-kubeconfig", Some(&flags.target_kubeconfig)).await?;
    process.serve_health(flags.health_address);
    let (metrics, shutdown) = (process.metrics.clone(), process.shutdown.clone());
    let context = move |permit: &Permit| {
        let control = Seed::new(control.clone(), permit);
        Context {
            settings: Settings {
                concurrency: flags.concurrent_syncs,
                shutdown: shutdown.clone(),
                permit: permit.clone(),
                metrics: metrics.clone(),
                events: Events::new(runtime::Cluster::client(&control).clone(), MANAGER.0),
            },
            control,
            namespace: flags.namespace.clone(),
            shoot: Shoot::new(shoot.clone(), permit),
            driver: Arc::new(LocalDriver::new(permit)),
            manager: MANAGER,
            timing: Timing::default(),
        }
    };
    let context = Arc::new(context);
    locks.start(&mut process, &elections, move |names, permit| {
        let (context, owner) = (Arc::clone(&context), flags.owner.clone());
        async move {
            let held = owner.held(&permit).map_err(|error| error.to_string())?;
            // The right to touch machines is that of the lock and of who has the shoot (I3, R17-60).
            let run = |right: Permit| machine_controllers::run(names.clone(), context(&right));
            Box::pin(while_owned(held, permit, run)).await
        }
    });
    Ok(process)
}
