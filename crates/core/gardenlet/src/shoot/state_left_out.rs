//! The Event of a move without the state that no further seed can restore.

use api::{
    constants::condition::SHOOT_STATE_COMPLETE,
    gardencore::Shoot,
    meta::{ConditionStatus, find_condition},
};

use crate::context::Context;

/// Names the state that the source seed has left out of the ShootState: the destination replaces the
/// constraint after the move.
pub(super) async fn report(context: &Context, shoot: &Shoot) {
    let constraints = shoot.status.as_ref().map(|status| status.constraints.as_slice());
    let found = find_condition(constraints.unwrap_or_default(), SHOOT_STATE_COMPLETE);
    if let Some(left_out) = found.filter(|found| found.status == ConditionStatus::False) {
        context
            .garden_events
            .warning(shoot, "StateLeftOut", &left_out.message)
            .await;
    }
}
