//! resource-manager: keeps the objects of ManagedResources in a seed and in its shoots, one process for all
//! of them.
//!
//! A ManagedResource names Secrets; what their data says is applied (server-side apply) to the seed
//! (`spec.class: seed`) or to the shoot whose control plane is in the namespace (no class). What somebody
//! changes or deletes comes back, what is not wanted any more is deleted, and with `spec.keepObjects` nothing
//! is (RX-02, RX-23). Conditions tell how it is. What goes into a shoot goes under the right of its owner
//! (R17-60).
//!
//! | module | what it is for |
//! |---|---|
//! | `manifest` | data of Secrets becomes objects, within bounds |
//! | `object` | names, annotations, order and marks of objects |
//! | `plan`, `health`, `status`, `refusal` | decisions and words, without a client |
//! | `live` | objects as they are in a cluster, without what nobody looks at |
//! | `kinds` | what clusters serve, once for all that serve it alike |
//! | `target` | a cluster that objects go into: connection, back-off |
//! | `watches` | what becomes of objects, in a few bytes for each |
//! | `ledger`, `wakes` | which ManagedResource has to be looked at, and why |
//! | `controller` | read, decide, write |

mod controller;
pub mod flags;
pub mod health;
mod kinds;
mod ledger;
mod live;
pub mod manifest;
pub mod names;
mod numbers;
pub mod object;
pub mod plan;
pub mod refusal;
pub mod status;
mod target;
mod trouble;
mod wakes;
mod watches;

use std::sync::Arc;

use api::resources::ManagedResource;
use kube::{Resource, runtime::watcher};
use owner_checks::SharedChecks;
use runtime::{Cluster, Events, Seed, metrics::Metrics, runner};
use tokio::sync::{Semaphore, mpsc::unbounded_channel};
use tokio_util::sync::CancellationToken;

use self::{
    controller::Controller, flags::Flags, ledger::Ledger, names::NAME, numbers::Numbers, target::Targets,
    watches::Watcher,
};

/// The runner bounds nothing: who waits for a shoot must not keep the others of the seed from being worked
/// on. The controller itself gives each cluster its share.
const UNBOUNDED: u16 = 0;

/// Runs the controller until shutdown, by the right with which the seed is talked to. Dropping the future
/// stops it, with all its watches.
pub async fn run(seed: Seed, flags: Flags, metrics: Metrics, shutdown: CancellationToken) {
    let events = Events::new(seed.client().clone(), NAME);
    let (teller, told) = unbounded_channel();
    // Nobody receives when the process ends.
    let (watcher, watching) = Watcher::new(Arc::new(move |event| drop(teller.send(event))));
    let (ledger, targets) = (
        Arc::<Ledger>::default(),
        Arc::new(Targets::new(seed.clone(), watcher)),
    );
    let controller = runner::controller(
        seed.all::<ManagedResource>(),
        watcher::Config::default(),
        fingerprint,
    )
    .reconcile_on(wakes::by_watches(told, Arc::clone(&ledger), Arc::clone(&targets)))
    .reconcile_on(wakes::by_secrets(
        &seed,
        Arc::clone(&ledger),
        Arc::clone(&targets),
    ));
    let reconciler = Arc::new(Controller {
        seed: seed.clone(),
        owners: SharedChecks::default(),
        targets,
        ledger,
        events: events.clone(),
        numbers: Numbers::new(&metrics),
        work: Semaphore::new(flags.concurrent_syncs.into()),
    });
    let settings = runner::Settings {
        concurrency: UNBOUNDED,
        shutdown,
        permit: seed.permit().clone(),
        metrics,
        events,
    };
    tokio::select! {
        () = runner::run_namespaced(controller, &seed, reconciler, settings) => {}
        () = watching => {}
    }
}

/// Everything of a ManagedResource but its status, which is ours.
fn fingerprint(resource: &ManagedResource) -> Option<u64> {
    let meta = resource.meta();
    let deleted = meta.deletion_timestamp.is_some();
    runner::fingerprint((
        meta.uid.as_ref(),
        meta.generation,
        deleted,
        meta.annotations.as_ref(),
        meta.finalizers.as_ref(),
    ))
}

#[cfg(test)]
mod tests {
    use runtime::Reconciler;

    use super::*;

    /// What can be migrated is what runs (RK-34).
    #[test]
    fn the_controller_has_its_name_in_the_table_of_managers() {
        assert_eq!(leader_migration::RESOURCE_MANAGER.controllers, [Controller::NAME]);
    }
}
