//! Whether a former seed of a shoot may be the destination: pure decisions.
//!
//! A former seed cleans up first, and then the shoot may move to that seed again. The exception is a former
//! seed that still has the data of the shoot, because the present seed has the shoot but has opened no data.
//! Without the exception, a hand-over to a seed that dies before the restore would leave the shoot without a
//! seed where only two seeds exist.
//!
//! | phase of the present seed | a person requests a takeover | the former seed |
//! |---|---|---|
//! | `Claiming`, with the data of this former seed | yes | may be the destination |
//! | `Claiming`, with the data of this former seed | no | refused; the message names the request |
//! | any other phase, or other data | any | refused until the seed has cleaned up |
//!
//! The takeover fences the present seed as in every takeover, and is refused while the present seed lives.
//! The former seed keeps the volume of etcd-main until a restore is recorded, so the volume and the backups
//! of the seed are complete in phase `Claiming`.

use api::{
    constants::SHOOT_FORCE_RESTORE,
    gardencore::{Seed, Shoot},
};
use kube::ResourceExt;
use ownership::{Ownership, SeedEpoch};
use placement::{Journey, journey};

use crate::shoot_takeover::next_step::consent;

/// Why the seed may not be the destination yet; `None` for a seed without a former residency of the shoot,
/// and for a former seed that may take the shoot back.
pub(super) fn obstacle(shoot: &Shoot, seed: &Seed, back: &str) -> Option<String> {
    let name = seed.name_any();
    let epoch = former_epoch(shoot, &name)?;
    let begin =
        format!("Seed {name} has not cleaned up its former stay of the shoot yet (status.formerSeeds)");
    let Some(now) = unopened_claim(shoot, seed, epoch) else {
        let when = if journey(shoot) == Journey::Settled {
            ""
        } else {
            ", and cleans up after the present seed has restored the shoot"
        };
        return Some(format!(
            "{begin}{when}: the move begins once it has; name another seed, {back}."
        ));
    };
    if is_requested(shoot, &name) {
        return None;
    }
    let host = &now.now.seed;
    Some(format!(
        "{begin}, and still has the data of the shoot, because seed {host} has opened none: let seed \
         {host} restore the shoot and move the shoot after that, or, if seed {host} does not come back, \
         have the shoot taken back without its help ({SHOOT_FORCE_RESTORE}=true); name another seed, \
         {back}."
    ))
}

/// The newest epoch of the shoot in the former seed.
fn former_epoch(shoot: &Shoot, seed: &str) -> Option<i64> {
    let formers = shoot.status.iter().flat_map(|status| &status.former_seeds);
    let epochs = formers.filter(|former| former.name == seed);
    epochs.map(|former| former.epoch).max()
}

/// The present claim, if the claimant has opened no data and the data are in the seed since that epoch. Only
/// a seed with owner checks can fence the claimant.
fn unopened_claim(shoot: &Shoot, seed: &Seed, epoch: i64) -> Option<Ownership<String>> {
    let residency = SeedEpoch {
        seed: seed.name_any(),
        epoch,
    };
    let now = placement::record::ownership(shoot).ok()?;
    (seed.spec.checks_owners() && now.may_return_to(&residency)).then_some(now)
}

/// Whether a person requests a takeover, or has requested the takeover to this seed in the present epoch.
fn is_requested(shoot: &Shoot, to: &str) -> bool {
    let is_consented = consent(shoot).is_some_and(|approval| approval.to == to);
    is_consented || shoot.annotations().contains_key(SHOOT_FORCE_RESTORE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn seed(checks: bool) -> Seed {
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "a"},
            "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                "provider": {"type": "local", "region": "local"},
                "settings": {"ownerChecks": {"enabled": checks}}},
        }))
        .unwrap()
    }

    /// Seed `a` has handed the shoot over to seed `b`.
    fn shoot(record: &Value, is_asked: bool) -> Shoot {
        let annotations = is_asked.then(|| json!({(SHOOT_FORCE_RESTORE): "true"}));
        let formers = json!([{"name": "a", "epoch": 3}, {"name": "c", "epoch": 1}]);
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "web", "annotations": annotations},
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "a",
                "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "b", "formerSeeds": formers, "ownership": record},
        }))
        .unwrap()
    }

    fn claimed() -> Value {
        json!({"epoch": 4, "phase": "Claiming", "drained": true, "source": {"name": "a", "epoch": 3}})
    }

    fn judged(record: &Value, is_asked: bool) -> Option<String> {
        obstacle(&shoot(record, is_asked), &seed(true), "or wait")
    }

    #[test]
    fn a_source_takes_back_a_shoot_whose_destination_has_opened_nothing() {
        assert_eq!(judged(&claimed(), true), None);
        // A takeover whose destination dies as well.
        let mut taken = claimed();
        taken["drained"] = json!(false);
        assert_eq!(judged(&taken, true), None);
        // The annotation is removed once the approval is recorded.
        let approval = |to: &str, epoch: i64| {
            let mut record = claimed();
            record["approval"] = json!({"uid": "u", "from": "b", "to": to, "epoch": epoch,
                "acceptedLoss": "SinceLastSnapshot", "expiry": "2026-01-01T00:00:00Z", "by": "Operator",
                "reason": "r"});
            judged(&record, false)
        };
        assert_eq!(approval("a", 4), None);
        // The approval of an earlier epoch is used up, and an approval for another seed is not for this seed.
        assert!(approval("a", 3).is_some());
        assert!(approval("c", 4).is_some());
    }

    #[test]
    fn without_a_request_the_user_learns_which_request_brings_the_shoot_back() {
        let message = judged(&claimed(), false).unwrap();
        for words in [
            "Seed a has not cleaned up its former stay of the shoot yet (status.formerSeeds), and still has",
            "seed b has opened none: let seed b restore the shoot",
            "(shoot.gardener.cloud/force-restore=true); name another seed, or wait.",
        ] {
            assert!(message.contains(words), "{message}");
        }
    }

    /// A volume of an earlier history, or a seed that cannot fence the claimant, is no place to go back to.
    #[test]
    fn a_source_whose_data_are_not_the_newest_cleans_up_first() {
        for (field, value) in [
            ("phase", json!("Opening")),
            ("phase", json!("Held")),
            ("phase", json!("Leaving")),
            ("phase", json!("Sealing")),
            ("source", json!({"name": "a", "epoch": 2})),
            ("source", json!({"name": "c", "epoch": 3})),
            ("source", Value::Null),
        ] {
            let mut record = claimed();
            record[field] = value;
            let message = judged(&record, true).unwrap();
            assert!(message.contains("the move begins once it has"), "{message}");
        }
        let mut restoring = shoot(&json!({"epoch": 4, "phase": "Opening"}), true);
        restoring.status.as_mut().unwrap().last_operation = serde_json::from_value(json!({
            "type": "Restore", "state": "Processing", "progress": 5, "description": "d",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        let message = obstacle(&restoring, &seed(true), "or wait").unwrap();
        let words = "cleans up after the present seed has restored the shoot";
        assert!(message.contains(words), "{message}");
        let unchecked = obstacle(&shoot(&claimed(), true), &seed(false), "or wait");
        assert!(unchecked.is_some());
        // Where no phases are recorded, no record names the seed with the data.
        assert!(judged(&json!({"epoch": 4}), true).is_some());
    }
}
