//! State that the ShootState leaves out, reported in constraint `ShootStateComplete` of the Shoot.

use api::{
    constants::condition::SHOOT_STATE_COMPLETE,
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, ErrorCode, find_condition},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use runtime::{Result, client::Cluster, clock, controller::conditions};

use super::sentences::cut;
use crate::{FIELD_MANAGER, Facts};

/// Reason of the constraint, and of the Event, for state that no seed could restore.
pub const STATE_LEFT_OUT: &str = "StateLeftOut";
/// Reason of the constraint, and of the Event, for content of a ShootState that a restore has left out.
pub const STATE_NOT_RESTORED: &str = "StateNotRestored";

/// Most objects that a constraint names: a status is read by every watcher of the Shoot.
const NAMED: usize = 10;

/// The constraint that names the state. `effect`: a sentence without its end, to which the names are added.
#[must_use]
pub fn constraint(effect: &str, left_out: &[String], now: &Time) -> Condition {
    let named: Vec<_> = left_out.iter().take(NAMED).map(String::as_str).collect();
    let message = format!("{effect}: {}.", named.join("; "));
    let (status, reason) = (ConditionStatus::False, STATE_LEFT_OUT);
    let mut constraint = Condition::new(SHOOT_STATE_COMPLETE, status, reason, &message, now.clone());
    constraint.codes = vec![ErrorCode::ErrConfigurationProblem];
    constraint
}

/// Names state that appeared after the check at the start of a move. The move continues, since the API of the
/// shoot may have stopped already.
pub(super) async fn report(f: &Facts, left_out: &[String]) -> Result<()> {
    if left_out.is_empty() {
        return Ok(());
    }
    tracing::warn!(
        left_out = left_out.join("; "),
        "the move goes on without state that no other seed can restore"
    );
    let effect = "The shoot moves without state that appeared after the move had begun, because no other seed can restore it";
    let constraint = constraint(effect, left_out, &clock::now_k8s());
    change_constraints(f, |list| constraint.clone().merge_into(list)).await
}

/// Names content of the ShootState that the restore leaves out, or removes the report of an earlier attempt.
pub(crate) async fn report_unrestored(f: &Facts, left_out: &[String]) -> Result<()> {
    let constraints = f
        .shoot
        .status
        .as_ref()
        .map(|status| status.constraints.as_slice());
    let reported = find_condition(constraints.unwrap_or_default(), SHOOT_STATE_COMPLETE);
    if left_out.is_empty() {
        if reported.is_none_or(|reported| reported.reason != STATE_NOT_RESTORED) {
            return Ok(());
        }
        return change_constraints(f, |list| {
            list.retain(|constraint| constraint.reason != STATE_NOT_RESTORED);
        })
        .await;
    }
    let left_out: Vec<_> = left_out.iter().map(|sentence| cut(sentence)).collect();
    tracing::warn!(
        left_out = left_out.join("; "),
        "the restore goes on without content of the ShootState that no seed collects"
    );
    let constraint = unrestored(&left_out, &clock::now_k8s());
    change_constraints(f, |list| constraint.clone().merge_into(list)).await
}

/// The constraint about content that a restore leaves out.
fn unrestored(left_out: &[String], now: &Time) -> Condition {
    let effect = "The restore has left out content of the ShootState that no seed collects";
    let mut constraint = constraint(effect, left_out, now);
    STATE_NOT_RESTORED.clone_into(&mut constraint.reason);
    constraint
}

async fn change_constraints(f: &Facts, change: impl Fn(&mut Vec<Condition>) + Send + Sync) -> Result<()> {
    let shoots = f.garden.namespaced::<Shoot>(&f.shoot_namespace());
    conditions::change(FIELD_MANAGER, &shoots, &f.shoot.name_any(), "constraints", change)
        .await
        .map(drop)
}
