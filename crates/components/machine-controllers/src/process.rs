//! The process around the controllers of machines: flags, lock, and the owner check of the shoot. A program
//! for a cloud adds a driver and little more.
//!
//! Each shoot has a process in the shoot's namespace. The process reads and writes machine objects in this
//! namespace, Nodes in the shoot, and instances in the account that the machine classes name. All three need
//! the permit of the lock and of the shoot's owner (I3, R17-60).

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use manager::{MACHINE_CONTROLLER_MANAGER, assign, start_controllers};
use owner_checks::{OwnerFlags, while_owned};
use runtime::{
    client::{Connection, Permit, Seed, Shoot, apply::FieldManager},
    controller::{Events, runner::Settings},
    process::Process,
};

use crate::{Context, Driver, Timing};

/// Common flags of these programs.
#[derive(clap::Args)]
// A group would have the name of the type, and the flags of the lock have the same type name.
#[group(skip)]
pub struct Flags {
    /// Kubeconfig of the cluster with the machine objects; the account of the pod if not given.
    #[arg(long)]
    control_kubeconfig: Option<PathBuf>,
    /// Namespace of the machine objects.
    #[arg(long, env = "POD_NAMESPACE")]
    namespace: String,
    /// Kubeconfig of the shoot with the Nodes.
    #[arg(long)]
    target_kubeconfig: PathBuf,
    /// At most so many objects of each kind at the same time.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    concurrent_syncs: u16,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    health_address: SocketAddr,
    /// Flags of the lock for the controllers.
    #[command(flatten)]
    lease: leader_migration::Flags,
    /// Flags of the owner check for the shoot.
    #[command(flatten)]
    owner: OwnerFlags,
}

/// Connects, and runs the controllers under their lock. `manager`: the field manager of all writes; `driver`:
/// creates the driver of the cloud for a permit.
///
/// # Errors
/// A sentence with the remedy for a wrong flag.
pub async fn start<D: Driver>(
    mut process: Process,
    flags: Flags,
    manager: FieldManager,
    driver: impl Fn(&Permit) -> D + Send + Sync + 'static,
) -> Result<Process, String> {
    let locks = assign(&flags.lease, &MACHINE_CONTROLLER_MANAGER).map_err(|error| error.to_string())?;
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
                events: Events::new(runtime::client::Cluster::client(&control).clone(), manager.0),
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
    start_controllers(locks, &mut process, &elections, move |names, permit| {
        let (context, owner) = (Arc::clone(&context), flags.owner.clone());
        async move {
            let watch = owner.watch_owner(&permit).map_err(|error| error.to_string())?;
            // Changes of machines need the permit of the lock and of the shoot's owner (I3, R17-60).
            let run = |right: Permit| crate::run(names.clone(), context(&right));
            Box::pin(while_owned(watch, permit, run)).await
        }
    });
    Ok(process)
}

#[cfg(test)]
mod tests {
    use manager::MACHINE_CONTROLLER_MANAGER;

    /// Otherwise the lock could name a controller that no process runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        assert_eq!(crate::NAMES, MACHINE_CONTROLLER_MANAGER.controllers);
    }
}
