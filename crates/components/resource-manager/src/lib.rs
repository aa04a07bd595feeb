//! resource-manager: applies the objects of ManagedResources to a seed and to the shoots of the seed, in a
//! single process.
//!
//! A ManagedResource names Secrets with manifests. The controller applies the manifests (server-side apply)
//! to the seed (`spec.class: seed`) or to the shoot with the control plane in the namespace (no class). The
//! controller reverts changes and deletions by other writers, and deletes objects without a manifest. With
//! `spec.keepObjects` the controller deletes no object (RX-02, RX-23). Conditions report the state. Writes to
//! a shoot need the right of the shoot's owner (R17-60).
//!
//! | module | purpose |
//! |---|---|
//! | `manifest` | data of Secrets becomes objects, within bounds |
//! | `object` | identities, annotations, order and marks of objects |
//! | `plan`, `health`, `status`, `refusal` | decisions and texts, without a client |
//! | `live` | objects in a cluster, reduced to the used fields |
//! | `kinds` | the kinds that clusters serve, stored once for equal clusters |
//! | `target` | a target cluster: connection, back-off |
//! | `watches` | the state of objects, in a few bytes for each |
//! | `ledger` | whether a ManagedResource has to be applied again |
//! | `wakes` | the ManagedResources that changes of Secrets and objects wake |
//! | `controller` | chooses between apply, judge and wait, and writes objects and the status |
//! | `trouble` | why an object is not in the wanted state, and the next action |
//! | `flags`, `names`, `numbers` | the command line, names and bounds, metrics |

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
use runtime::{
    client::{Cluster, Seed},
    controller::{Events, runner},
    process::metrics::Metrics,
};
use tokio::sync::{Semaphore, mpsc::unbounded_channel};
use tokio_util::sync::CancellationToken;

use self::{
    controller::Controller, flags::Flags, ledger::Ledger, names::NAME, numbers::Numbers, target::Targets,
    watches::Watcher,
};

/// The runner sets no bound: work that waits for a shoot must not block the remaining ManagedResources of the
/// seed. The controller gives each cluster a share.
const UNBOUNDED: u16 = 0;

/// Runs the controller until shutdown, under the permit of the seed's client. Dropping the future stops the
/// controller with all watches.
pub async fn run(seed: Seed, flags: Flags, metrics: Metrics, shutdown: CancellationToken) {
    let events = Events::new(seed.client().clone(), NAME);
    let (teller, told) = unbounded_channel();
    // The receiver is dropped when the process ends.
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

/// Hash over all parts of a ManagedResource except the status, because this process writes the status.
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
    use runtime::controller::Reconciler;

    use super::*;

    /// The table of managers must name exactly the controllers that run (RK-34).
    #[test]
    fn the_controller_has_its_name_in_the_table_of_managers() {
        assert_eq!(manager::RESOURCE_MANAGER.controllers, [Controller::NAME]);
    }
}
