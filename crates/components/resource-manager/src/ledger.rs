//! The state of each ManagedResource in this process: whether to apply the ManagedResource again, and the
//! objects for the health check.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    object::{Key, Owner},
    target::Target,
    watches::{KindWatch, Scope},
};

/// Minimum time between two applications of the same specification. Long enough that two writers of the same
/// field do not load the API server, short enough for a waiting person.
const PAUSE: Duration = Duration::from_secs(1);

/// An object of a ManagedResource.
#[derive(Clone)]
pub struct Item {
    /// Identity of the object.
    pub key: Key,
    /// Whether the health of the object counts.
    pub judged: bool,
    /// The watch that shows the object; `None` for a kind that cannot be watched.
    pub watch: Option<Arc<KindWatch>>,
}

impl Item {
    /// Stops reporting the deletion of the object.
    fn let_go(&self, owner: &Owner) {
        if let Some(watch) = &self.watch {
            watch.forget(&self.key, owner);
        }
    }
}

/// The last application, or the last attempt.
struct Attempt {
    uid: Option<String>,
    generation: Option<i64>,
    target: Arc<Target>,
    begun: Instant,
    /// Whether the application succeeded.
    done: bool,
}

#[derive(Default)]
struct Note {
    attempt: Option<Attempt>,
    /// A change was observed since that attempt began.
    dirty: bool,
    /// The Secrets that were read, with versions.
    secrets: Vec<(String, Option<String>)>,
    items: Arc<[Item]>,
}

/// The next action for a ManagedResource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Apply the objects.
    Apply,
    /// Only judge the health of the objects.
    Judge,
    /// Apply after this time: another writer changes the objects repeatedly.
    Later(Duration),
}

/// The state of each ManagedResource in this process.
#[derive(Default)]
pub struct Ledger(Mutex<HashMap<Owner, Note>>);

impl Ledger {
    fn notes(&self) -> MutexGuard<'_, HashMap<Owner, Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, events of the cluster wake this ManagedResource.
    pub fn knows(&self, owner: &Owner) {
        self.notes().entry(owner.clone()).or_default();
    }

    /// The next action for this ManagedResource. [`Todo::Apply`] records the begin of an application: a later
    /// change requires another application.
    pub fn begin(
        &self,
        owner: &Owner,
        uid: Option<&str>,
        generation: Option<i64>,
        target: &Arc<Target>,
    ) -> Todo {
        let mut notes = self.notes();
        let note = notes.entry(owner.clone()).or_default();
        let same = note.attempt.as_ref().filter(|attempt| {
            attempt.uid.as_deref() == uid
                && attempt.generation == generation
                && Arc::ptr_eq(&attempt.target, target)
        });
        if let Some(attempt) = same {
            if attempt.done && !note.dirty {
                return Todo::Judge;
            }
            let left = PAUSE.saturating_sub(attempt.begun.elapsed());
            if !left.is_zero() {
                return Todo::Later(left);
            }
        }
        note.dirty = false;
        note.attempt = Some(Attempt {
            uid: uid.map(str::to_owned),
            generation,
            target: Arc::clone(target),
            begun: Instant::now(),
            done: false,
        });
        Todo::Apply
    }

    /// The application that was begun has succeeded.
    pub fn done(&self, owner: &Owner) {
        if let Some(attempt) = self.notes().get_mut(owner).and_then(|note| note.attempt.as_mut()) {
            attempt.done = true;
        }
    }

    /// Records the Secrets that the ManagedResource reads, by name and version.
    pub fn reads(&self, owner: &Owner, secrets: Vec<(String, Option<String>)>) {
        self.notes().entry(owner.clone()).or_default().secrets = secrets;
    }

    /// Records the present objects. Watches that only former objects needed end.
    pub fn keeps(&self, owner: &Owner, items: Vec<Item>) {
        let before = {
            let mut notes = self.notes();
            let note = notes.entry(owner.clone()).or_default();
            std::mem::replace(&mut note.items, items.into())
        };
        let now = self.items(owner);
        let stays = |item: &Item| now.iter().any(|kept| kept.key.identity() == item.key.identity());
        before
            .iter()
            .filter(|item| !stays(item))
            .for_each(|item| item.let_go(owner));
    }

    /// The objects of the ManagedResource.
    #[must_use]
    pub fn items(&self, owner: &Owner) -> Arc<[Item]> {
        self.notes()
            .get(owner)
            .map(|note| Arc::clone(&note.items))
            .unwrap_or_default()
    }

    /// The ManagedResource has to be applied again.
    pub fn mark(&self, owner: &Owner) {
        if let Some(note) = self.notes().get_mut(owner) {
            note.dirty = true;
        }
    }

    /// The ManagedResource is gone.
    pub fn forget(&self, owner: &Owner) {
        let gone = self.notes().remove(owner);
        gone.iter()
            .flat_map(|note| note.items.iter())
            .for_each(|item| item.let_go(owner));
    }

    /// All ManagedResources with objects in this cluster.
    #[must_use]
    pub fn of_scope(&self, scope: &Scope) -> Vec<Owner> {
        self.notes()
            .keys()
            .filter(|owner| scope.contains(owner))
            .cloned()
            .collect()
    }

    /// The ManagedResources that read this Secret and have not read this version. All of these have to be
    /// applied again.
    pub fn reading(&self, namespace: &str, secret: &str, version: Option<&str>) -> Vec<Owner> {
        let mut found = Vec::new();
        for (owner, note) in self
            .notes()
            .iter_mut()
            .filter(|(owner, _)| owner.namespace == namespace)
        {
            let read = note.secrets.iter().find(|(name, _)| name == secret);
            if read.is_some_and(|(_, read)| version.is_none() || read.as_deref() != version) {
                note.dirty = true;
                found.push(owner.clone());
            }
        }
        found
    }

    /// Total number of objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.notes().values().map(|note| note.items.len()).sum()
    }
}
