//! An operator's statement that former seeds are off, for a shoot that a seed already claims: pure decisions.
//! The statement moves no shoot; the fence of the claiming seed then asks no server of these seeds. Without
//! that route, a fence would wait for ever for a name server that died together with a former seed.

use std::{collections::BTreeMap, time::Duration};

use api::{
    constants::SHOOT_FORCE_RESTORE,
    gardencore::{Shoot, shoot::FormerSeed},
};
use ownership::Phase;

use super::{
    next_step::{Decision, Request},
    obstacle::states_source_is_off,
    sightings::Silence,
};
use crate::shoot_migration::wanted_move;

/// The former seeds that the annotation states to be off, each with the last epoch in which that seed owned
/// the shoot. `None` if the annotation requests a takeover, or is absent.
#[must_use]
pub fn stated(shoot: &Shoot) -> Option<Vec<FormerSeed>> {
    let is_claimed =
        placement::ownership_status::ownership(shoot).is_ok_and(|now| now.phase == Phase::Claiming);
    let is_kept = wanted_move(shoot).is_none() && shoot.metadata.deletion_timestamp.is_none();
    if !states_source_is_off(shoot) || !is_claimed || !is_kept {
        return None;
    }
    let status = shoot.status.as_ref()?;
    let source = status
        .ownership
        .as_ref()
        .and_then(|ownership| ownership.source.as_ref());
    let mut seeds = BTreeMap::<&str, i64>::new();
    for former in status.former_seeds.iter().chain(source) {
        if status.seed_name.as_ref() != Some(&former.name) {
            let epoch = seeds.entry(&former.name).or_default();
            *epoch = former.epoch.max(*epoch);
        }
    }
    let seeds = seeds.into_iter().map(|(name, epoch)| FormerSeed {
        name: name.to_owned(),
        epoch,
    });
    Some(seeds.collect())
}

/// The decision about the statement. `silences`: the silence of each seed's Lease, in the order of `seeds`. A
/// gardenlet that renews its Lease contradicts the statement.
#[must_use]
pub fn decide(shoot: &Shoot, seeds: Vec<FormerSeed>, silences: &[Silence]) -> Decision {
    let status = shoot.status.as_ref();
    if seeds
        .iter()
        .all(|seed| status.is_some_and(|status| status.is_stated_off(&seed.name)))
    {
        return Decision::Consume(Request::Takeover);
    }
    let mut wait = None::<Duration>;
    for (seed, silence) in seeds.iter().zip(silences) {
        match silence {
            Silence::Silent(_) => {}
            Silence::Unknown(left) => wait = wait.max(Some(*left)),
            Silence::Fresh => {
                return Decision::Refuse(
                    Request::Takeover,
                    format!(
                        "former seed {} is not off: its gardenlet renewed its Lease within the monitor period; stop all processes of the \
                         seed and state again that it is off ({SHOOT_FORCE_RESTORE})",
                        seed.name
                    ),
                );
            }
        }
    }
    match wait {
        Some(left) => Decision::Wait(left.max(Duration::from_secs(1))),
        None => Decision::StateOff(seeds),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    const SILENT: Silence = Silence::Silent(Duration::from_secs(60));

    fn shoot(phase: &str, wanted: &str, value: &str, stated: &Value) -> Shoot {
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "web", "annotations": {"shoot.gardener.cloud/force-restore": value}},
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": wanted, "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "c", "formerSeeds": [{"name": "a", "epoch": 3}, {"name": "b", "epoch": 4}, {"name": "c", "epoch": 1}],
                "ownership": {"epoch": 5, "phase": phase, "source": {"name": "a", "epoch": 2}, "seedsStatedOff": stated}},
        }))
        .unwrap()
    }

    fn seed(name: &str, epoch: i64) -> FormerSeed {
        FormerSeed {
            name: name.to_owned(),
            epoch,
        }
    }

    #[test]
    fn a_statement_counts_while_a_shoot_is_claimed_and_moves_nowhere() {
        let all = vec![seed("a", 3), seed("b", 4)];
        let none = json!([]);
        assert_eq!(stated(&shoot("Claiming", "c", "source-is-off", &none)), Some(all));
        for (phase, wanted, value) in [
            ("Held", "c", "source-is-off"),
            ("Opening", "c", "source-is-off"),
            ("Claiming", "d", "source-is-off"),
            ("Claiming", "c", "true"),
        ] {
            assert_eq!(
                stated(&shoot(phase, wanted, value, &none)),
                None,
                "{phase} {wanted} {value}"
            );
        }
    }

    /// The Leases of all stated seeds must be silent.
    #[test]
    fn a_statement_is_recorded_once_all_stated_seeds_are_silent() {
        let claimed = shoot(
            "Claiming",
            "c",
            "source-is-off",
            &json!([{"name": "b", "epoch": 4}]),
        );
        let seeds = stated(&claimed).unwrap();
        let decided = |silences: &[Silence]| decide(&claimed, seeds.clone(), silences);
        assert_eq!(decided(&[SILENT, SILENT]), Decision::StateOff(seeds.clone()));
        let left = Duration::from_secs(7);
        assert_eq!(decided(&[Silence::Unknown(left), SILENT]), Decision::Wait(left));
        for (one, other) in [(Silence::Fresh, SILENT), (Silence::Unknown(left), Silence::Fresh)] {
            let decision = decided(&[one, other]);
            assert!(
                matches!(&decision, Decision::Refuse(Request::Takeover, why) if why.contains("is not off")),
                "{decision:?}"
            );
        }
        let recorded = shoot("Claiming", "c", "source-is-off", &json!(seeds));
        assert_eq!(
            decide(&recorded, seeds.clone(), &[SILENT, SILENT]),
            Decision::Consume(Request::Takeover)
        );
    }
}
