//! The share of a shoot in a drain: pure decisions.

use api::{
    constants::condition::READY_FOR_MIGRATION,
    gardencore::Shoot,
    meta::{ConditionStatus, LastOperationState, LastOperationType},
};
use placement::{Journey, is_move_wanted, journey};
use serde_json::json;

use crate::{edit::Edit, failure::Failure, follow::Step, moves::arrival};

/// Reason of a move that waits for a free slot. The wait ends without an action of a user.
const DESTINATION_SEED_BUSY: &str = "DestinationSeedBusy";

/// The share of a shoot in a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// A move is to be requested.
    ToMove,
    /// The shoot is on the way to this seed, or the move is requested.
    Moving(String),
    /// The shoot cannot move now, with the reason.
    LeftOut(String),
}

/// The share of the shoot in a drain of seed `from`. `None`: the drain does not concern the shoot.
pub(super) fn classify(shoot: &Shoot, from: &str) -> Option<Share> {
    let status = shoot.status.as_ref()?;
    let acting = status.seed_name.as_deref().filter(|seed| !seed.is_empty())?;
    let is_settled = journey(shoot) == Journey::Settled;
    if acting != from {
        let source = status.migration.as_ref().map(|approval| approval.source.as_str());
        return (source == Some(from) && !is_settled).then(|| Share::Moving(acting.to_owned()));
    }
    if shoot.metadata.deletion_timestamp.is_some() {
        return Some(Share::LeftOut("the shoot is being deleted".to_owned()));
    }
    if is_move_wanted(shoot) {
        return Some(Share::Moving(shoot.spec.seed_name.clone().unwrap_or_default()));
    }
    if !is_settled {
        return Some(Share::LeftOut(format!(
            "seed {from} takes the shoot back after a cancelled move: repeat the command after Restore Succeeded"
        )));
    }
    let last = status.last_operation.as_ref();
    let is_new = last.is_some_and(|last| {
        last.type_ == LastOperationType::Create && last.state != LastOperationState::Succeeded
    });
    Some(if is_new {
        Share::LeftOut("the creation of the shoot is not at its end: repeat the command later".to_owned())
    } else {
        Share::ToMove
    })
}

/// The end of the wait for a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MoveEnd {
    /// The control plane is complete in the destination.
    Arrived,
    /// The Shoot was deleted meanwhile.
    Deleted,
    /// The garden does not let the move begin, with the reason.
    Obstacle(String),
}

/// Whether the wait for the move ends.
///
/// # Errors
/// The shoot cannot arrive any more ([`arrival`]).
pub(super) fn judge_progress(shoot: Option<&Shoot>, to: &str) -> Result<Step<MoveEnd>, Failure> {
    let Some(read) = shoot else {
        return Ok(Step::Done(MoveEnd::Deleted));
    };
    if let Some(obstacle) = obstacle(read) {
        return Ok(Step::Done(MoveEnd::Obstacle(obstacle)));
    }
    Ok(match arrival(shoot, to)? {
        Step::Done(()) => Step::Done(MoveEnd::Arrived),
        Step::Waiting(state) => Step::Waiting(state),
    })
}

/// The obstacle to a requested move that a user has to remove.
fn obstacle(shoot: &Shoot) -> Option<String> {
    if !is_move_wanted(shoot) || journey(shoot) != Journey::Settled {
        return None;
    }
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    let holds_back =
        constraint.status == ConditionStatus::False && constraint.reason != DESTINATION_SEED_BUSY;
    holds_back.then(|| format!("{}: {}", constraint.reason, constraint.message))
}

