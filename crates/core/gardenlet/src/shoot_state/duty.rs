//! Decides whether a ShootState is kept up to date, and builds the conditions that report the result. Pure.

use api::{
    constants::condition::{SHOOT_STATE_COMPLETE, SHOOT_STATE_NEVER_SYNCED, SHOOT_STATE_UP_TO_DATE},
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, LastOperationState as State, LastOperationType as Type},
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parts::shoot_state::left_out;
use placement::{Role, names, role};
use std::time::Duration;

/// The stage of a shoot with a ShootState that this seed keeps up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The shoot is being created: the shoot has its keys before any data, and a restore needs the keys
    /// (R7-40).
    Creating,
    /// The creation has succeeded once, and the namespace is complete.
    Created,
}

/// The stage of the shoot, if this seed owns the shoot and so keeps the ShootState up to date. During a move,
/// a restore or a deletion, the flow writes the ShootState, and the namespace is incomplete.
pub(super) fn sync_stage(shoot: &Shoot, seed: &str) -> Option<Stage> {
    let status = shoot.status.as_ref()?;
    let last = status.last_operation.as_ref()?;
    let stage = match (last.type_, last.state) {
        (Type::Create | Type::Restore, State::Succeeded) | (Type::Reconcile, _) => Stage::Created,
        (Type::Create, _) => Stage::Creating,
        _ => return None,
    };
    let is_ours = role(shoot, seed) == Role::Owner
        && status.seed_name.as_deref() == Some(seed)
        && names::recorded_technical_id(shoot).is_some()
        && shoot.metadata.deletion_timestamp.is_none();
    is_ours.then_some(stage)
}

/// The condition after a success. `lastUpdateTime` is the age of the ShootState. The time is renewed when the
/// condition is older than `period`, even without a further change, and not more often.
pub(super) fn up_to_date(old: Option<&Condition>, period: Duration, now: &Time) -> Option<Condition> {
    let is_fresh = |old: &Condition| {
        let age = now.0.duration_since(old.last_update_time.0);
        SignedDuration::try_from(period).is_ok_and(|period| age < period)
    };
    let mut new = Condition::new(
        SHOOT_STATE_UP_TO_DATE,
        ConditionStatus::True,
        "ShootStateSynced",
        "The ShootState holds what another seed would need of the shoot, as of the time of this update.",
        now.clone(),
    );
    if let Some(old) = old.filter(|old| old.status == new.status) {
        if is_fresh(old) && old.reason == new.reason && old.message == new.message {
            return None;
        }
        new.last_transition_time = old.last_transition_time.clone();
    }
    Some(new)
}

/// Reports state that the ShootState leaves out, or that there is none any more.
pub(super) fn report_left_out(constraints: &mut Vec<Condition>, named: &[String], now: &Time) {
    if named.is_empty() {
        constraints.retain(|constraint| constraint.type_ != SHOOT_STATE_COMPLETE);
        return;
    }
    let effect = "Another seed could not restore all of the shoot, so that a move is refused and a takeover would lose it";
    left_out::constraint(effect, named, now).merge_into(constraints);
}

/// The reason after a failure. Only a ShootState that was synced once allows a takeover by a different seed.
pub(super) fn not_synced(old: Option<&Condition>) -> &'static str {
    if old.is_none_or(|old| old.reason == SHOOT_STATE_NEVER_SYNCED) {
        SHOOT_STATE_NEVER_SYNCED
    } else {
        "ShootStateNotSynced"
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn shoot(seed: &str, type_: &str, state: &str) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "garden-dev"},
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "b", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": seed, "technicalID": "shoot--dev--web", "uid": "u", "lastOperation": {"type": type_,
                "state": state, "progress": 0, "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"}},
        }))
        .unwrap()
    }

    #[test]
    fn only_what_is_here_and_stays_is_kept() {
        for (type_, state, stage) in [
            ("Create", "Processing", Some(Stage::Creating)),
            ("Create", "Error", Some(Stage::Creating)),
            ("Create", "Succeeded", Some(Stage::Created)),
            ("Reconcile", "Processing", Some(Stage::Created)),
            ("Reconcile", "Failed", Some(Stage::Created)),
            ("Restore", "Processing", None),
            ("Restore", "Succeeded", Some(Stage::Created)),
            ("Migrate", "Processing", None),
            ("Migrate", "Succeeded", None),
            ("Delete", "Error", None),
        ] {
            assert_eq!(
                sync_stage(&shoot("a", type_, state), "a"),
                stage,
                "{type_} {state}"
            );
            let elsewhere = sync_stage(&shoot("a", type_, state), "b");
            assert_eq!(elsewhere, None, "meant for it, and not its own");
        }
        let mut going = shoot("a", "Reconcile", "Succeeded");
        going.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(sync_stage(&going, "a"), None);
    }

    #[test]
    fn left_out_state_is_reported_while_it_is_left_out() {
        let (now, mut constraints) = (Time(jiff::Timestamp::UNIX_EPOCH), Vec::new());
        report_left_out(
            &mut constraints,
            &["the state of Gadget a".into(), "Secret b".into()],
            &now,
        );
        let told = &constraints[0];
        assert_eq!(
            (told.type_.as_str(), told.status),
            (SHOOT_STATE_COMPLETE, ConditionStatus::False)
        );
        assert!(
            told.message.ends_with("the state of Gadget a; Secret b."),
            "{}",
            told.message
        );
        report_left_out(&mut constraints, &[], &now);
        assert!(constraints.is_empty());
    }

    #[test]
    fn the_age_is_written_once_a_period() {
        let at = |second| Time(jiff::Timestamp::from_second(second).unwrap());
        let period = Duration::from_secs(600);
        let first = up_to_date(None, period, &at(0)).unwrap();
        assert_eq!(up_to_date(Some(&first), period, &at(599)), None);
        let later = up_to_date(Some(&first), period, &at(600)).unwrap();
        assert_eq!(
            (later.last_transition_time.0, later.last_update_time.0),
            (at(0).0, at(600).0)
        );
        let mut failing = first;
        failing.status = ConditionStatus::False;
        let again = up_to_date(Some(&failing), period, &at(1)).unwrap();
        assert_eq!(again.last_transition_time.0, at(1).0);
    }

    #[test]
    fn what_was_synced_once_is_not_forgotten() {
        let with = |reason| {
            let (status, now) = (ConditionStatus::False, Time(jiff::Timestamp::UNIX_EPOCH));
            Condition::new(SHOOT_STATE_UP_TO_DATE, status, reason, "", now)
        };
        let first = not_synced(None);
        assert_eq!(first, SHOOT_STATE_NEVER_SYNCED);
        assert_eq!(not_synced(Some(&with(first))), SHOOT_STATE_NEVER_SYNCED);
        let later = not_synced(Some(&with("ShootStateSynced")));
        assert_eq!(later, "ShootStateNotSynced");
        assert_eq!(not_synced(Some(&with(later))), later);
    }
}
