//! Decides why a shoot may not be taken over: pure, in the order in which users fix the obstacles.

use std::time::Duration;

use api::{
    constants::{FORCE_RESTORE_SOURCE_IS_OFF, SHOOT_FORCE_RESTORE, condition::READY_FOR_MIGRATION},
    gardencore::{Seed, Shoot, ShootStatus, seed::OwnerChecks, shoot::ApprovedBy},
    meta::{LastOperationState as State, find_condition},
};
use jiff::Timestamp;
use kube::ResourceExt as _;
use ownership::{Ownership, Phase};
use placement::{
    Journey, journey,
    takeover::{EtcdFenceGap, find_etcd_fence_gap, is_state_saved},
};

use super::{host_clock, next_step::consent, servers, sightings::Silence};
use crate::shoot_migration::{Obstacle, Verdict, wanted_move};

/// An operation without progress for this long is stuck: much longer than any task between two writes of its
/// progress.
pub const STALLED_AFTER: Duration = Duration::from_secs(600);
/// A failing migration whose attempts make no progress for this long is stuck. Longer than the pause between
/// two attempts after the first errors. Much shorter than [`STALLED_AFTER`], which applies to a migration
/// that reports no error.
pub const FAILING_AFTER: Duration = Duration::from_secs(60);

/// The input of a decision about a shoot.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The shoot, read just before the decision.
    pub shoot: &'a Shoot,
    /// The seed that owns the shoot, if its Seed still exists.
    pub source: Option<&'a Seed>,
    /// The destination seed.
    pub destination: Option<&'a Seed>,
    /// The result of the preflight, which does not check the source's health.
    pub verdict: Option<&'a Verdict>,
    /// Silence of the source's gardenlet.
    pub silence: Silence,
    /// How long the requested move and the operation have been unchanged.
    pub unchanged: Duration,
    /// How long no attempt of the operation has got further than every attempt before. At least as long as
    /// `unchanged`.
    pub without_progress: Duration,
    /// The silence after which no approval of an operator is needed; `None`: an approval is always needed.
    pub grace: Option<Duration>,
    /// The current time, for expiries.
    pub now: Timestamp,
}

impl Facts<'_> {
    /// Whether an operator states that no process of the source runs any more: in the approval in use, or in
    /// the annotation that requests an approval.
    #[must_use]
    pub fn source_is_off(&self) -> bool {
        consent(self.shoot).is_some_and(|approval| approval.source_is_off) || states_source_is_off(self.shoot)
    }
}

/// Whether the annotation states that no process of the source runs any more.
#[must_use]
pub fn states_source_is_off(shoot: &Shoot) -> bool {
    let value = shoot.annotations().get(SHOOT_FORCE_RESTORE);
    value.is_some_and(|value| value == FORCE_RESTORE_SOURCE_IS_OFF)
}

/// The source, the destination and the ownership of a takeover.
pub type TakeoverRoute<'a> = (&'a str, &'a str, Ownership<String>);

/// The route of a takeover, or the obstacle that prevents every takeover regardless of the requester.
///
/// # Errors
/// [`Obstacle::Passing`] while the destination is temporarily not ready.
pub fn route<'a>(facts: &Facts<'a>) -> Result<TakeoverRoute<'a>, Obstacle> {
    let route = route_between_seeds(facts).map_err(Obstacle::Final)?;
    check_destination(facts)?;
    Ok(route)
}

/// Like [`route`], also while the destination is temporarily not ready. The source stays dead meanwhile, so
/// neither a request nor an approval may be lost. Examples are a destination that is restarted, or that still
/// cleans up after an earlier move.
///
/// # Errors
/// A sentence that names a final obstacle.
pub fn route_after_recovery<'a>(facts: &Facts<'a>) -> Result<TakeoverRoute<'a>, String> {
    let route = route_between_seeds(facts)?;
    match check_destination(facts) {
        Ok(()) | Err(Obstacle::Passing(..)) => Ok(route),
        Err(Obstacle::Final(why)) => Err(why),
    }
}