/// The edit that takes back a request for a move that has not begun and is not approved.
pub(super) fn decide_withdrawal(shoot: &Shoot, from: &str, to: &str) -> Edit {
    let status = shoot.status.as_ref();
    let is_open = status
        .is_some_and(|status| status.seed_name.as_deref() == Some(from) && status.migration.is_none())
        && shoot.spec.seed_name.as_deref() == Some(to)
        && journey(shoot) == Journey::Settled;
    if is_open {
        Edit::Patch(json!({"spec": {"seedName": from}}))
    } else {
        Edit::Unchanged("The move has begun.".to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shoot(wanted: &str, acting: &str, last: &str, more: &str) -> Shoot {
        let (type_, state) = last.split_once(' ').unwrap();
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: demo}}\nspec: {{region: r, provider: {{type: t}}, seedName: {wanted}}}\n\
             status: {{seedName: {acting}, lastOperation: {{type: {type_}, state: {state}, progress: 1, description: d, \
             lastUpdateTime: 2026-01-01T00:00:00Z}}{more}}}\n"
        ))
        .unwrap()
    }

    const APPROVED: &str = ", migration: {source: a, destination: b, generation: 1, spec: {}}";

    fn not_ready(reason: &str) -> String {
        format!(
            ", constraints: [{{type: ReadyForMigration, status: 'False', reason: {reason}, message: why, \
             lastTransitionTime: 2026-01-01T00:00:00Z, lastUpdateTime: 2026-01-01T00:00:00Z}}]"
        )
    }

    #[test]
    fn the_state_of_a_drain_follows_from_the_shoots() {
        let moving = || Some(Share::Moving("b".to_owned()));
        let from_c = APPROVED.replace("source: a", "source: c");
        for (wanted, acting, last, more, share) in [
            ("a", "a", "Reconcile Succeeded", "", Some(Share::ToMove)),
            // After an interruption: requested, leaving, handed over, restored.
            ("b", "a", "Reconcile Succeeded", "", moving()),
            ("b", "a", "Migrate Processing", APPROVED, moving()),
            ("b", "b", "Migrate Succeeded", APPROVED, moving()),
            ("b", "b", "Restore Processing", APPROVED, moving()),
            ("b", "b", "Restore Succeeded", "", None),
            // A shoot of the destination that a different seed hands over.
            ("b", "b", "Restore Processing", from_c.as_str(), None),
        ] {
            let shoot = shoot(wanted, acting, last, more);
            assert_eq!(classify(&shoot, "a"), share, "{wanted} {acting} {last}");
        }
    }

    #[test]
    fn a_shoot_that_cannot_move_now_is_left_out() {
        let reason = |shoot: &Shoot| match classify(shoot, "a") {
            Some(Share::LeftOut(why)) => why,
            share => format!("{share:?}"),
        };
        let mut deleted = shoot("a", "a", "Reconcile Succeeded", "");
        deleted.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        assert!(reason(&deleted).contains("being deleted"));
        let new = reason(&shoot("a", "a", "Create Processing", ""));
        assert!(new.contains("creation"), "{new}");
        let cancelled = reason(&shoot("a", "a", "Migrate Processing", ""));
        assert!(cancelled.contains("takes the shoot back"), "{cancelled}");
    }

    #[test]
    fn a_lasting_obstacle_ends_the_wait_and_a_queue_does_not() {
        let full = shoot("b", "a", "Reconcile Succeeded", &not_ready("DestinationSeedFull"));
        let end = judge_progress(Some(&full), "b").unwrap();
        assert_eq!(
            end,
            Step::Done(MoveEnd::Obstacle("DestinationSeedFull: why".to_owned()))
        );
        let queued = shoot("b", "a", "Reconcile Succeeded", &not_ready(DESTINATION_SEED_BUSY));
        assert!(matches!(judge_progress(Some(&queued), "b"), Ok(Step::Waiting(_))));
        // The constraint judges a new destination during a move that has begun.
        let leaving = shoot(
            "b",
            "a",
            "Migrate Processing",
            &not_ready("DestinationSeedNotReady"),
        );
        assert!(matches!(
            judge_progress(Some(&leaving), "b"),
            Ok(Step::Waiting(_))
        ));
        assert_eq!(judge_progress(None, "b"), Ok(Step::Done(MoveEnd::Deleted)));
        let there = shoot("b", "b", "Restore Succeeded", ", settledSeedName: b");
        assert_eq!(
            judge_progress(Some(&there), "b"),
            Ok(Step::Done(MoveEnd::Arrived))
        );
    }

    #[test]
    fn only_a_request_that_has_not_begun_is_taken_back() {
        let requested = shoot("b", "a", "Reconcile Succeeded", "");
        assert_eq!(
            decide_withdrawal(&requested, "a", "b"),
            Edit::Patch(json!({"spec": {"seedName": "a"}}))
        );
        for (wanted, acting, last, more) in [
            ("b", "a", "Reconcile Succeeded", APPROVED),
            ("b", "a", "Migrate Processing", ""),
            ("b", "b", "Migrate Succeeded", ""),
            ("c", "a", "Reconcile Succeeded", ""),
        ] {
            let kept = shoot(wanted, acting, last, more);
            let edit = decide_withdrawal(&kept, "a", "b");
            assert!(matches!(edit, Edit::Unchanged(_)), "{edit:?}");
        }
    }
}
