//! What the shoot controller sees of all Shoots of the garden: enough to know when one concerns it.

use std::{collections::HashMap, sync::Arc};

use api::{constants::condition::READY_FOR_MIGRATION, gardencore::Shoot, meta::ConditionStatus};
use futures::{FutureExt as _, StreamExt as _, future, future::BoxFuture};
use kube::{
    ResourceExt,
    runtime::{Controller, PredicateConfig, WatchStreamExt as _, reflector, watcher},
};
use placement::{
    isolation::{asked_zone, asks_to_close_now},
    its_place_alone, remembered,
};
use runtime::{Cluster, Garden, runner};
use tracing::debug;

use super::pending_shoots::PendingShoots;

/// The controllers of Shoots, and the watch that feeds both.
pub(super) struct WatchedShoots {
    /// The controller of flows.
    pub(super) flows: Controller<Shoot>,
    /// The controller of deadlines.
    pub(super) deadlines: Controller<Shoot>,
    /// Runs the watch, for as long as the controllers run.
    pub(super) watch: BoxFuture<'static, ()>,
}

/// Watches all Shoots of the garden. A controller without a free slot reads no changes, so the watch runs
/// beside both controllers. The number of Shoots bounds the queue of a controller ([`PendingShoots`]).
pub(super) fn watch(garden: &Garden) -> WatchedShoots {
    let (reader, writer) = reflector::store();
    let [flows, deadlines] = [(); 2].map(|()| Arc::<PendingShoots>::default());
    let (to_flows, to_deadlines) = (Arc::clone(&flows), Arc::clone(&deadlines));
    let mut zones = HashMap::new();
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
                && wakes_deadlines(&mut zones, shoot)
            {
                to_deadlines.add(shoot);
            }
        })
        .predicate_filter(wakes, PredicateConfig::default())
        .for_each(move |shoot| {
            match shoot {
                Ok(shoot) => to_flows.add(&shoot),
                Err(error) => debug!(%error, "the watch of Shoots is begun anew"),
            }
            future::ready(())
        });
    WatchedShoots {
        flows: Controller::for_stream(flows.stream(), reader.clone()),
        deadlines: Controller::for_stream(deadlines.stream(), reader),
        watch: changes.boxed(),
    }
}

/// Whether the change of a Shoot wakes the controller of deadlines. `zones`: the last state of each Shoot
/// that asks for a zone, or has a request to close a network.
fn wakes_deadlines(zones: &mut HashMap<String, u64>, shoot: &Shoot) -> bool {
    let uid = shoot.uid().unwrap_or_default();
    let asks = asked_zone(shoot).is_some() || asks_to_close_now(shoot);
    if !asks || shoot.metadata.deletion_timestamp.is_some() {
        zones.remove(&uid);
        return false;
    }
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let zone = status.and_then(|status| status.zone_isolation.as_ref());
    let state = runner::fingerprint((
        wakes(shoot),
        last.map(|last| last.type_.to_string()),
        zone.map(|zone| format!("{:?} {:?}", zone.phase, zone.status)),
    ));
    state.is_none_or(|state| zones.insert(uid, state) != Some(state))
}

/// What of a Shoot wakes the controller: not its own writes of progress and errors.
fn wakes(shoot: &Shoot) -> Option<u64> {
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
        // The controller of deadlines has admitted a failover.
        status
            .and_then(|status| status.zone_isolation.as_ref()?.close_deadline_time.as_ref())
            .map(|time| time.0),
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

/// What the preflight says, if it has judged.
pub(super) fn ready_for_migration(shoot: &Shoot) -> Option<(bool, &str)> {
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    Some((
        constraint.status == ConditionStatus::True,
        constraint.message.as_str(),
    ))
}