/// The verdict of the preflight on the destination.
fn check_destination(facts: &Facts<'_>) -> Result<(), Obstacle> {
    let Some(verdict) = facts.verdict else {
        let why = "it was not judged whether the destination can take it";
        return Err(Obstacle::Final(why.to_owned()));
    };
    verdict.obstacle().map_or(Ok(()), Err)
}

/// The route by the Shoot and the two Seeds, without the verdict on the destination.
fn route_between_seeds<'a>(facts: &Facts<'a>) -> Result<TakeoverRoute<'a>, String> {
    let shoot = facts.shoot;
    if shoot.metadata.deletion_timestamp.is_some() {
        return Err("the shoot is being deleted".to_owned());
    }
    let Some((from, to)) = wanted_move(shoot) else {
        return Err(
            "the shoot is to move nowhere: set spec.seedName to the seed that is to take it over".to_owned(),
        );
    };
    // Such a restore would wait for a snapshot without end, and no further move or deletion could follow.
    if placement::is_half_created(shoot) {
        return Err(format!(
            "seed {from} has not reported the end of the creation, so no backup is known from which seed {to} could restore the shoot: \
             delete the Shoot; if the shoot has run all the same, set status.lastOperation.type of the Shoot to Reconcile by hand"
        ));
    }
    let now = placement::ownership_status::ownership(shoot).map_err(|error| error.to_string())?;
    if let Some(why) = without_owner_checks(facts, from, to) {
        return Err(why);
    }
    // The setting in the Seed is the current setting; a seed that was cut off before the setting arrived runs
    // without an owner check.
    let serves_nobody = placement::is_asleep_on_request(shoot) || now.phase == Phase::Claiming;
    let tolerates = facts
        .source
        .and_then(|seed| seed.spec.owner_checks())
        .is_some_and(OwnerChecks::tolerates_silence);
    // A source without running processes needs no fence.
    let needs_no_fence = serves_nobody || facts.source_is_off();
    if let Some(why) = unfenced(shoot, tolerates).filter(|_| !needs_no_fence) {
        return Err(format!(
            "without a fence two control planes could write: seed {from} {why} (condition OwnershipVerified); if you know that no \
             process of seed {from} runs any more, state that with {SHOOT_FORCE_RESTORE}={FORCE_RESTORE_SOURCE_IS_OFF}"
        ));
    }
    if let (Some(source), Some(destination)) = (facts.source, facts.destination)
        && !facts.source_is_off()
    {
        let why = servers::obstacle(shoot, source, destination, now.phase != Phase::Claiming);
        if let Some(why) = why.or_else(|| servers::obstacle_of_former_seeds(shoot, source, destination)) {
            return Err(why);
        }
    }
    if !is_state_saved(shoot) {
        return Err(format!(
            "no seed could restore it: seed {from} has never saved its keys into the garden (constraint ShootStateUpToDate); if the \
             shoot's ShootState has them all the same, set that constraint by hand"
        ));
    }
    Ok((from, to, now))
}

/// Names the Seed without owner checks: without these checks two control planes could write. The source needs
/// no owner checks if an operator states that the source is off. A seed could otherwise switch the owner
/// checks off, and no operator could take a shoot from the seed.
fn without_owner_checks(facts: &Facts<'_>, from: &str, to: &str) -> Option<String> {
    let lacks = |seed: Option<&Seed>| !seed.is_some_and(|seed| seed.spec.checks_owners());
    let needs_no_source = facts.source.is_some() && facts.source_is_off();
    let (name, remedy) = if lacks(facts.source) && !needs_no_source {
        let remedy = format!(
            "; if Seed {from} exists, and you know that no process of seed {from} runs any more, state that with \
             {SHOOT_FORCE_RESTORE}={FORCE_RESTORE_SOURCE_IS_OFF}"
        );
        (from, remedy)
    } else if lacks(facts.destination) {
        (to, String::new())
    } else {
        return None;
    };
    Some(format!(
        "without a fence two control planes could write: seed {name} does not say in DNS which shoots are its own \
         (spec.settings.ownerChecks.enabled, on both seeds, before the source fails){remedy}"
    ))
}

