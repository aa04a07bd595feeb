//! The grant that a Shoot needs now: a pure decision.

use std::time::Duration;

use api::{
    constants::{MIGRATION_PREPARE, condition::GARDENLET_READY},
    gardencore::{Seed, Shoot},
    meta::{ConditionStatus, find_condition},
};
use jiff::Timestamp;
use kube::ResourceExt;
use placement::{Journey, journey, preparation, recorded_preparation};

use crate::shoot_migration::wanted_move;

/// The message of an obstacle to a grant, and of the end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PreparationReport {
    /// CamelCase.
    pub(super) reason: &'static str,
    /// Cause and remedy.
    pub(super) message: String,
}

/// The decision about a Shoot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PreparationDecision {
    /// No request, and no field in the status.
    Nothing,
    /// No request: the fields of the former request are removed.
    Withdraw,
    /// No seed may prepare: a grant is withdrawn, and the condition reports the obstacle.
    Refuse(PreparationReport),
    /// The grant stays for this time.
    Keep(Duration),
    /// The destination gets a grant if the destination could take the shoot.
    Judge,
    /// The request has ended: annotation and grant are removed.
    End(PreparationReport),
}

/// The seed that is to prepare. A Shoot in deletion requests no preparation.
pub(super) fn requested(shoot: &Shoot) -> Option<&str> {
    let seed = shoot.annotations().get(MIGRATION_PREPARE)?.trim();
    (!seed.is_empty() && shoot.metadata.deletion_timestamp.is_none()).then_some(seed)
}

/// Decides by the Shoot, the Seed of the requested name, and the number of grants that a seed may have.
pub(super) fn decide(
    shoot: &Shoot,
    destination: Option<&Seed>,
    limit: u16,
    now: Timestamp,
) -> PreparationDecision {
    let status = shoot.status.as_ref();
    let Some(wanted) = requested(shoot) else {
        return match status.and_then(|status| status.live_migration.as_ref()) {
            Some(_) => PreparationDecision::Withdraw,
            None => PreparationDecision::Nothing,
        };
    };
    let host = status.and_then(|status| status.seed_name.as_deref());
    let host = host.unwrap_or_default();
    if host == wanted {
        return PreparationDecision::End(PreparationReport {
            reason: "ShootHasArrived",
            message: format!("Seed {wanted} has the shoot: the preparation has ended."),
        });
    }
    let expiry = recorded_preparation(shoot).map(|granted| granted.expiry.0);
    if let Some(expiry) = expiry.filter(|expiry| *expiry <= now) {
        return PreparationDecision::End(expired(shoot, expiry));
    }
    if let Some(report) = obstacle(shoot, [host, wanted], destination, limit) {
        return PreparationDecision::Refuse(report);
    }
    let kept = preparation(shoot).filter(|granted| granted.destination == wanted);
    match kept.map(|granted| Duration::try_from(granted.expiry.0.duration_since(now))) {
        Some(rest) => PreparationDecision::Keep(rest.unwrap_or_default()),
        None if journey(shoot) == Journey::Settled => PreparationDecision::Judge,
        None => PreparationDecision::Refuse(PreparationReport {
            reason: "MoveUnderWay",
            message: format!("The shoot is moving: seed {wanted} may prepare when the move has ended."),
        }),
    }
}

/// The end of a request whose grant has expired.
pub(super) fn expired(shoot: &Shoot, expiry: Timestamp) -> PreparationReport {
    let wanted = requested(shoot).unwrap_or_default();
    PreparationReport {
        reason: "Expired",
        message: format!(
            "The preparation in seed {wanted} has expired at {expiry}: set annotation {MIGRATION_PREPARE} again to prepare anew."
        ),
    }
}

