//! Whether new reconciliations of a Shoot are held back: by the user of the Shoot, or by the operator of the
//! seed.
//!
//! A pause holds back only work that has not begun. An interrupted flow leaves a control plane half changed,
//! so work under way continues to its end. So do moves that began, takeovers, deletions and clean-up. As in
//! Gardener, a deletion also begins during a pause.

use std::collections::BTreeMap;

use api::{
    constants::{
        EMERGENCY_STOP, SHOOT_IGNORE,
        condition::{SEED_EMERGENCY_STOP, SHOOT_IGNORED},
        is_switched_on,
    },
    gardencore::Shoot,
    meta::{LastOperationState as State, LastOperationType as Type},
};
use kube::ResourceExt;

use crate::{
    journey::{Journey, journey},
    operation::Operation,
    status,
};

/// The reason why new reconciliations of a Shoot are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The Shoot has the annotation [`SHOOT_IGNORE`].
    ShootIgnored,
    /// The Seed has the annotation [`EMERGENCY_STOP`].
    SeedStopped,
}

impl Pause {
    /// The reason of the constraint `ReconciliationPossible` and of the Event.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::ShootIgnored => SHOOT_IGNORED,
            Self::SeedStopped => SEED_EMERGENCY_STOP,
        }
    }

    /// The sentence for the user: the effect, the cause and the remedy.
    #[must_use]
    pub fn sentence(self, seed: &str) -> String {
        let (cause, remedy) = match self {
            Self::ShootIgnored => (
                format!("the Shoot has the annotation {SHOOT_IGNORE}"),
                "remove the annotation to resume".to_owned(),
            ),
            Self::SeedStopped => (
                format!("Seed {seed} has the annotation {EMERGENCY_STOP}"),
                "the operator of the seed removes the annotation to resume".to_owned(),
            ),
        };
        format!(
            "new reconciliations and moves are held back because {cause}; work under way, takeovers and deletions go on; \
             {remedy}"
        )
    }
}

/// The pause of a Shoot, on a seed that is stopped or not. The annotation of the Shoot comes first: the user
/// of the Shoot can remove that annotation.
#[must_use]
pub fn pause(shoot: &Shoot, seed_is_stopped: bool) -> Option<Pause> {
    if is_on(shoot.annotations(), SHOOT_IGNORE) {
        Some(Pause::ShootIgnored)
    } else {
        seed_is_stopped.then_some(Pause::SeedStopped)
    }
}

/// Whether a Seed with these annotations holds back new reconciliations of its Shoots.
#[must_use]
pub fn is_stopped(seed: &BTreeMap<String, String>) -> bool {
    is_on(seed, EMERGENCY_STOP)
}

/// Whether this operation would begin new work. A pause holds back new work, but not the end of work that has
/// begun.
#[must_use]
pub fn begins_anew(shoot: &Shoot, operation: Operation) -> bool {
    match operation {
        Operation::Create | Operation::Reconcile => !is_under_way(shoot),
        Operation::Migrate => journey(shoot) == Journey::Settled,
        Operation::Restore | Operation::Delete | Operation::ForceDelete => false,
    }
}

/// An edit since the beginning turns the operation into new work: the flow would apply the edit too.
fn is_under_way(shoot: &Shoot) -> bool {
    status(shoot).is_some_and(|status| {
        let last = status.last_operation.as_ref();
        status.observed_generation == shoot.metadata.generation
            && last.is_some_and(|last| {
                matches!(last.type_, Type::Create | Type::Reconcile)
                    && matches!(last.state, State::Processing | State::Pending | State::Error)
            })
    })
}

fn is_on(annotations: &BTreeMap<String, String>, key: &str) -> bool {
    annotations.get(key).is_some_and(|value| is_switched_on(value))
}

#[cfg(test)]
#[path = "pause_tests.rs"]
mod tests;
