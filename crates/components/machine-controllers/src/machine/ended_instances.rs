//! Instances that have ended while the shoot's API was silent.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Uids of Machines with an instance that has ended while the shoot's API was silent. A new process asks the
/// cloud once more.
#[derive(Debug, Default)]
pub struct EndedInstances(Mutex<BTreeSet<String>>);

impl EndedInstances {
    /// The Machine is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Whether the instance of the Machine has ended.
    pub fn contains(&self, uid: &str) -> bool {
        self.lock().contains(uid)
    }

    /// The instance of the Machine has ended.
    pub fn insert(&self, uid: String) {
        self.lock().insert(uid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
