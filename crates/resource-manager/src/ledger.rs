//! What this process knows of each ManagedResource: whether it has to be applied again, and whose health
//! counts.

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

/// Between two applications of the same specification. Long enough that two writers of one field do not keep
/// the API server busy, shorter than a person waits.
const PAUSE: Duration = Duration::from_secs(1);

/// An object that is kept.
#[derive(Clone)]
pub struct Item {
    /// What it is called.
    pub key: Key,
    /// Whether its health counts.
    pub judged: bool,
    /// What shows it; none for a kind that cannot be watched.
    pub watch: Option<Arc<KindWatch>>,
}

impl Item {
    /// Its going is no news any more.
    fn let_go(&self, owner: &Owner) {
        if let Some(watch) = &self.watch {
            watch.forget(&self.key, owner);
        }
    }
}

/// What was applied last, or was to be.
struct Attempt {
    uid: Option<String>,
    generation: Option<i64>,
    target: Arc<Target>,
    begun: Instant,
    /// Whether all went well.
    done: bool,
}

#[derive(Default)]
struct Note {
    attempt: Option<Attempt>,
    /// Something has changed since that attempt began.
    dirty: bool,
    /// The Secrets that were read, with their versions.
    secrets: Vec<(String, Option<String>)>,
    items: Arc<[Item]>,
}

/// What is to be done with a ManagedResource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Apply it.
    Apply,
    /// Nothing but to look how its objects are.
    Judge,
    /// Apply it after a while: somebody changes its objects again and again.
    Later(Duration),
}

/// What this process knows of each ManagedResource.
#[derive(Default)]
pub struct Ledger(Mutex<HashMap<Owner, Note>>);

impl Ledger {
    fn notes(&self) -> MutexGuard<'_, HashMap<Owner, Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it is woken for what becomes of its cluster.
    pub fn knows(&self, owner: &Owner) {
        self.notes().entry(owner.clone()).or_default();
    }

    /// What is to be done with this one now. [`Todo::Apply`] takes note that an application begins: what
    /// changes from here on makes another one necessary.
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

    /// The application that was begun went well.
    pub fn done(&self, owner: &Owner) {
        if let Some(attempt) = self.notes().get_mut(owner).and_then(|note| note.attempt.as_mut()) {
            attempt.done = true;
        }
    }

    /// It reads these Secrets, by name and version.
    pub fn reads(&self, owner: &Owner, secrets: Vec<(String, Option<String>)>) {
        self.notes().entry(owner.clone()).or_default().secrets = secrets;
    }

    /// These are its objects now. Watches that only former ones needed end.
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

    /// Its objects.
    #[must_use]
    pub fn items(&self, owner: &Owner) -> Arc<[Item]> {
        self.notes()
            .get(owner)
            .map(|note| Arc::clone(&note.items))
            .unwrap_or_default()
    }

    /// It has to be applied again.
    pub fn mark(&self, owner: &Owner) {
        if let Some(note) = self.notes().get_mut(owner) {
            note.dirty = true;
        }
    }

    /// It is gone.
    pub fn forget(&self, owner: &Owner) {
        let gone = self.notes().remove(owner);
        gone.iter()
            .flat_map(|note| note.items.iter())
            .for_each(|item| item.let_go(owner));
    }

    /// All whose objects are in this cluster.
    #[must_use]
    pub fn of_scope(&self, scope: &Scope) -> Vec<Owner> {
        self.notes()
            .keys()
            .filter(|owner| scope.holds(owner))
            .cloned()
            .collect()
    }

    /// Those that read this Secret, and have not read this version of it. They have to be applied again.
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

    /// How many objects are kept.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.notes().values().map(|note| note.items.len()).sum()
    }
}
