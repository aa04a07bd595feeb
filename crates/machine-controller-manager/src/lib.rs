//! The process around the controllers of `machine-controllers`: flags, lock, and the right of whoever has the
//! shoot. A program for one cloud has a driver and little else.
//!
//! One process a shoot, in the shoot's namespace: it reads and writes machine objects there, Nodes in the
//! shoot, and instances in the account that the machine classes name. All three go by the permit of its lock
//! and of who has the shoot (I3, R17-60).

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use leader_migration::{Locks, MACHINE_CONTROLLER_MANAGER};
use machine_controllers::{Context, Driver, Timing};
use owner_checks::{OwnerFlags, while_owned};
use runtime::{Connection, Events, Permit, Process, Seed, Shoot, apply::FieldManager, runner::Settings};

/// What every such program is told.
#[derive(clap::Args)]
// A group would have the name of the type, which the flags of the lock have, too.
#[group(skip)]
pub struct Flags {
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

/// Connects, and runs the controllers under their lock. `manager`: who writes; `driver`: the cloud, under the
/// right that it is given.
///
/// # Errors
/// A sentence that says what to do about a flag.
pub async fn start<D: Driver>(
    mut process: Process,
    flags: Flags,
    manager: FieldManager,
    driver: impl Fn(&Permit) -> D + Send + Sync + 'static,
) -> Result<Process, String> {
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
                events: Events::new(runtime::Cluster::client(&control).clone(), manager.0),
            },
            control,
            namespace: flags.namespace.clone(),
            shoot: Shoot::new(shoot.clone(), permit),
            driver: Arc::new(driver(permit)),
            manager,
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

#[cfg(test)]
mod tests {
    use leader_migration::MACHINE_CONTROLLER_MANAGER;

    /// A name without a controller would be a controller that nobody runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        assert_eq!(machine_controllers::NAMES, MACHINE_CONTROLLER_MANAGER.controllers);
    }
}