/// The end of a request whose grant the host has removed.
pub(super) fn removed_by_host(shoot: &Shoot) -> PreparationReport {
    let status = shoot.status.as_ref();
    let host = status.and_then(|status| status.seed_name.as_deref());
    PreparationReport {
        reason: "EndedByHost",
        message: format!(
            "Seed {} has the shoot, and has ended the preparation in seed {}: set annotation {MIGRATION_PREPARE} again to prepare anew.",
            host.unwrap_or_default(),
            requested(shoot).unwrap_or_default()
        ),
    }
}

/// The obstacle to any grant, new or recorded.
fn obstacle(
    shoot: &Shoot,
    [host, wanted]: [&str; 2],
    destination: Option<&Seed>,
    limit: u16,
) -> Option<PreparationReport> {
    let report = |reason, message| Some(PreparationReport { reason, message });
    if limit == 0 {
        return report(
            "NotEnabled",
            "Preparations are off (--preparations-per-seed of garden-controller-manager is 0). A move without downtime of the \
             API does not exist yet."
                .to_owned(),
        );
    }
    if host.is_empty() {
        return report(
            "ShootNotCreated",
            format!("The shoot is on no seed yet: seed {wanted} may prepare when status.seedName is set."),
        );
    }
    let Some(seed) = destination else {
        return report(
            "DestinationSeedNotFound",
            format!(
                "There is no seed {wanted}: write the name of a Seed into annotation {MIGRATION_PREPARE}."
            ),
        );
    };
    if seed.metadata.deletion_timestamp.is_some() {
        return report(
            "DestinationSeedIsBeingDeleted",
            format!("Seed {wanted} is being deleted: name another seed in annotation {MIGRATION_PREPARE}."),
        );
    }
    if let Some((_, to)) = wanted_move(shoot).filter(|(_, to)| *to != wanted) {
        return report(
            "MoveToDifferentSeed",
            format!(
                "The shoot is to move to seed {to}: name this seed in annotation {MIGRATION_PREPARE}, or cancel the move."
            ),
        );
    }
    let conditions = seed.status.as_ref().map(|status| status.conditions.as_slice());
    let ready = find_condition(conditions.unwrap_or_default(), GARDENLET_READY);
    if ready.is_none_or(|ready| ready.status != ConditionStatus::True) {
        return report(
            "DestinationSeedNotReady",
            format!(
                "The gardenlet of seed {wanted} does not report (condition {GARDENLET_READY} is not True): the seed may prepare when \
                 the gardenlet is back."
            ),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn seed(ready: &str) -> Seed {
        let now = "2026-01-01T00:00:00Z";
        serde_json::from_value(json!({
            "metadata": {"name": "b"},
            "spec": {"dns": {}, "networks": {"pods": "p", "services": "s"}, "provider": {"type": "t", "region": "r"}},
            "status": {"conditions": [{"type": GARDENLET_READY, "status": ready, "lastTransitionTime": now,
                "lastUpdateTime": now, "reason": "R", "message": "m"}]},
        }))
        .unwrap()
    }

    /// A Shoot on seed `a` with a request for seed `b`.
    fn base() -> Value {
        let last = json!({"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        json!({
            "metadata": {"name": "web", "uid": "u", "annotations": {(MIGRATION_PREPARE): "b"}},
            "spec": {"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "ownership": {"epoch": 3}, "lastOperation": last},
        })
    }

    fn shoot(changes: &Value) -> Shoot {
        let mut shoot = base();
        json_patch::merge(&mut shoot, changes);
        serde_json::from_value(shoot).unwrap()
    }

    /// The same with a grant that expires at second 100.
    fn granted(changes: &Value) -> Shoot {
        let mut shoot = base();
        shoot["status"]["liveMigration"] = json!({"preparation": {"uid": "u", "source": "a", "destination": "b",
            "epoch": 3, "expiry": "1970-01-01T00:01:40Z"}});
        json_patch::merge(&mut shoot, changes);
        serde_json::from_value(shoot).unwrap()
    }

    fn reason(decision: &PreparationDecision) -> &'static str {
        match decision {
            PreparationDecision::Refuse(report) | PreparationDecision::End(report) => report.reason,
            PreparationDecision::Nothing => "nothing",
            PreparationDecision::Withdraw => "withdraw",
            PreparationDecision::Keep(_) => "keep",
            PreparationDecision::Judge => "judge",
        }
    }

    fn annotated(seed: &Value) -> Value {
        json!({"metadata": {"annotations": {(MIGRATION_PREPARE): seed}}})
    }

    fn moving_to(seed: &str) -> Value {
        let last = json!({"type": "Migrate", "state": "Processing"});
        json!({"spec": {"seedName": seed}, "status": {"lastOperation": last}})
    }

    /// Each change of the Shoot, with the decision without and with a recorded grant.
    #[test]
    fn a_grant_follows_the_request() {
        let destination = seed("True");
        for (changes, new, recorded) in [
            (json!({}), "judge", "keep"),
            (annotated(&Value::Null), "nothing", "withdraw"),
            (annotated(&json!(" ")), "nothing", "withdraw"),
            (
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
                "nothing",
                "withdraw",
            ),
            (
                json!({"status": {"seedName": "b"}}),
                "ShootHasArrived",
                "ShootHasArrived",
            ),
            // The grant is void, and a new grant needs a new judgement.
            (json!({"status": {"ownership": {"epoch": 4}}}), "judge", "judge"),
            (json!({"metadata": {"uid": "v"}}), "judge", "judge"),
            (
                json!({"status": {"seedName": null}}),
                "ShootNotCreated",
                "ShootNotCreated",
            ),
            (
                json!({"status": {"seedName": "c"}}),
                "MoveToDifferentSeed",
                "MoveToDifferentSeed",
            ),
            // A planned move to the destination ends no grant, and a move to a different seed does.
            (json!({"spec": {"seedName": "b"}}), "judge", "keep"),
            (moving_to("b"), "MoveUnderWay", "keep"),
            (moving_to("c"), "MoveToDifferentSeed", "MoveToDifferentSeed"),
        ] {
            let decided = |shoot: &Shoot| decide(shoot, Some(&destination), 1, at(50));
            assert_eq!(reason(&decided(&shoot(&changes))), new, "{changes}");
            assert_eq!(reason(&decided(&granted(&changes))), recorded, "{changes}");
        }
    }

    /// The annotation names a different seed: the recorded grant is no answer to the request.
    #[test]
    fn a_change_of_the_destination_needs_a_new_judgement() {
        let changed = granted(&annotated(&json!("c")));
        let mut destination = seed("True");
        destination.metadata.name = Some("c".to_owned());
        let decided = decide(&changed, Some(&destination), 1, at(50));
        assert_eq!(decided, PreparationDecision::Judge);
    }

    #[test]
    fn a_grant_ends_at_its_expiry() {
        let (destination, granted) = (seed("True"), granted(&json!({})));
        let decided = |now| decide(&granted, Some(&destination), 1, at(now));
        assert_eq!(decided(99), PreparationDecision::Keep(Duration::from_secs(1)));
        assert_eq!(reason(&decided(100)), "Expired");
        // Also where the shoot could get no new grant.
        assert_eq!(reason(&decide(&granted, None, 0, at(101))), "Expired");
    }

    #[test]
    fn a_grant_ends_with_its_destination_and_with_the_setting() {
        let mut going = seed("True");
        going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        let mut unreported = seed("True");
        unreported.status = None;
        for (destination, limit, expected) in [
            (Some(seed("True")), 0, "NotEnabled"),
            (None, 1, "DestinationSeedNotFound"),
            (Some(going), 1, "DestinationSeedIsBeingDeleted"),
            (Some(seed("Unknown")), 1, "DestinationSeedNotReady"),
            (Some(seed("False")), 1, "DestinationSeedNotReady"),
            (Some(unreported), 1, "DestinationSeedNotReady"),
        ] {
            for shoot in [shoot(&json!({})), granted(&json!({}))] {
                let decided = decide(&shoot, destination.as_ref(), limit, at(50));
                assert_eq!(reason(&decided), expected);
            }
        }
    }
}
