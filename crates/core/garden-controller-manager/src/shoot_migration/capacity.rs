//! How many shoots a seed may have: resource `shoots` of `status.allocatable` of the Seed, as in Gardener.
//! The bound holds back planned moves only. A takeover saves the shoot of a dead seed, and a person decides
//! on the room then.

use std::sync::Arc;

use api::gardencore::{Seed, Shoot};
use kube::ResourceExt;
use placement::{is_released, seed_use::has_obstacle};

use super::preflight::{FULL, Verdict};

/// Resource of `status.allocatable`.
const SHOOTS: &str = "shoots";
/// New shoots take at most this part of the room: one quarter.
const SHARE_OF_NEW: usize = 4;

/// The shoots that the seed may have. `None`: the seed names no number, or none that can be read.
pub(super) fn room(seed: &Seed) -> Option<usize> {
    let status = seed.status.as_ref()?;
    status.allocatable.get(SHOOTS)?.0.parse().ok()
}

/// The shoots that need room in the seed: on the seed, approved to move there, or about to be created there.
/// Of the last kind only a share counts, because each member of a project can create Shoots that name the
/// seed. A Shoot with an obstacle does not count, because no seed takes such a Shoot. Nor does a
/// released Shoot, or a Shoot in deletion that no seed has taken.
pub(super) fn hosted<'a>(
    seed: &'a str,
    room: usize,
    known: &'a [Arc<Shoot>],
) -> impl Iterator<Item = &'a Shoot> {
    let all = move || known.iter().map(|shoot| &**shoot);
    let certain = all().filter(move |shoot| is_on_or_comes(shoot, seed));
    let new = all().filter(move |shoot| is_about_to_be_created(shoot, seed) && !is_on_or_comes(shoot, seed));
    certain.chain(new.take(room / SHARE_OF_NEW))
}

fn is_on_or_comes(shoot: &Shoot, seed: &str) -> bool {
    let Some(status) = shoot.status.as_ref().filter(|_| !is_released(shoot)) else {
        return false;
    };
    let approval = status.migration.as_ref();
    let comes = approval.is_some_and(|approval| approval.destination == seed);
    comes || status.seed_name.as_deref() == Some(seed)
}

fn is_about_to_be_created(shoot: &Shoot, seed: &str) -> bool {
    let status = shoot.status.as_ref();
    let host = status.and_then(|status| status.seed_name.as_deref());
    let is_going = shoot.metadata.deletion_timestamp.is_some();
    shoot.spec.seed_name.as_deref() == Some(seed)
        && !is_going
        && host.unwrap_or_default().is_empty()
        && !has_obstacle(shoot)
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
    let others = |room| {
        hosted(&name, room, known)
            .filter(|other| other.uid() != shoot.uid())
            .count()
    };
    match room(destination).map(|room| (room, others(room))) {
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
        let names: Vec<_> = hosted("b", 4, &known).map(ResourceExt::name_any).collect();
        assert_eq!(names, ["here", "leaves", "comes", "new"]);
        assert_eq!(
            (
                room(&seed(Some("7"))),
                room(&seed(Some("many"))),
                room(&seed(None))
            ),
            (Some(7), None, None)
        );
    }

    /// Else a member of any project could keep planned moves from the seed for ever.
    #[test]
    fn shoots_that_only_name_the_seed_take_a_quarter_of_the_room() {
        let named = |count: usize| (0..count).map(|number| shoot(&format!("n{number}"), "b", &json!({})));
        let mut known: Vec<_> = named(100).collect();
        for (room, taken) in [(40, 10), (8, 2), (3, 0), (1000, 100)] {
            assert_eq!(hosted("b", room, &known).count(), taken, "{room}");
        }
        known.push(shoot("here", "b", &json!({"seedName": "b"})));
        assert_eq!(hosted("b", 3, &known).count(), 1, "a shoot on the seed counts");
        let refused = json!({"lastErrors": [{"description": "Seed b has the taint protected"}]});
        let known = [shoot("refused", "b", &refused)];
        assert_eq!(hosted("b", 40, &known).count(), 0);
        let mut ignored = Arc::unwrap_or_clone(shoot("ignored", "b", &json!({})));
        let annotations = json!({"shoot.gardener.cloud/ignore": "true"});
        ignored.metadata.annotations = serde_json::from_value(annotations).unwrap();
        assert_eq!(hosted("b", 40, &[Arc::new(ignored)]).count(), 0);
    }

    /// Else a member keeps planned moves from the seed by finalizers of deleted Shoots.
    #[test]
    fn a_deleted_shoot_takes_room_until_its_seed_releases_the_shoot() {
        let deleted = |status: &Value, finalizers: &[&str]| {
            let mut shoot = Arc::unwrap_or_clone(shoot("deleted", "b", status));
            shoot.metadata.deletion_timestamp =
                serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
            shoot.metadata.finalizers = serde_json::from_value(json!(finalizers)).unwrap();
            [Arc::new(shoot)]
        };
        let count = |known: [Arc<Shoot>; 1]| hosted("b", 40, &known).count();
        let (here, own) = (json!({"seedName": "b"}), "example.org/own");
        assert_eq!(count(deleted(&here, &["gardener", own])), 1);
        assert_eq!(count(deleted(&here, &[own])), 0);
        assert_eq!(count(deleted(&json!({}), &[own])), 0);
        assert_eq!(count(deleted(&json!({}), &["gardener", own])), 0);
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
