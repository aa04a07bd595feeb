//! State that the ShootState leaves out, reported in constraint `ShootStateComplete` of the Shoot.

use api::{
    constants::condition::SHOOT_STATE_COMPLETE,
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, ErrorCode},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use runtime::{Result, client::Cluster, clock, controller::conditions};

use crate::{FIELD_MANAGER, Facts};

/// Most objects that a constraint names: a status is read by every watcher of the Shoot.
const NAMED: usize = 10;

/// The constraint that names the state. `effect`: a sentence without its end, to which the names are added.
#[must_use]
pub fn constraint(effect: &str, left_out: &[String], now: &Time) -> Condition {
    let named: Vec<_> = left_out.iter().take(NAMED).map(String::as_str).collect();
    let message = format!("{effect}: {}.", named.join("; "));
    let (status, reason) = (ConditionStatus::False, "StateLeftOut");
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
    let shoots = f.garden.namespaced::<Shoot>(&f.shoot_namespace());
    conditions::change(
        FIELD_MANAGER,
        &shoots,
        &f.shoot.name_any(),
        "constraints",
        |list| {
            constraint.clone().merge_into(list);
        },
    )
    .await
    .map(drop)
}
