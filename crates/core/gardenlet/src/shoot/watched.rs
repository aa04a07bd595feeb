//! The watch of all Shoots in the garden, and the changes of a Shoot that wake the controllers.

use std::{collections::HashMap, sync::Arc};

use api::{constants::condition::READY_FOR_MIGRATION, gardencore::Shoot, meta::ConditionStatus};
use futures::{FutureExt as _, StreamExt as _, future, future::BoxFuture};
use kube::{
    ResourceExt,
    runtime::{
        Controller, PredicateConfig, WatchStreamExt as _,
        reflector::{self, Store},
        watcher,
    },
};
use placement::{its_place_alone, remembered};
use runtime::{
    client::{Cluster, Garden},
    controller::runner,
};
use tracing::debug;

use super::{operation_hooks::OperationHooks, pending_shoots::PendingShoots};

/// The controllers of Shoots, and the watch that feeds both.
pub(super) struct WatchedShoots {
    /// The controller of flows.
    pub(super) flows: Controller<Shoot>,
    /// The controller of the hooks.
    pub(super) hooks: Controller<Shoot>,
    /// The cache of all Shoots.
    pub(super) known: Store<Shoot>,
    /// Runs the watch, for as long as the controllers run.
    pub(super) watch: BoxFuture<'static, ()>,
}

/// Watches all Shoots of the garden. A controller without a free slot reads no changes, so the watch runs
/// beside both controllers. The number of Shoots bounds the queue of a controller ([`PendingShoots`]).
pub(super) fn watch(garden: &Garden, hooks: &Arc<dyn OperationHooks>) -> WatchedShoots {
    let (reader, writer) = reflector::store();
    let [flows, hook_changes] = [(); 2].map(|()| Arc::<PendingShoots>::default());
    let (to_flows, to_hooks) = (Arc::clone(&flows), Arc::clone(&hook_changes));
    let (for_flows, for_hooks) = (Arc::clone(hooks), Arc::clone(hooks));
    let mut last = HashMap::new();
    let changes = watcher(garden.all(), runner::few_at_a_time())
        .default_backoff()
        .modify(|shoot: &mut Shoot| {
            shoot.managed_fields_mut().clear();
            remembered(shoot, its_place_alone);
        })
        .reflect(writer)
        .touched_objects()
        .inspect(move |shoot| {
            if let Ok(shoot) = shoot
                && wakes_hook_controller(&*for_hooks, &mut last, shoot)
            {
                to_hooks.add(shoot);
            }
        })
        .predicate_filter(
            move |shoot: &Shoot| fingerprint(&*for_flows, shoot),
            PredicateConfig::default(),
        )
        .for_each(move |shoot| {
            match shoot {
                Ok(shoot) => to_flows.add(&shoot),
                Err(error) => debug!(%error, "the watch of Shoots is begun anew"),
            }
            future::ready(())
        });
    WatchedShoots {
        flows: Controller::for_stream(flows.stream(), reader.clone()),
        hooks: Controller::for_stream(hook_changes.stream(), reader.clone()),
        known: reader,
        watch: changes.boxed(),
    }
}

/// Whether the change of a Shoot wakes the controller of the hooks. `last`: the last fingerprint of each
/// Shoot with work for this controller, by uid.
fn wakes_hook_controller(hooks: &dyn OperationHooks, last: &mut HashMap<String, u64>, shoot: &Shoot) -> bool {
    let uid = shoot.uid().unwrap_or_default();
    let Some(own) = hooks.own_fingerprint(shoot) else {
        last.remove(&uid);
        return false;
    };
    let state = runner::fingerprint((fingerprint(hooks, shoot), own));
    state.is_none_or(|state| last.insert(uid, state) != Some(state))
}

/// The fields of a Shoot that wake the controller of flows. The controller's own writes of progress and
/// errors do not.
fn fingerprint(hooks: &dyn OperationHooks, shoot: &Shoot) -> Option<u64> {
    let status = shoot.status.as_ref();
    runner::fingerprint((
        shoot.metadata.generation,
        shoot.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        shoot.annotations(),
        status.map(|status| (status.seed_name.as_deref(), status.epoch())),
        ready_for_migration(shoot).map(|(ready, message)| (ready, message.to_owned())),
        status
            .and_then(|status| status.migration.as_ref())
            .map(|approval| (&approval.source, &approval.destination, approval.generation)),
        hooks.flow_fingerprint(shoot),
        // A seed that the shoot has left waits for the end of the restore.
        status
            .filter(|status| !status.former_seeds.is_empty())
            .map(|status| {
                let former = status
                    .former_seeds
                    .iter()
                    .map(|former| (&former.name, former.epoch));
                let last = status.last_operation.as_ref();
                let last = last.map(|last| (last.type_.to_string(), last.state.to_string()));
                let phase = status.ownership.as_ref().and_then(|recorded| recorded.phase);
                (
                    former.collect::<Vec<_>>(),
                    last,
                    phase.map(|phase| format!("{phase:?}")),
                )
            }),
    ))
}

/// Result and message of the preflight; `None` before the first result.
pub(super) fn ready_for_migration(shoot: &Shoot) -> Option<(bool, &str)> {
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    Some((
        constraint.status == ConditionStatus::True,
        constraint.message.as_str(),
    ))
}