/// The text for an etcd of the source that waiting cannot fence; `None` if waiting can. See
/// [`find_etcd_fence_gap`].
fn unfenced(shoot: &Shoot, tolerates: bool) -> Option<&'static str> {
    Some(match find_etcd_fence_gap(shoot, tolerates)? {
        EtcdFenceGap::NeverReported => "has never told whether it asks who owns the shoot",
        EtcdFenceGap::OutlastsFence => {
            "serves the shoot for longer than a fence lasts while nobody confirms it"
        }
        EtcdFenceGap::ToleratesSilence => {
            "is to serve the shoot for as long as nobody says that it is lost (ownerChecks.silence: Tolerate)"
        }
    })
}

/// Whether the approver `by` may decide that the source is dead: a living source may complete the move
/// itself.
///
/// # Errors
/// The obstacle.
pub fn source_is_dead(facts: &Facts<'_>, by: ApprovedBy) -> Result<(), Obstacle> {
    let begun = journey(facts.shoot) != Journey::Settled;
    match by {
        ApprovedBy::Silence => is_silent_for_long(facts, begun),
        ApprovedBy::Operator if facts.source_is_off() => is_off(facts),
        ApprovedBy::Operator => is_silent_or_stuck(facts, begun),
    }
}

/// A source that writes to the Shoot is alive, regardless of its Lease: only an operator may take a shoot
/// from such a source.
fn is_silent_for_long(facts: &Facts<'_>, begun: bool) -> Result<(), Obstacle> {
    if let Some(why) = host_clock::obstacle_to_silence(facts.shoot) {
        return Err(Obstacle::Final(why));
    }
    let stalled = begun && facts.unchanged >= STALLED_AFTER;
    match facts.silence {
        Silence::Silent(silent) => {
            let grace = facts.grace.filter(|grace| silent >= *grace);
            if grace.is_some() && (!begun || stalled) {
                return Ok(());
            }
            Err(Obstacle::Final(
                "the source's silence is not long enough".to_owned(),
            ))
        }
        Silence::Fresh => Err(Obstacle::Final(
            "the source's gardenlet was heard again".to_owned(),
        )),
        Silence::Unknown(left) => Err(unknown(left)),
    }
}

/// A gardenlet that renews its Lease contradicts the operator's statement.
fn is_off(facts: &Facts<'_>) -> Result<(), Obstacle> {
    match facts.silence {
        Silence::Silent(_) => Ok(()),
        Silence::Unknown(left) => Err(unknown(left)),
        Silence::Fresh => Err(Obstacle::Final(format!(
            "the source is not off: its gardenlet renewed its Lease within the monitor period; stop all processes of the source and ask \
             again, or ask with {SHOOT_FORCE_RESTORE}=true, which waits for a fence"
        ))),
    }
}

fn is_silent_or_stuck(facts: &Facts<'_>, begun: bool) -> Result<(), Obstacle> {
    let stuck_for = facts.without_progress;
    let fails = is_failing(facts.shoot);
    match facts.silence {
        Silence::Silent(_) => Ok(()),
        _ if begun && stuck_for >= STALLED_AFTER => Ok(()),
        _ if fails && stuck_for >= FAILING_AFTER => Ok(()),
        _ if fails => Err(Obstacle::Passing(
            format!(
                "the source's migration fails, and one of its attempts got further than before {} s ago",
                stuck_for.as_secs()
            ),
            FAILING_AFTER.saturating_sub(stuck_for),
        )),
        Silence::Unknown(left) => Err(unknown(left)),
        Silence::Fresh => Err(Obstacle::Final(format!(
            "the source's gardenlet lives: it renews its Lease{}; let it hand the shoot over, or stop it",
            if begun {
                format!(
                    ", reports no error, and its operation has made no progress for {} s only, not for {} s",
                    stuck_for.as_secs(),
                    STALLED_AFTER.as_secs()
                )
            } else {
                " and has not begun".to_owned()
            }
        ))),
    }
}

