//! How many shoots a seed may have: resource `shoots` of `status.allocatable` of the Seed, as in Gardener.
//! The bound holds back planned moves only. A takeover saves the shoot of a dead seed, and a person decides
//! on the room then.

use std::sync::Arc;

use api::gardencore::{Seed, Shoot};
use kube::ResourceExt;

use super::preflight::{FULL, Verdict};

/// Resource of `status.allocatable`.
const SHOOTS: &str = "shoots";

/// The shoots that the seed may have. `None`: the seed names no number, or none that can be read.
pub(super) fn room(seed: &Seed) -> Option<usize> {
    let status = seed.status.as_ref()?;
    status.allocatable.get(SHOOTS)?.0.parse().ok()
}

/// The shoots that need room in the seed: on the seed, created there, or approved to move there.
pub(super) fn hosted<'a>(seed: &'a str, known: &'a [Arc<Shoot>]) -> impl Iterator<Item = &'a Shoot> {
    known.iter().map(AsRef::as_ref).filter(move |shoot| {
        let status = shoot.status.as_ref();
        let host = status
            .and_then(|status| status.seed_name.as_deref())
            .filter(|name| !name.is_empty());
        let comes = status
            .and_then(|status| status.migration.as_ref())
            .is_some_and(|approval| approval.destination == seed);
        comes || host.or(shoot.spec.seed_name.as_deref()) == Some(seed)
    })
}

/// The verdict on a move to a seed without room.
pub(super) fn full(source: &str, destination: &str, room: usize, taken: usize) -> Verdict {
    Verdict {
        ready: false,
        reason: FULL,
        message: format!(
            "Seed {destination} may have {room} shoots (status.allocatable.shoots) and has {taken}, counting those on the way: the move \
             begins when a shoot has left; raise maxShoots of the gardenlet of seed {destination}, name another seed, or set spec.seedName \
             back to {source}."
        ),
    }
}

/// The verdict of a dry run. A dry run takes no slot.
pub(super) fn judge(shoot: &Shoot, destination: &Seed, known: &[Arc<Shoot>], verdict: Verdict) -> Verdict {
    let name = destination.name_any();
    let others = || {
        hosted(&name, known)
            .filter(|other| other.uid() != shoot.uid())
            .count()
    };
    match room(destination).map(|room| (room, others())) {
        Some((room, taken)) if verdict.ready && taken >= room => {
            let status = shoot.status.as_ref();
            let source = status.and_then(|status| status.seed_name.as_deref());
            full(source.unwrap_or_default(), &name, room, taken)
        }
        _ => verdict,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(name: &str, spec: &str, status: &Value) -> Arc<Shoot> {
        let shoot = json!({
            "metadata": {"name": name, "uid": name},
            "spec": {"seedName": spec, "region": "r", "provider": {"type": "t"}, "kubernetes": {}}, "status": status,
        });
        Arc::new(serde_json::from_value(shoot).unwrap())
    }

    fn seed(shoots: Option<&str>) -> Seed {
        let mut seed = Seed::new("b", api::gardencore::SeedSpec::default());
        seed.status =
            shoots.map(|shoots| serde_json::from_value(json!({"allocatable": {"shoots": shoots}})).unwrap());
        seed
    }

    fn sample_shoots() -> Vec<Arc<Shoot>> {
        let comes = json!({"seedName": "a", "migration": {"source": "a", "destination": "b", "generation": 1, "spec": {}}});
        vec![
            shoot("here", "b", &json!({"seedName": "b"})),
            shoot("leaves", "a", &json!({"seedName": "b"})),
            shoot("new", "b", &json!({})),
            shoot("comes", "b", &comes),
            shoot("waits", "b", &json!({"seedName": "a"})),
            shoot("elsewhere", "a", &json!({"seedName": "a"})),
        ]
    }

    #[test]
    fn shoots_on_the_seed_new_shoots_and_approved_moves_take_room() {
        let known = sample_shoots();
        let names: Vec<_> = hosted("b", &known).map(ResourceExt::name_any).collect();
        assert_eq!(names, ["here", "leaves", "new", "comes"]);
        assert_eq!(
            (
                room(&seed(Some("7"))),
                room(&seed(Some("many"))),
                room(&seed(None))
            ),
            (Some(7), None, None)
        );
    }

    #[test]
    fn a_dry_run_reports_a_seed_without_room() {
        let ready = Verdict {
            ready: true,
            reason: "DestinationSeedReady",
            message: "Fine.".into(),
        };
        let asks = shoot("waits", "a", &json!({"seedName": "a"}));
        let judged = |room| judge(&asks, &seed(room), &sample_shoots(), ready.clone());
        assert!(judged(None).ready && judged(Some("5")).ready);
        let full = judged(Some("4"));
        assert_eq!((full.ready, full.reason), (false, FULL));
        assert!(
            full.message.contains("may have 4 shoots") && full.message.contains("has 4"),
            "{}",
            full.message
        );
    }
}
