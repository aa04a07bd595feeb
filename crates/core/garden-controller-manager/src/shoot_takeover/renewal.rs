//! Renewal: the owner keeps a shoot in the next epoch, with its data, on the request of an operator with
//! annotation `shoot.gardener.cloud/renew-ownership=true`. That is the remedy after the owner record was
//! deleted or forged, so that the processes of the present epoch have stopped for good. Pure decisions. The
//! approval is recorded first, as for a takeover, so that the annotation works once.

use api::{
    constants::{SHOOT_FORCE_RESTORE, SHOOT_RENEW_OWNERSHIP},
    gardencore::{
        Shoot,
        shoot::{ApprovedBy, OwnershipApproval},
    },
};
use kube::ResourceExt;
use ownership::{Approval, Ownership, Phase, Step, Writer};

use super::{
    approval::approve,
    next_step::{Decision, Request},
    obstacle::Facts,
};
use crate::shoot_migration::wanted_move;

/// Whether an operator requests a renewal.
#[must_use]
pub fn is_asked(shoot: &Shoot) -> bool {
    shoot.annotations().contains_key(SHOOT_RENEW_OWNERSHIP)
}

/// Approves the renewal, or states why the epoch cannot be renewed.
pub(super) fn on_request(facts: &Facts<'_>) -> Decision {
    match becomes(facts) {
        Ok(becomes) => {
            let (seed, epoch) = (&becomes.now.seed, becomes.now.epoch - 1);
            let reason = format!(
                "An operator asked that seed {seed} keep the shoot with its data in a new ownership epoch, after epoch {epoch}."
            );
            approve(facts, ApprovedBy::Operator, reason, (seed, seed, epoch))
        }
        Err(why) => Decision::Refuse(Request::Renewal, why),
    }
}

/// Uses the approval, or withdraws it: every condition of the approval must still hold.
pub(super) fn on_consent(facts: &Facts<'_>, approval: &OwnershipApproval) -> Decision {
    let becomes = match becomes(facts) {
        Ok(becomes) => becomes,
        Err(why) => return Decision::Withdraw(why),
    };
    let is_of = facts.shoot.uid().as_deref() == Some(approval.uid.as_str())
        && (becomes.now.seed.as_str(), becomes.now.epoch) == (approval.to.as_str(), approval.epoch + 1);
    if !is_of {
        return Decision::Withdraw(format!(
            "the consent is for seed {} in epoch {}",
            approval.from, approval.epoch
        ));
    }
    if facts.now >= approval.expiry.0 {
        return Decision::Withdraw("the consent is too old".to_owned());
    }
    if is_asked(facts.shoot) {
        return Decision::Consume(Request::Renewal);
    }
    Decision::Renew {
        becomes,
        approval: Some(approval.clone()),
    }
}