fn unknown(left: Duration) -> Obstacle {
    Obstacle::Passing(
        "the source's Lease is not watched for long enough to say whether its gardenlet lives".to_owned(),
        left,
    )
}

/// Whether the source's migration has failed and was not completed since. The state alternates between
/// `Error` and `Processing` while the migration is retried; the errors stay until an attempt ends without an
/// error. An error that repeats the result of the preflight concerns the destination.
#[must_use]
pub fn is_failing(shoot: &Shoot) -> bool {
    let Some(status) = shoot
        .status
        .as_ref()
        .filter(|_| journey(shoot) == Journey::Leaving)
    else {
        return false;
    };
    match status.last_operation.as_ref().map(|last| last.state) {
        Some(State::Error | State::Failed) => true,
        Some(State::Processing) => has_errors_of_source(status),
        _ => false,
    }
}

fn has_errors_of_source(status: &ShootStatus) -> bool {
    let preflight = find_condition(&status.constraints, READY_FOR_MIGRATION);
    let is_preflight = |error: &str| preflight.is_some_and(|told| told.message == error);
    let mut errors = status.last_errors.iter();
    errors.any(|error| !is_preflight(&error.description))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::constants::condition::{
        NEVER_ANSWERED, OUTLASTS_FENCE, OWNERSHIP_VERIFIED, SHOOT_STATE_NEVER_SYNCED, SHOOT_STATE_UP_TO_DATE,
    };
    use placement::takeover::REPORTED_BY_A_SEED;
    use serde_json::{Value, json};

    use super::*;
    use crate::shoot_takeover::{decision::decide, next_step::Decision};

    const NOW: &str = "2026-01-02T00:00:00Z";

    fn seed(name: &str) -> Seed {
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": name},
            "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                "provider": {"type": "local", "region": "local"}, "settings": {"ownerChecks": {"enabled": true}}},
        }))
        .unwrap()
    }

    fn conditions_with(type_: &str, reason: &str) -> Value {
        json!([{"type": type_, "status": "Unknown", "reason": reason, "message": "m", "lastTransitionTime": NOW,
            "lastUpdateTime": NOW}])
    }

    fn asked(conditions: &Value) -> Decision {
        asked_having(
            conditions,
            &conditions_with(SHOOT_STATE_UP_TO_DATE, "ShootStateNotSynced"),
        )
    }

    /// The seed of the shoot has been dead for hours, and a user requests a takeover.
    fn asked_having(conditions: &Value, constraints: &Value) -> Decision {
        let mut conditions = conditions.clone();
        let complete = json!({"type": "OwnerChecksComplete", "status": "True", "reason": "TermsApplied", "message": "m",
            "lastTransitionTime": NOW, "lastUpdateTime": NOW});
        conditions.as_array_mut().unwrap().push(complete);
        let terms = placement::owner_terms::hash(&seed("a"), 1);
        let entry = json!({"seedName": "a", "epoch": 1, "serversNamed": false, "terms": terms});
        let shoot: Shoot = serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "web", "uid": "u-1", "annotations": {"shoot.gardener.cloud/force-restore": "true"}},
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "b", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "a", "technicalID": "t", "uid": "u", "conditions": conditions, "constraints": constraints,
                "ownerChecks": [entry],
                "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "d",
                    "lastUpdateTime": "2026-01-01T00:00:00Z"}},
        }))
        .unwrap();
        let verdict = Verdict {
            ready: true,
            reason: "R",
            message: String::new(),
        };
        let hours = Duration::from_secs(3 * 3600);
        decide(&Facts {
            shoot: &shoot,
            source: Some(&seed("a")),
            destination: Some(&seed("b")),
            verdict: Some(&verdict),
            silence: Silence::Silent(hours),
            unchanged: hours,
            without_progress: hours,
            grace: None,
            now: NOW.parse().unwrap(),
        })
    }

    /// The last report of a dead seed becomes old, or was already old when its gardenlet died after its
    /// etcd-druid. The seed is fenced all the same. A seed that outlasts every fence remains so regardless of
    /// the age of its report.
    #[test]
    fn how_old_the_word_of_a_dead_seed_is_does_not_matter() {
        for time in [
            "2026-01-01T23:59:30Z",
            "2026-01-01T23:54:00Z",
            "2025-06-01T00:00:00Z",
            "2026-01-03T00:00:00Z",
        ] {
            let told = |status: &str, reason: &str| {
                asked(
                    &json!([{"type": OWNERSHIP_VERIFIED, "status": status, "reason": reason, "message": "m",
                    "lastTransitionTime": time, "lastUpdateTime": time}]),
                )
            };
            for (status, reason) in [
                ("True", "Owner"),
                ("Unknown", "NotToldAnew"),
                ("Unknown", "NotConfirmed"),
                ("Unknown", "NoAnswer"),
                ("False", "Lost"),
            ] {
                let decision = told(status, reason);
                let approved =
                    matches!(&decision, Decision::Approve(approval) if approval.by == ApprovedBy::Operator);
                assert!(approved, "{time} {status} {reason}: {decision:?}");
            }
            for status in ["True", "Unknown"] {
                let decision = told(status, OUTLASTS_FENCE);
                let refused = matches!(&decision, Decision::Refuse(_, why) if why.contains("for longer than a fence lasts"));
                assert!(refused, "{time} {status}: {decision:?}");
            }
        }
        let never = json!([{"type": OWNERSHIP_VERIFIED, "status": "Unknown", "reason": NEVER_ANSWERED, "message": "m",
            "lastTransitionTime": NOW, "lastUpdateTime": NOW}]);
        for untold in [json!([]), never] {
            let decision = asked(&untold);
            assert!(
                matches!(&decision, Decision::Refuse(_, why) if why.contains("has never told")),
                "{decision:?}"
            );
        }
    }

    /// R7-40: the shoot's keys were saved once, at any time, or an operator states so; otherwise the shoot
    /// could not be restored.
    #[test]
    fn what_nobody_could_restore_is_left_to_its_seed() {
        let verified = conditions_with(OWNERSHIP_VERIFIED, "Owner");
        let decide = |constraints: &Value| asked_having(&verified, constraints);
        for never in [
            json!([]),
            conditions_with(SHOOT_STATE_UP_TO_DATE, SHOOT_STATE_NEVER_SYNCED),
        ] {
            let decision = decide(&never);
            assert!(
                matches!(&decision, Decision::Refuse(_, why) if why.contains("seed a has never saved its keys")),
                "{decision:?}"
            );
        }
        for once in ["ShootStateSynced", "ShootStateNotSynced", "KeysAreThere"] {
            let decision = decide(&conditions_with(SHOOT_STATE_UP_TO_DATE, once));
            assert!(matches!(decision, Decision::Approve(_)), "{once}: {decision:?}");
        }
    }

    fn having_told(reason: &str) -> Shoot {
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"conditions": [{"type": OWNERSHIP_VERIFIED, "status": "Unknown", "reason": reason, "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}]},
        }))
        .unwrap()
    }

    /// The Seed may tolerate silence before the shoot's etcd has reported the setting, and for ever if the
    /// seed was cut off in between.
    #[test]
    fn beside_a_seed_that_bears_silence_only_the_word_of_a_person_counts() {
        for reason in REPORTED_BY_A_SEED {
            assert_eq!(unfenced(&having_told(reason), false), None, "{reason}");
            let why = unfenced(&having_told(reason), true).unwrap_or_default();
            assert!(why.contains("ownerChecks.silence: Tolerate"), "{reason}: {why}");
        }
        for tolerates in [true, false] {
            let why = unfenced(&having_told(OUTLASTS_FENCE), tolerates).unwrap_or_default();
            assert!(why.contains("for longer than a fence lasts"), "{why}");
            assert_eq!(unfenced(&having_told("SeedIsOff"), tolerates), None);
            // The etcd of the shoot has sealed its epoch.
            assert_eq!(unfenced(&having_told("Lost"), tolerates), None);
        }
    }
}
