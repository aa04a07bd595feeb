//! What is known of the objects of one kind in one cluster: how they were applied, and how they were seen
//! last.
//!
//! Whoever may write in a shoot may write objects that look as if they were ours, as many as he likes. So
//! only some are remembered that were not applied from here: more than there are of a kind when the process
//! starts again, before they are applied anew. What was applied is remembered always, so that its changes are
//! noticed whatever else there is.

use std::collections::HashMap;

use super::Event;
use crate::{
    health::Health,
    live::Marks,
    names::{MANAGED_BY, MANAGED_BY_LABEL},
    object::Owner,
};

/// Objects that are remembered though nobody applied them from here. Some 300 bytes each.
pub const MOST_STRANGERS: usize = 1000;

/// Namespace and name.
type Place = (Option<Box<str>>, Box<str>);

/// An object as a watch shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Whose it says it is.
    pub owner: Owner,
    /// What it is like.
    pub marks: Marks,
    /// How it is.
    pub health: Health,
}

/// How it was applied, and whether labels and annotations of others are borne.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Applied {
    owner: Owner,
    marks: Marks,
    exactly: bool,
}

#[derive(Debug, Default)]
struct Entry {
    applied: Option<Applied>,
    seen: Option<Seen>,
    /// In which listing it was seen last.
    listing: u64,
}

/// What is known of one object's health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It was seen.
    Seen(Health),
    /// All objects were listed, and it is not among them.
    Missing,
    /// It is not known yet.
    Pending,
    /// It cannot be known.
    Unknown(String),
}

/// The objects of one kind in one cluster.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own
pub struct Entries {
    /// In boxes: the smallest table has room for four, and most clusters have one object of a kind.
    objects: HashMap<Place, Box<Entry>>,
    listing: u64,
    listed: bool,
    problem: Option<String>,
    /// How many of the objects were applied from here.
    applied: usize,
    /// Some object was seen and is not remembered: since the last listing that ended, and in the one that
    /// goes on.
    crowded: bool,
    crowds: bool,
    /// How an object is shows in its status.
    judged: bool,
}

fn place(namespace: Option<&str>, name: &str) -> Place {
    (namespace.map(Into::into), name.into())
}

impl Entries {
    /// None yet. `judged`: there is more to an object than that it is there.
    #[must_use]
    pub fn new(judged: bool) -> Self {
        Self {
            judged,
            ..Self::default()
        }
    }

    /// It was applied just now and is like this.
    pub fn applied(
        &mut self,
        namespace: Option<&str>,
        name: &str,
        owner: &Owner,
        marks: Marks,
        exactly: bool,
    ) {
        let entry = self.objects.entry(place(namespace, name)).or_default();
        let before = entry.applied.replace(Applied {
            owner: owner.clone(),
            marks,
            exactly,
        });
        self.applied += usize::from(before.is_none());
        // It may have been seen when there was no room for it, and will not be shown again until it changes.
        if self.crowded && !self.judged && entry.seen.is_none() {
            entry.seen = Some(Seen {
                owner: owner.clone(),
                marks,
                health: Health::default(),
            });
            entry.listing = self.listing;
        }
    }

    /// It is not kept any more by this one. Somebody else may have taken it over in between.
    pub fn forget(&mut self, namespace: Option<&str>, name: &str, owner: &Owner) {
        let place = place(namespace, name);
        let kept = |entry: &Entry| {
            entry
                .applied
                .as_ref()
                .is_some_and(|applied| applied.owner == *owner)
        };
        if let Some(entry) = self.objects.get_mut(&place).filter(|entry| kept(entry)) {
            entry.applied = None;
            self.applied -= 1;
            if entry.seen.is_none() {
                self.objects.remove(&place);
            }
        }
    }

    /// A listing begins.
    pub fn list_begins(&mut self) {
        self.listing += 1;
        self.crowds = false;
    }

    /// A listing has ended: what is not in it is gone.
    pub fn list_ends(&mut self) -> Vec<Event> {
        (self.listed, self.problem, self.crowded) = (true, None, self.crowds);
        let listing = self.listing;
        let mut events = Vec::new();
        self.objects.retain(|_, entry| {
            if entry.listing == listing {
                return true;
            }
            entry.seen = None;
            events.extend(
                entry
                    .applied
                    .iter()
                    .map(|applied| Event::Drifted(applied.owner.clone())),
            );
            entry.applied.is_some()
        });
        events
    }

    /// The kind cannot be listed. Whether that is news: who tries again and again must not wake anybody each
    /// time.
    pub fn list_fails(&mut self, why: String) -> bool {
        let news = !self.listed && self.problem.as_ref() != Some(&why);
        if news {
            self.problem = Some(why);
        }
        news
    }

    /// An object was seen.
    pub fn sees(&mut self, namespace: Option<&str>, name: &str, seen: Seen) -> Option<Event> {
        let (listing, place) = (self.listing, place(namespace, name));
        let strangers = self.objects.len() - self.applied;
        if strangers >= MOST_STRANGERS && !self.objects.contains_key(&place) {
            (self.crowded, self.crowds) = (true, true);
            return None;
        }
        let entry = self.objects.entry(place).or_default();
        entry.listing = listing;
        let drifted = entry.applied.as_ref().filter(|applied| {
            applied.owner != seen.owner || !seen.marks.hold(applied.marks, applied.exactly)
        });
        let judged = entry
            .seen
            .as_ref()
            .is_none_or(|before| before.health != seen.health);
        let event = match drifted {
            Some(applied) => Some(Event::Drifted(applied.owner.clone())),
            None if judged && self.listed => Some(Event::Judged(seen.owner.clone())),
            None => None,
        };
        entry.seen = Some(seen);
        event
    }

    /// An object is gone, or does not carry the label any more.
    pub fn misses(&mut self, namespace: Option<&str>, name: &str) -> Option<Event> {
        let place = place(namespace, name);
        let entry = self.objects.get_mut(&place)?;
        let seen = entry.seen.take();
        if let Some(applied) = &entry.applied {
            return Some(Event::Drifted(applied.owner.clone()));
        }
        self.objects.remove(&place);
        // Its ManagedResource may wait for this.
        seen.map(|seen| Event::Drifted(seen.owner))
    }

    /// Whether something was seen that is not remembered.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// How an object is.
    #[must_use]
    pub fn state(&self, namespace: Option<&str>, name: &str) -> State {
        let entry = self.objects.get(&place(namespace, name));
        match (entry.and_then(|entry| entry.seen.as_ref()), &self.problem) {
            (Some(seen), _) => State::Seen(seen.health.clone()),
            (None, Some(why)) => State::Unknown(why.clone()),
            (None, None) if self.listed && self.crowded => State::Unknown(format!(
                "more than {MOST_STRANGERS} objects of the kind carry the label {MANAGED_BY_LABEL}={MANAGED_BY} and are kept by \
                 nobody: take it from them"
            )),
            (None, None) if self.listed => State::Missing,
            (None, None) => State::Pending,
        }
    }
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