/// The new ownership.
///
/// # Errors
/// A sentence that names the obstacle, and the remedy.
fn becomes(facts: &Facts<'_>) -> Result<Ownership<String>, String> {
    let shoot = facts.shoot;
    if shoot.metadata.deletion_timestamp.is_some() {
        return Err("the shoot is being deleted".to_owned());
    }
    if let Some((from, to)) = wanted_move(shoot) {
        return Err(format!(
            "the shoot is to move to seed {to}: set spec.seedName back to {from}, or have it taken over ({SHOOT_FORCE_RESTORE})"
        ));
    }
    let now = placement::ownership_status::ownership(shoot).map_err(|error| error.to_string())?;
    let (seed, epoch) = (&now.now.seed, now.now.epoch);
    if placement::is_half_created(shoot) {
        return Err(format!(
            "seed {seed} has not created the shoot completely, so there are no data to keep: see status.lastErrors"
        ));
    }
    if matches!(now.phase, Phase::Claiming | Phase::Opening) {
        return Err(format!(
            "seed {seed} was given the shoot in epoch {epoch} and has not restored it yet: status.lastErrors says what it waits for; if \
             it cannot, set spec.seedName to another seed and have the shoot taken over ({SHOOT_FORCE_RESTORE})"
        ));
    }
    let specified = facts.source.map(|seed| &seed.spec);
    if !specified.is_some_and(api::gardencore::SeedSpec::checks_owners) {
        return Err(format!(
            "seed {seed} does not say in DNS which shoots are its own (spec.settings.ownerChecks.enabled), so no process of it has lost \
             the shoot, and nothing would fence it: see status.lastErrors for the cause"
        ));
    }
    if specified.is_none_or(|specified| specified.backup.is_none()) {
        return Err(format!(
            "seed {seed} has no bucket that would show the new epoch to its own processes: set spec.backup of the Seed"
        ));
    }
    let consent = Approval {
        from: now.now.clone(),
        to: seed.clone(),
    };
    let write = now.step(&Writer::Garden, Step::Grant(consent));
    write
        .map(|write| write.becomes)
        .map_err(|refused| refused.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::time::Duration;

    use api::gardencore::Seed;
    use ownership::SeedEpoch;
    use serde_json::{Value, json};

    use super::*;
    use crate::shoot_takeover::{
        decision::{decide, is_open},
        sightings::Silence,
    };

    const HELD: &str = "Held";

    struct Known {
        asked: bool,
        wanted: &'static str,
        last: (&'static str, &'static str),
        ownership: Value,
        seed: Value,
    }

    fn facts() -> Known {
        Known {
            asked: true,
            wanted: "a",
            last: ("Reconcile", "Error"),
            ownership: json!({"epoch": 4, "phase": HELD}),
            seed: json!({"backup": {"provider": "local"}, "settings": {"ownerChecks": {"enabled": true}}}),
        }
    }

    impl Known {
        fn shoot(&self) -> Shoot {
            let annotations = if self.asked {
                json!({SHOOT_RENEW_OWNERSHIP: "true"})
            } else {
                json!({})
            };
            let last = json!({"type": self.last.0, "state": self.last.1, "progress": 5, "description": "d",
                "lastUpdateTime": "2026-01-01T00:00:00Z"});
            serde_json::from_value(json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
                "metadata": {"name": "web", "uid": "u-1", "annotations": annotations},
                "spec": {"provider": {"type": "local"}, "region": "local", "seedName": self.wanted,
                    "kubernetes": {"version": "1.34.4"}},
                "status": {"seedName": "a", "technicalID": "t", "uid": "u", "ownership": self.ownership, "lastOperation": last},
            }))
            .unwrap()
        }

        fn decide(&self) -> Decision {
            self.decide_on(&self.shoot())
        }

        fn decide_on(&self, shoot: &Shoot) -> Decision {
            let mut seed = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "a"},
                "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                    "provider": {"type": "local", "region": "local"}}});
            for (field, value) in self.seed.as_object().unwrap() {
                seed["spec"][field] = value.clone();
            }
            let seed: Seed = serde_json::from_value(seed).unwrap();
            let facts = Facts {
                shoot,
                source: Some(&seed),
                destination: None,
                verdict: None,
                silence: Silence::Fresh,
                unchanged: Duration::ZERO,
                without_progress: Duration::ZERO,
                grace: None,
                now: jiff::Timestamp::from_second(1000).unwrap(),
            };
            let decision = decide(&facts);
            if !matches!(decision, Decision::Nothing | Decision::Wait(_)) {
                assert!(is_open(&facts), "{decision:?}");
            }
            decision
        }

        fn consented(mut self, change: &Value) -> Self {
            let mut approval = json!({"uid": "u-1", "from": "a", "to": "a", "epoch": 4, "acceptedLoss": "SinceLastSnapshot",
                "expiry": "1970-01-01T01:00:00Z", "by": "Operator", "reason": "r"});
            for (field, value) in change.as_object().unwrap() {
                approval[field] = value.clone();
            }
            self.ownership["approval"] = approval;
            self
        }
    }

    #[track_caller]
    fn refused(known: &Known, words: &str) {
        match known.decide() {
            Decision::Refuse(Request::Renewal, why) => assert!(why.contains(words), "{why}"),
            other => panic!("{other:?} instead of a refusal: {words}"),
        }
    }

    /// The seed is alive, and its etcd was sealed because of a deleted record; or the seed is healthy.
    #[test]
    fn consent_to_a_new_epoch_is_given_to_the_seed_that_has_the_shoot() {
        for (phase, last) in [
            (json!(HELD), ("Reconcile", "Error")),
            (json!(HELD), ("Reconcile", "Succeeded")),
            (json!(HELD), ("Create", "Succeeded")),
            (json!(HELD), ("Restore", "Succeeded")),
            (json!("Leaving"), ("Migrate", "Error")),
            (Value::Null, ("Reconcile", "Error")),
        ] {
            let ownership = json!({"epoch": 4, "phase": phase});
            let Decision::Approve(approval) = (Known {
                last,
                ownership,
                ..facts()
            })
            .decide() else {
                panic!("{phase} {last:?}");
            };
            assert!(approval.renews() && !approval.source_is_off);
            assert_eq!(
                (approval.from.as_str(), approval.to.as_str(), approval.epoch),
                ("a", "a", 4)
            );
            assert_eq!(approval.by, ApprovedBy::Operator);
        }
    }

    #[test]
    fn consent_to_a_new_epoch_is_used_once_the_annotation_is_gone() {
        let mut known = facts().consented(&json!({}));
        assert_eq!(known.decide(), Decision::Consume(Request::Renewal));
        known.asked = false;
        let Decision::Renew { becomes, approval } = known.decide() else {
            panic!("{:?}", known.decide());
        };
        let seed_epoch = |epoch| SeedEpoch {
            seed: "a".to_owned(),
            epoch,
        };
        assert_eq!((becomes.now, becomes.phase), (seed_epoch(5), Phase::Claiming));
        assert_eq!(
            (becomes.source, becomes.drained, becomes.chain),
            (Some(seed_epoch(4)), false, None)
        );
        assert!(approval.unwrap().renews());
        // Used: the approval stands beside the epoch that it began, and has no further effect.
        known.ownership["epoch"] = json!(5);
        known.ownership["phase"] = json!(HELD);
        assert_eq!(known.decide(), Decision::Nothing);
    }

    #[test]
    fn consent_to_a_new_epoch_is_for_one_epoch_and_not_for_long() {
        for (change, words) in [
            (json!({"uid": "u-2"}), "is for seed a in epoch 4"),
            (json!({"epoch": 6}), "is for seed a in epoch 6"),
            (json!({"expiry": "1970-01-01T00:16:40Z"}), "too old"),
        ] {
            for asked in [true, false] {
                let known = Known { asked, ..facts() }.consented(&change);
                let decision = known.decide();
                assert!(
                    matches!(&decision, Decision::Withdraw(why) if why.contains(words)),
                    "{decision:?}"
                );
            }
        }
        let moved = Known {
            wanted: "b",
            asked: false,
            ..facts()
        }
        .consented(&json!({}));
        let decision = moved.decide();
        assert!(
            matches!(&decision, Decision::Withdraw(why) if why.contains("is to move to seed b")),
            "{decision:?}"
        );
    }

    #[test]
    fn each_refusal_of_a_new_epoch_names_the_obstacle_and_the_remedy() {
        refused(
            &Known {
                wanted: "b",
                ..facts()
            },
            "is to move to seed b: set spec.seedName back to a",
        );
        for phase in ["Claiming", "Opening"] {
            let ownership = json!({"epoch": 4, "phase": phase, "source": {"name": "c", "epoch": 3}});
            refused(
                &Known { ownership, ..facts() },
                "has not restored it yet: status.lastErrors",
            );
        }
        refused(
            &Known {
                last: ("Create", "Error"),
                ownership: json!({"epoch": 1, "phase": HELD}),
                ..facts()
            },
            "has not created the shoot completely",
        );
        let seed = json!({"backup": {"provider": "local"}});
        refused(
            &Known { seed, ..facts() },
            "does not say in DNS which shoots are its own",
        );
        let seed = json!({"settings": {"ownerChecks": {"enabled": true}}});
        refused(&Known { seed, ..facts() }, "set spec.backup of the Seed");
        // A planned move is between two seeds, and its phases are not recorded.
        let (ownership, last) = (json!({"epoch": 4}), ("Restore", "Error"));
        refused(
            &Known {
                last,
                ownership,
                ..facts()
            },
            "its phases are not recorded",
        );
        let mut shoot = facts().shoot();
        let time = "2026-01-01T00:00:00Z".parse().unwrap();
        shoot.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(time));
        let decision = facts().decide_on(&shoot);
        assert!(
            matches!(&decision, Decision::Refuse(Request::Renewal, why) if why.contains("is being deleted")),
            "{decision:?}"
        );
    }

    /// A move that was cancelled in phase `Sealing` gets its new epoch without an approval; the annotation
    /// has no second effect after that.
    #[test]
    fn a_sealed_epoch_is_renewed_once_although_a_person_asks_too() {
        let mut known = Known {
            ownership: json!({"epoch": 4, "phase": "Sealing"}),
            last: ("Migrate", "Processing"),
            ..facts()
        };
        assert_eq!(known.decide(), Decision::Consume(Request::Renewal));
        known.asked = false;
        assert!(matches!(known.decide(), Decision::Renew { approval: None, .. }));
    }
}
