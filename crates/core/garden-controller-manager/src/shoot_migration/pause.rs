//! A pause holds back planned moves that have not begun: the Shoot is ignored, or one of its seeds is
//! stopped. A takeover continues, as the shoot would be lost without the takeover.

use api::{
    constants::{EMERGENCY_STOP, SHOOT_IGNORE},
    gardencore::{Seed, Shoot},
};
use kube::ResourceExt;
use placement::{Journey, Pause, journey, pause};

use super::{
    force,
    preflight::{Verdict, wanted_move},
};

/// Whether the user of the Shoot holds back new work.
pub(super) fn is_ignored(shoot: &Shoot) -> bool {
    pause(shoot, false) == Some(Pause::ShootIgnored)
}

/// The verdict on a move that would begin now, where a pause of the Shoot or of the source or destination
/// holds back new work.
pub(super) fn check(shoot: &Shoot, seeds: [Option<&Seed>; 2], verdict: Verdict) -> Verdict {
    let Some((source, _)) = wanted_move(shoot) else {
        return verdict;
    };
    if !verdict.ready || journey(shoot) != Journey::Settled {
        return verdict;
    }
    let mut seeds = seeds.into_iter().flatten();
    let stopped = seeds.find(|seed| placement::pause::is_stopped(seed.annotations()));
    // Only the operator of a seed stops the seed, so the stop stays.
    let is_forced = force::overrides(shoot);
    let (found, cause, remedy) = match stopped {
        _ if is_ignored(shoot) && !is_forced => (
            Pause::ShootIgnored,
            format!("The Shoot has the annotation {SHOOT_IGNORE}"),
            format!("remove the annotation, {}", force::remedy()),
        ),
        Some(seed) => (
            Pause::SeedStopped,
            format!("Seed {} has the annotation {EMERGENCY_STOP}", seed.name_any()),
            "the operator of the seed removes the annotation".to_owned(),
        ),
        None if is_ignored(shoot) => return force::pass(verdict, Pause::ShootIgnored.reason()),
        None => return verdict,
    };
    Verdict {
        ready: false,
        reason: found.reason(),
        message: format!("{cause}, so that no move begins: {remedy}, or set spec.seedName back to {source}."),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use api::{
        constants::{
            SHOOT_FORCE_RESTORE,
            condition::{SEED_EMERGENCY_STOP, SHOOT_IGNORED},
        },
        gardencore::SeedSpec,
    };
    use serde_json::{Value, json};

    use super::*;

    fn shoot(ignored: bool, last: &Value) -> Shoot {
        let annotations = if ignored {
            json!({SHOOT_IGNORE: "true"})
        } else {
            json!({})
        };
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "crazy", "annotations": annotations},
            "spec": {"region": "r", "provider": {"type": "local"}, "seedName": "b"},
            "status": {"seedName": "a", "lastOperation": last},
        }))
        .unwrap()
    }

    fn seed(name: &str, stopped: bool) -> Seed {
        let mut seed = Seed::new(name, SeedSpec::default());
        if stopped {
            seed.annotations_mut()
                .insert(EMERGENCY_STOP.to_owned(), "true".to_owned());
        }
        seed
    }

    fn last(type_: &str, state: &str) -> Value {
        json!({"type": type_, "state": state, "progress": 5, "description": "", "lastUpdateTime": "2026-01-01T12:00:00Z"})
    }

    #[test]
    fn a_pause_of_the_shoot_or_of_a_seed_holds_back_a_move_that_has_not_begun() {
        let back = "remove the annotation, move the shoot as it is with annotation shoot.gardener.cloud/force-restore=true";
        held(true, [false, false], Some((SHOOT_IGNORED, back)));
        held(
            false,
            [true, false],
            Some((SEED_EMERGENCY_STOP, "Seed a has the annotation")),
        );
        held(
            false,
            [false, true],
            Some((SEED_EMERGENCY_STOP, "Seed b has the annotation")),
        );
        held(false, [false, false], None);
    }

    #[test]
    fn force_overrides_the_pause_of_the_shoot_but_no_stop_of_a_seed() {
        let ready = Verdict {
            ready: true,
            reason: "DestinationSeedReady",
            message: String::new(),
        };
        let mut shoot = shoot(true, &last("Reconcile", "Succeeded"));
        let judged = |shoot: &Shoot, stopped| check(shoot, [Some(&seed("a", stopped)), None], ready.clone());
        shoot
            .annotations_mut()
            .insert(SHOOT_FORCE_RESTORE.to_owned(), "true".to_owned());
        let forced = judged(&shoot, false);
        assert!(
            forced.ready && forced.message.contains(SHOOT_IGNORED),
            "{forced:?}"
        );
        assert_eq!(judged(&shoot, true).reason, SEED_EMERGENCY_STOP);
        // The annotation goes before the source begins.
        shoot.annotations_mut().remove(SHOOT_FORCE_RESTORE);
        shoot.metadata.generation = Some(7);
        let status = shoot.status.as_mut().unwrap();
        let approval = json!({"source": "a", "destination": "b", "generation": 7, "spec": {}});
        status.migration = serde_json::from_value(approval).unwrap();
        assert_eq!(judged(&shoot, false).reason, SHOOT_IGNORED);
        let time = "2026-01-01T00:00:00Z";
        let constraint = json!([{"type": "ReadyForMigration", "status": "True", "reason": forced.reason, "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time}]);
        shoot.status.as_mut().unwrap().constraints = serde_json::from_value(constraint).unwrap();
        assert!(judged(&shoot, false).ready);
        // A later edit is judged again.
        shoot.metadata.generation = Some(8);
        assert_eq!(judged(&shoot, false).reason, SHOOT_IGNORED);
    }

    #[track_caller]
    fn held(ignored: bool, stopped: [bool; 2], expected: Option<(&str, &str)>) {
        let ready = Verdict {
            ready: true,
            reason: "DestinationSeedReady",
            message: String::new(),
        };
        let (a, b) = (seed("a", stopped[0]), seed("b", stopped[1]));
        let judged = |last| check(&shoot(ignored, &last), [Some(&a), Some(&b)], ready.clone());
        let verdict = judged(last("Reconcile", "Succeeded"));
        let reported = (!verdict.ready).then_some((verdict.reason, verdict.message.as_str()));
        assert_eq!(
            reported.map(|(reason, _)| reason),
            expected.map(|(reason, _)| reason)
        );
        if let (Some((_, message)), Some((_, words))) = (reported, expected) {
            assert!(message.contains(words), "{message}");
        }
        for (type_, state) in [
            ("Migrate", "Error"),
            ("Migrate", "Succeeded"),
            ("Restore", "Error"),
        ] {
            assert!(judged(last(type_, state)).ready, "{type_} {state}");
        }
    }
}
