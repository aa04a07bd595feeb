//! The changes of a Shoot that wake the controller of flows, and the controller of the hooks.

use std::{collections::HashMap, future::ready, sync::Arc};

use api::{constants::condition::READY_FOR_MIGRATION, gardencore::Shoot, meta::ConditionStatus};
use futures::StreamExt as _;
use kube::{
    ResourceExt,
    runtime::{Controller, reflector::ObjectRef},
};
use placement::is_hosted;
use runtime::controller::{Change, SharedWatch, runner};

use super::operation_hooks::OperationHooks;

/// The controller of flows.
pub(super) fn flows(shoots: &SharedWatch<Shoot>, hooks: &Arc<dyn OperationHooks>) -> Controller<Shoot> {
    let hooks = Arc::clone(hooks);
    shoots.controller(move |shoot| fingerprint(&*hooks, shoot))
}

/// The controller of the hooks.
pub(super) fn of_hooks(shoots: &SharedWatch<Shoot>, hooks: &Arc<dyn OperationHooks>) -> Controller<Shoot> {
    let (hooks, mut last) = (Arc::clone(hooks), HashMap::new());
    let changed = shoots.subscribe().filter_map(move |change| {
        let wakes = wakes_hooks(&*hooks, &mut last, &change);
        ready(wakes.then(|| change.reference.as_ref().clone()))
    });
    shoots.controller_on(changed)
}

/// Whether the change of a Shoot wakes the controller of the hooks. `last`: the last fingerprint of each
/// Shoot with work for the hooks.
fn wakes_hooks(
    hooks: &dyn OperationHooks,
    last: &mut HashMap<Arc<ObjectRef<Shoot>>, u64>,
    change: &Change<Shoot>,
) -> bool {
    let shoot = change.object.as_deref();
    let own = shoot.and_then(|shoot| Some((shoot, hooks.own_fingerprint(shoot)?)));
    let Some((shoot, own)) = own else {
        last.remove(&change.reference);
        return false;
    };
    let state = runner::fingerprint((shoot.uid(), fingerprint(hooks, shoot), own));
    state.is_none_or(|state| last.insert(Arc::clone(&change.reference), state) != Some(state))
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
        // A creation waits for the reservation.
        status.and_then(|status| status.reserved_domain.as_deref()),
        is_held_back(shoot),
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

/// Whether garden-controller-manager reports an obstacle to the creation. The creation is attempted again
/// when the report ends.
fn is_held_back(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref().filter(|_| !is_hosted(shoot));
    status.is_some_and(|status| !status.last_errors.is_empty())
}

/// Result and message of the preflight; `None` before the first result.
pub(super) fn ready_for_migration(shoot: &Shoot) -> Option<(bool, &str)> {
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    Some((
        constraint.status == ConditionStatus::True,
        constraint.message.as_str(),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::ShootSpec;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_a_reported_obstacle_wakes_the_creation() {
        let with = |status| {
            let mut shoot = Shoot::new("web", ShootSpec::default());
            shoot.status = Some(serde_json::from_value(status).unwrap());
            is_held_back(&shoot)
        };
        let errors = json!([{"description": "Seed a has the taint protected"}]);
        assert!(with(json!({"lastErrors": errors})));
        assert!(!with(json!({"lastErrors": []})));
        // The own reports of the host wake no operation.
        assert!(!with(json!({"seedName": "a", "lastErrors": errors})));
    }
}
