//! What the shoot controller sees of all Shoots of the garden: enough to know when one concerns it.

use api::{constants::condition::READY_FOR_MIGRATION, gardencore::Shoot, meta::ConditionStatus};
use kube::{ResourceExt, runtime::Controller};
use placement::{its_place_alone, remembered};
use runtime::{Cluster, Garden, runner};

/// Watches all of them. A step reads its Shoot anew.
pub(super) fn controller(garden: &Garden) -> Controller<Shoot> {
    let slim = |shoot: &mut Shoot| remembered(shoot, its_place_alone);
    runner::controller_of(garden.all(), runner::few_at_a_time(), slim, wakes)
}

/// What of a Shoot wakes the controller: not its own writes of progress and errors.
fn wakes(shoot: &Shoot) -> Option<u64> {
    let status = shoot.status.as_ref();
    runner::fingerprint((
        shoot.metadata.generation,
        shoot.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        shoot.annotations(),
        // Its own seed may be given it anew.
        status.map(|status| (status.seed_name.as_deref(), status.epoch())),
        ready_for_migration(shoot).map(|(ready, message)| (ready, message.to_owned())),
        status
            .and_then(|status| status.migration.as_ref())
            .map(|approval| (&approval.source, &approval.destination, approval.generation)),
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
