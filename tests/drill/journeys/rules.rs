//! The conditions between two consecutive versions of a Shoot, for all writers.

use api::gardencore::{Shoot, ShootStatus, shoot::OwnershipPhase};
use api::meta::{LastOperationState as State, LastOperationType as Type};

/// The seed that has the Shoot; empty without a seed.
pub fn host(shoot: &Shoot) -> &str {
    let status = shoot.status.as_ref();
    status
        .and_then(|status| status.seed_name.as_deref())
        .unwrap_or_default()
}

pub fn epoch(shoot: &Shoot) -> i64 {
    shoot.status.as_ref().map_or(1, ShootStatus::epoch)
}

/// Type, state and percent of the last operation.
pub fn last(shoot: &Shoot) -> Option<(Type, State, i32)> {
    let last = shoot.status.as_ref()?.last_operation.as_ref()?;
    Some((last.type_, last.state, last.progress))
}

/// The operation that has just succeeded, if this version is the first to report the success.
pub fn succeeded(old: Option<&Shoot>, new: &Shoot) -> Option<Type> {
    let success = |shoot: &Shoot| match last(shoot) {
        Some((type_, State::Succeeded, _)) => Some(type_),
        _ => None,
    };
    let now = success(new)?;
    (old.and_then(success) != Some(now) || old.map(epoch) != Some(epoch(new))).then_some(now)
}

/// Whether the same seed keeps the Shoot in the next epoch, after a sealed epoch or a person's request.
fn is_renewed(old: &Shoot, new: &Shoot) -> bool {
    let record = |shoot: &Shoot| shoot.status.as_ref()?.ownership.clone();
    let phase = |shoot: &Shoot| record(shoot)?.phase;
    let approval = record(old).and_then(|record| record.approval);
    let is_asked_for = approval.is_some_and(|approval| approval.renews() && approval.epoch == epoch(old));
    epoch(new) == epoch(old) + 1
        && (phase(old) == Some(OwnershipPhase::Sealing) || is_asked_for)
        && phase(new) == Some(OwnershipPhase::Claiming)
}

/// Each rule that is broken, as a sentence.
pub fn broken(old: &Shoot, new: &Shoot) -> Vec<&'static str> {
    let (from, to) = (host(old), host(new));
    let (before, after) = (old.status.clone().unwrap_or_default(), new.status.clone());
    let after = after.unwrap_or_default();
    let handed_over = from != to && !from.is_empty();
    let wanted = new.spec.seed_name.as_deref().unwrap_or_default();
    let approved = after
        .migration
        .as_ref()
        .is_some_and(|approval| approval.source == from && approval.destination == to);
    let noted = |status: &ShootStatus, epoch: i64| {
        status
            .former_seeds
            .iter()
            .any(|former| former.name == from && former.epoch == epoch)
    };
    let told = matches!(last(new), Some((Type::Migrate, State::Succeeded, _)));
    let rules = [
        (
            from == to || to == wanted,
            "it went to a seed that it is not meant for",
        ),
        (!handed_over || approved, "it was handed over without an approval"),
        (
            !handed_over || epoch(new) == epoch(old) + 1,
            "a hand-over did not raise the epoch by one",
        ),
        (
            !handed_over || noted(&after, epoch(old)),
            "a hand-over did not note the source as a former seed",
        ),
        (
            handed_over || epoch(new) == epoch(old) || is_renewed(old, new),
            "the epoch changed without a hand-over",
        ),
        (
            handed_over || !told || succeeded(Some(old), new).is_none(),
            "a migration succeeded without a hand-over",
        ),
        (
            before.technical_id.is_empty() || before.technical_id == after.technical_id,
            "its technical id changed",
        ),
        (
            before.uid.is_empty() || before.uid == after.uid,
            "its uid changed",
        ),
    ];
    let broken = rules.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, sentence)| sentence).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shoot(wanted: &str, status: &Value) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "web"}, "status": status,
            "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local", "seedName": wanted},
        }))
        .unwrap()
    }

    /// The rules must detect faults: without this test, a witness without findings would prove nothing.
    #[test]
    fn each_way_to_lose_track_of_a_shoot_is_seen() {
        let last = |state: &str| {
            json!({"type": "Migrate", "state": state, "progress": 9, "description": "",
                "lastUpdateTime": "2026-01-01T00:00:00Z"})
        };
        let before = json!({
            "seedName": "a", "technicalID": "t", "uid": "u", "lastOperation": last("Processing"),
            "migration": {"source": "a", "destination": "b", "generation": 1, "spec": {}},
        });
        let mut after = before.clone();
        after["seedName"] = json!("b");
        after["ownership"] = json!({"epoch": 2});
        after["formerSeeds"] = json!([{"name": "a", "epoch": 1}]);
        after["lastOperation"] = last("Succeeded");
        let old = shoot("b", &before);
        assert_eq!(broken(&old, &shoot("b", &after)), Vec::<&str>::new());
        assert_eq!(broken(&old, &old), Vec::<&str>::new());
        let of = |change: &dyn Fn(&mut Value), wanted: &str, base: &Value| {
            let mut changed = base.clone();
            change(&mut changed);
            broken(&old, &shoot(wanted, &changed)).join(", ")
        };
        for (change, wanted, words) in [
            (&(|_: &mut Value| ()) as &dyn Fn(&mut Value), "a", "not meant for"),
            (
                &|s| s["migration"]["destination"] = json!("c"),
                "b",
                "without an approval",
            ),
            (&|s| s["ownership"]["epoch"] = json!(3), "b", "by one"),
            (&|s| s["formerSeeds"] = json!([]), "b", "former seed"),
            (&|s| s["seedName"] = json!("a"), "b", "without a hand-over"),
            (
                &|s| {
                    s["seedName"] = json!("a");
                    s["ownership"]["phase"] = json!("Claiming");
                },
                "b",
                "without a hand-over",
            ),
            (&|s| s["technicalID"] = json!("x"), "b", "technical id"),
            (&|s| s["uid"] = json!("x"), "b", "uid"),
        ] {
            let seen = of(change, wanted, &after);
            assert!(seen.contains(words), "{words}: {seen}");
        }
        let seen = of(&|s| s["lastOperation"] = last("Succeeded"), "b", &before);
        assert!(seen.contains("migration succeeded"), "{seen}");
    }
}
