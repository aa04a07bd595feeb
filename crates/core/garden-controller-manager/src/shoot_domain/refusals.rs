//! The Shoots whose domain is refused, and the changes after which a new decision may end differently.
//! Between two decisions without such a change, the pause doubles: a member may create any number of refused
//! Shoots.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use api::gardencore::Shoot;
use kube::runtime::reflector::ObjectRef;

use super::{claim::DomainClaim, decision::Obstacle};

/// After the first refusal. Also after each refusal in favour of an older Shoot without a reservation: no
/// watch reports that the Project of the older Shoot is gone.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(60);
/// Every other obstacle is watched, or ends with this process. The pause covers lost watch events.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// The objects whose change may end an obstacle.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Awaited {
    /// The Shoot with this uid.
    Shoot(String),
    Seeds,
}

struct Refusal {
    shoot: ObjectRef<Shoot>,
    domain: String,
    obstacle: Obstacle,
    pause: Duration,
}

/// The refusals by the uid of the Shoot.
#[derive(Default)]
pub(super) struct Refusals {
    refused: HashMap<String, Refusal>,
    waiting: HashMap<Awaited, BTreeSet<String>>,
}

impl Refusals {
    /// Records a refusal, and returns the pause until the next decision.
    pub(super) fn record(&mut self, claim: &DomainClaim, obstacle: &Obstacle) -> Duration {
        let former = self.forget(&claim.uid);
        let is_same = |former: &Refusal| former.domain == claim.domain && former.obstacle == *obstacle;
        let pause = match former.filter(is_same) {
            Some(former) if !matches!(obstacle, Obstacle::Older(_)) => (former.pause * 2).min(LONGEST_PAUSE),
            _ => FIRST_PAUSE,
        };
        if let Some(awaited) = awaited(obstacle) {
            let waiting = self.waiting.entry(awaited).or_default();
            waiting.insert(claim.uid.clone());
        }
        let refusal = Refusal {
            shoot: claim.shoot.clone(),
            domain: claim.domain.clone(),
            obstacle: obstacle.clone(),
            pause,
        };
        self.refused.insert(claim.uid.clone(), refusal);
        pause
    }

    /// The claim of this Shoot has changed, or the Shoot is gone. Returns the refused Shoots to decide about.
    pub(super) fn after_change_of_shoot(&mut self, uid: &str) -> Vec<ObjectRef<Shoot>> {
        self.forget(uid);
        self.waiting_for(&Awaited::Shoot(uid.to_owned()))
    }

    /// The domains of a Seed have changed. Returns the refused Shoots to decide about.
    pub(super) fn after_change_of_seed(&self) -> Vec<ObjectRef<Shoot>> {
        self.waiting_for(&Awaited::Seeds)
    }

    /// The Shoot is not refused any more, or is gone.
    fn forget(&mut self, uid: &str) -> Option<Refusal> {
        let refusal = self.refused.remove(uid)?;
        if let Some(awaited) = awaited(&refusal.obstacle)
            && let Some(waiting) = self.waiting.get_mut(&awaited)
        {
            waiting.remove(uid);
            if waiting.is_empty() {
                self.waiting.remove(&awaited);
            }
        }
        Some(refusal)
    }

    fn waiting_for(&self, awaited: &Awaited) -> Vec<ObjectRef<Shoot>> {
        let waiting = self.waiting.get(awaited).into_iter().flatten();
        let refusals = waiting.filter_map(|uid| self.refused.get(uid));
        refusals.map(|refusal| refusal.shoot.clone()).collect()
    }
}

fn awaited(obstacle: &Obstacle) -> Option<Awaited> {
    match obstacle {
        Obstacle::Reserved(uid) | Obstacle::Older(uid) => Some(Awaited::Shoot(uid.clone())),
        Obstacle::Seed { .. } => Some(Awaited::Seeds),
        Obstacle::Operator | Obstacle::PublicSuffix(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(uid: &str) -> DomainClaim {
        DomainClaim {
            uid: uid.to_owned(),
            shoot: ObjectRef::new(uid).within("garden-dev"),
            domain: "customer.test".to_owned(),
            is_reserved: false,
            created: None,
            is_deleting: false,
            own_prefix: None,
        }
    }

    fn reserved(uid: &str) -> Obstacle {
        Obstacle::Reserved(uid.to_owned())
    }

    #[test]
    fn the_pause_of_a_refused_shoot_doubles_up_to_an_hour() {
        let mut refusals = Refusals::default();
        let mut record = |obstacle: &Obstacle| refusals.record(&claim("a"), obstacle).as_secs();
        let pauses: Vec<_> = (0..8).map(|_| record(&reserved("first"))).collect();
        assert_eq!(pauses, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(record(&reserved("second")), 60, "a new obstacle");
        let older = Obstacle::Older("third".to_owned());
        assert_eq!([record(&older), record(&older)], [60, 60]);
    }

    #[test]
    fn the_end_of_the_obstacle_wakes_the_shoots_that_wait() {
        let mut refusals = Refusals::default();
        refusals.record(&claim("a"), &reserved("first"));
        refusals.record(&claim("b"), &reserved("first"));
        refusals.record(&claim("c"), &reserved("second"));
        let seed = Obstacle::Seed {
            domain: "shoots.test".to_owned(),
            seed: "a".to_owned(),
        };
        refusals.record(&claim("d"), &seed);
        let of = |uids: &[&str]| -> Vec<_> { uids.iter().map(|uid| claim(uid).shoot).collect() };
        assert_eq!(refusals.after_change_of_shoot("first"), of(&["a", "b"]));
        assert_eq!(refusals.after_change_of_shoot("second"), of(&["c"]));
        assert_eq!(refusals.after_change_of_seed(), of(&["d"]));
        // A refused Shoot is gone.
        assert_eq!(refusals.after_change_of_shoot("a"), of(&[]));
        assert_eq!(refusals.after_change_of_shoot("first"), of(&["b"]));
        for uid in ["b", "c", "d"] {
            refusals.after_change_of_shoot(uid);
        }
        assert!(refusals.refused.is_empty() && refusals.waiting.is_empty());
    }
}
