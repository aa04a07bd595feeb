//! The Event about state of a shoot that a move has not carried: state that no further seed can restore, and
//! content of the ShootState that the restore has left out.

use api::{
    constants::condition::SHOOT_STATE_COMPLETE,
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, find_condition},
};

use crate::context::Context;

/// Names the left-out state, because a later sync replaces the constraint. `reason`: the reason of the
/// constraint for this end of the move. The constraint of the other end was reported by the other seed.
pub(super) async fn report(context: &Context, shoot: &Shoot, reason: &str) {
    if let Some(left_out) = left_out(shoot, reason) {
        context
            .garden_events
            .warning(shoot, reason, &left_out.message)
            .await;
    }
}

fn left_out<'s>(shoot: &'s Shoot, reason: &str) -> Option<&'s Condition> {
    let constraints = shoot.status.as_ref().map(|status| status.constraints.as_slice());
    let found = find_condition(constraints.unwrap_or_default(), SHOOT_STATE_COMPLETE);
    found.filter(|found| found.status == ConditionStatus::False && found.reason == reason)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use parts::shoot_state::left_out::{STATE_LEFT_OUT, STATE_NOT_RESTORED};
    use serde_json::json;

    use super::*;

    /// The constraint of the source is still there at the end of the restore.
    #[test]
    fn each_end_of_a_move_reports_what_it_has_left_out() {
        let shoot = |status: &str, reason: &str| -> Shoot {
            let time = "2026-01-01T00:00:00Z";
            let constraint = json!({"type": SHOOT_STATE_COMPLETE, "status": status, "reason": reason, "message": "m",
                "lastTransitionTime": time, "lastUpdateTime": time});
            serde_json::from_value(json!({
                "metadata": {"name": "web", "namespace": "garden-dev"},
                "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
                "status": {"constraints": [constraint]},
            }))
            .unwrap()
        };
        let reasons = [STATE_LEFT_OUT, STATE_NOT_RESTORED];
        for reason in reasons {
            let reported = shoot("False", reason);
            let found: Vec<_> = reasons
                .into_iter()
                .filter(|reason| left_out(&reported, reason).is_some())
                .collect();
            assert_eq!(found, [reason]);
            assert!(left_out(&shoot("True", reason), reason).is_none());
        }
    }
}
