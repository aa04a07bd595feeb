//! The checks under way of a process, and the shoots that the process has lost.

use std::{
    collections::{HashMap, HashSet, hash_map},
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::future::{BoxFuture, Shared, WeakShared};
use ownership::{OwnershipLoss, Report};
use tokio::sync::watch::Receiver;

use crate::OwnerClaim;

/// A check that is polled by all work of a shoot.
pub(super) type SharedRun = Shared<BoxFuture<'static, OwnershipLoss>>;

/// All shoots with work under way, and all shoots lost since the process began.
#[derive(Default)]
pub(super) struct CheckRegistry(Mutex<HashMap<ShootKey, Entry>>);

/// Identifies a shoot. A shoot that is deleted and created again under the same name has the same namespace,
/// record name and first epoch, and must not inherit a loss. Only the uid differs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShootKey {
    pub namespace: String,
    pub uid: String,
}

impl ShootKey {
    pub fn new(namespace: &str, claim: &OwnerClaim) -> Self {
        Self {
            namespace: namespace.to_owned(),
            uid: claim.shoot_uid.clone(),
        }
    }
}

// A process has at most one entry per shoot, so the size of a loss does not matter.
#[allow(clippy::large_enum_variant)]
enum Entry {
    UnderWay {
        wanted: OwnerClaim,
        reports: Receiver<Report>,
        run: WeakShared<BoxFuture<'static, OwnershipLoss>>,
    },
    Lost {
        epoch: i64,
        why: String,
        /// Objects for which the loss was reported.
        reported_for: HashSet<String>,
    },
}

/// The entry of a shoot for a claim.
pub(super) enum CheckState {
    /// A check is under way.
    UnderWay(Receiver<Report>, SharedRun),
    /// The shoot was lost in this epoch or a later epoch.
    Lost(String),
    /// A check for this later epoch is under way.
    LaterEpoch(i64),
}

impl CheckRegistry {
    /// The entry of the shoot. Without an entry for this epoch or a later epoch, `begin` begins a check. A
    /// claim from a Cluster that is behind must not replace the check of a later epoch.
    pub fn find<E>(
        &self,
        shoot: &ShootKey,
        wanted: &OwnerClaim,
        begin: impl FnOnce() -> Result<(Receiver<Report>, SharedRun), E>,
    ) -> Result<CheckState, E> {
        let mut shoots = self.shoots();
        match shoots.get(shoot) {
            Some(Entry::Lost { epoch, why, .. }) if *epoch >= wanted.epoch => {
                return Ok(CheckState::Lost(why.clone()));
            }
            Some(Entry::UnderWay {
                wanted: asked,
                reports,
                run,
            }) if asked == wanted => {
                if let Some(run) = run.upgrade() {
                    return Ok(CheckState::UnderWay(reports.clone(), run));
                }
            }
            Some(Entry::UnderWay {
                wanted: asked, run, ..
            }) if asked.epoch > wanted.epoch && run.upgrade().is_some() => {
                return Ok(CheckState::LaterEpoch(asked.epoch));
            }
            _ => {}
        }
        let (reports, run) = begin()?;
        if let Some(weak) = run.downgrade() {
            let entry = Entry::UnderWay {
                wanted: wanted.clone(),
                reports: reports.clone(),
                run: weak,
            };
            shoots.insert(shoot.clone(), entry);
        }
        Ok(CheckState::UnderWay(reports, run))
    }

    /// Records that the shoot is lost in this epoch. A check for a later epoch continues.
    pub fn lost(&self, shoot: &ShootKey, epoch: i64, why: &str) {
        let lost = || Entry::Lost {
            epoch,
            why: why.to_owned(),
            reported_for: HashSet::new(),
        };
        match self.shoots().entry(shoot.clone()) {
            hash_map::Entry::Vacant(entry) => drop(entry.insert(lost())),
            hash_map::Entry::Occupied(mut entry) => {
                let is_over = match entry.get() {
                    Entry::UnderWay { wanted, .. } => wanted.epoch <= epoch,
                    Entry::Lost { epoch: known, .. } => *known < epoch,
                };
                if is_over {
                    drop(entry.insert(lost()));
                }
            }
        }
    }

    /// Whether the loss of a shoot in this namespace is reported for this object for the first time.
    pub fn is_first_report(&self, namespace: &str, object: &str) -> bool {
        let mut shoots = self.shoots();
        let (mut losses, mut is_first) = (0, false);
        for (shoot, entry) in shoots.iter_mut() {
            if let Entry::Lost { reported_for, .. } = entry
                && shoot.namespace == namespace
            {
                losses += 1;
                is_first |= reported_for.insert(object.to_owned());
            }
        }
        losses == 0 || is_first
    }

    /// Removes the entry after the last work for the shoot, unless new work has begun a check in between.
    pub fn leave(&self, shoot: &ShootKey, left: &OwnerClaim) {
        let mut shoots = self.shoots();
        let is_over = matches!(
            shoots.get(shoot),
            Some(Entry::UnderWay { wanted, run, .. }) if wanted == left && run.upgrade().is_none()
        );
        if is_over {
            shoots.remove(shoot);
        }
    }

    /// Number of shoots with an entry.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.shoots().len()
    }

    fn shoots(&self) -> MutexGuard<'_, HashMap<ShootKey, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
