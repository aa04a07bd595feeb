//! What is known of shoots at this moment: which are asked for, and which were lost.

use std::{
    collections::{HashMap, HashSet, hash_map},
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::future::{BoxFuture, Shared, WeakShared};
use ownership::{Loss, Report};
use tokio::sync::watch::Receiver;

use crate::OwnerClaim;

/// A check, for whoever polls it.
pub(super) type Run = Shared<BoxFuture<'static, Loss>>;

/// All shoots that are worked for, and those that were lost since the process began.
#[derive(Default)]
pub(super) struct Book(Mutex<HashMap<ShootKey, Entry>>);

/// Identifies a shoot. A shoot that is deleted and made anew under the same name has the same namespace,
/// record name and first epoch, and must not inherit a loss: only the uid tells the two apart.
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

// A process has as many entries as shoots: the size of a loss does not matter.
#[allow(clippy::large_enum_variant)]
enum Entry {
    Asked {
        wanted: OwnerClaim,
        reports: Receiver<Report>,
        run: WeakShared<BoxFuture<'static, Loss>>,
    },
    Lost {
        epoch: i64,
        why: String,
        /// Objects of which it was told.
        told: HashSet<String>,
    },
}

/// What is known of a shoot.
pub(super) enum Known {
    /// It is asked for.
    Asked(Receiver<Report>, Run),
    /// It was lost in this epoch, or a later one.
    Lost(String),
}

impl Book {
    /// What is known; where that is nothing of this epoch, `begin` begins to ask.
    pub fn find<E>(
        &self,
        shoot: &ShootKey,
        wanted: &OwnerClaim,
        begin: impl FnOnce() -> Result<(Receiver<Report>, Run), E>,
    ) -> Result<Known, E> {
        let mut shoots = self.shoots();
        match shoots.get(shoot) {
            Some(Entry::Lost { epoch, why, .. }) if *epoch >= wanted.epoch => {
                return Ok(Known::Lost(why.clone()));
            }
            Some(Entry::Asked {
                wanted: asked,
                reports,
                run,
            }) if asked == wanted => {
                if let Some(run) = run.upgrade() {
                    return Ok(Known::Asked(reports.clone(), run));
                }
            }
            _ => {}
        }
        let (reports, run) = begin()?;
        if let Some(weak) = run.downgrade() {
            let entry = Entry::Asked {
                wanted: wanted.clone(),
                reports: reports.clone(),
                run: weak,
            };
            shoots.insert(shoot.clone(), entry);
        }
        Ok(Known::Asked(reports, run))
    }

    /// The shoot is lost, in this epoch for ever. What is asked for a later one goes on.
    pub fn lost(&self, shoot: &ShootKey, epoch: i64, why: &str) {
        let lost = || Entry::Lost {
            epoch,
            why: why.to_owned(),
            told: HashSet::new(),
        };
        match self.shoots().entry(shoot.clone()) {
            hash_map::Entry::Vacant(entry) => drop(entry.insert(lost())),
            hash_map::Entry::Occupied(mut entry) => {
                let is_over = match entry.get() {
                    Entry::Asked { wanted, .. } => wanted.epoch <= epoch,
                    Entry::Lost { epoch: known, .. } => *known < epoch,
                };
                if is_over {
                    drop(entry.insert(lost()));
                }
            }
        }
    }

    /// Whether the loss of a shoot in this namespace is reported for this object for the first time.
    pub fn is_news(&self, namespace: &str, object: &str) -> bool {
        let mut shoots = self.shoots();
        let (mut losses, mut is_news) = (0, false);
        for (shoot, entry) in shoots.iter_mut() {
            if let Entry::Lost { told, .. } = entry
                && shoot.namespace == namespace
            {
                losses += 1;
                is_news |= told.insert(object.to_owned());
            }
        }
        losses == 0 || is_news
    }

    /// Nobody works for it any more, or another one does by now.
    pub fn leave(&self, shoot: &ShootKey, left: &OwnerClaim) {
        let mut shoots = self.shoots();
        let is_over = matches!(
            shoots.get(shoot),
            Some(Entry::Asked { wanted, run, .. }) if wanted == left && run.upgrade().is_none()
        );
        if is_over {
            shoots.remove(shoot);
        }
    }

    /// Of how many shoots something is known.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.shoots().len()
    }

    fn shoots(&self) -> MutexGuard<'_, HashMap<ShootKey, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
