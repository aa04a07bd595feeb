//! The state of the objects of a kind in a cluster: the marks at the application, and the last observation.
//!
//! A user with write access in a shoot can create any number of objects with the label and origin of this
//! process. So the process remembers only a bounded number of objects that this process has not applied. The
//! bound exceeds the number of real objects of a kind before the first application after a restart. Applied
//! objects are always remembered, so that their changes are noticed under all conditions.

use std::collections::HashMap;

use super::Event;
use crate::{
    health::Health,
    live::Marks,
    names::{MANAGED_BY, MANAGED_BY_LABEL},
    object::Owner,
};

/// Maximum number of remembered objects that this process has not applied. Some 300 bytes each.
pub const MOST_STRANGERS: usize = 1000;

/// Namespace and name.
type ObjectName = (Option<Box<str>>, Box<str>);

/// An object as a watch shows the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedObject {
    /// The owner in the origin annotation.
    pub owner: Owner,
    /// The marks of the object.
    pub marks: Marks,
    /// The health of the object.
    pub health: Health,
    /// The version of the object, which rises with each write; 0 if not known.
    pub version: u64,
}

/// The marks at the application, and whether labels and annotations of other writers count as a change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Applied {
    owner: Owner,
    marks: Marks,
    exactly: bool,
}

#[derive(Debug, Default)]
struct Entry {
    applied: Option<Applied>,
    seen: Option<WatchedObject>,
    /// The number of the last listing with the object.
    listing: u64,
}

/// The knowledge about an object's health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The object was seen.
    Seen(Health),
    /// All objects were listed, and the object is missing.
    Missing,
    /// Not known yet.
    Pending,
    /// Cannot be known; the text is the reason.
    Unknown(String),
}

/// The objects of a kind in a cluster.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each flag is independent
pub struct Entries {
    /// Boxed: the smallest table has room for four entries, and most clusters have a single object of a kind.
    objects: HashMap<ObjectName, Box<Entry>>,
    listing: u64,
    listed: bool,
    problem: Option<String>,
    /// Number of objects that this process has applied.
    applied: usize,
    /// Whether an object was seen and is not tracked: since the last finished listing, and in the present
    /// listing.
    has_untracked: bool,
    has_untracked_in_listing: bool,
    /// The status of an object of this kind shows its health.
    judged: bool,
}

fn object_name(namespace: Option<&str>, name: &str) -> ObjectName {
    (namespace.map(Into::into), name.into())
}

impl Entries {
    /// Without entries at first. `judged`: the kind has a health check beyond existence.
    #[must_use]
    pub fn new(judged: bool) -> Self {
        Self {
            judged,
            ..Self::default()
        }
    }

    /// Records that the object was applied just now, and has these marks in this version. Returns the change
    /// of a different writer that the watch has shown before: the answer to the application may come after
    /// the event of a later write, and the watch does not repeat the event.
    pub fn applied(
        &mut self,
        namespace: Option<&str>,
        name: &str,
        owner: &Owner,
        (marks, version): (Marks, u64),
        exactly: bool,
    ) -> Option<Event> {
        let entry = self.objects.entry(object_name(namespace, name)).or_default();
        let before = entry.applied.replace(Applied {
            owner: owner.clone(),
            marks,
            exactly,
        });
        self.applied += usize::from(before.is_none());
        // The object may have been seen without being remembered, and the watch shows the object again only
        // after a change.
        if self.has_untracked && !self.judged && entry.seen.is_none() {
            entry.seen = Some(WatchedObject {
                owner: owner.clone(),
                marks,
                health: Health::default(),
                version,
            });
            entry.listing = self.listing;
        }
        let later = entry
            .seen
            .as_ref()
            .filter(|seen| version > 0 && seen.version > version);
        let drifted = later.filter(|seen| seen.owner != *owner || !seen.marks.hold(marks, exactly));
        drifted.map(|_| Event::Drifted(owner.clone()))
    }

    /// This ManagedResource no longer manages the object. Another ManagedResource may have taken the object
    /// over in between.
    pub fn forget(&mut self, namespace: Option<&str>, name: &str, owner: &Owner) {
        let place = object_name(namespace, name);
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
        self.has_untracked_in_listing = false;
    }

    /// A listing has ended: objects outside the listing are gone.
    pub fn list_ends(&mut self) -> Vec<Event> {
        (self.listed, self.problem, self.has_untracked) = (true, None, self.has_untracked_in_listing);
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

    /// The kind cannot be listed. Returns whether the failure is new: repeated failures must not wake the
    /// controller each time.
    pub fn list_fails(&mut self, why: String) -> bool {
        let news = !self.listed && self.problem.as_ref() != Some(&why);
        if news {
            self.problem = Some(why);
        }
        news
    }

    /// An object was seen.
    pub fn sees(&mut self, namespace: Option<&str>, name: &str, seen: WatchedObject) -> Option<Event> {
        let (listing, place) = (self.listing, object_name(namespace, name));
        let strangers = self.objects.len() - self.applied;
        if strangers >= MOST_STRANGERS && !self.objects.contains_key(&place) {
            (self.has_untracked, self.has_untracked_in_listing) = (true, true);
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

    /// An object is gone, or no longer has the label.
    pub fn misses(&mut self, namespace: Option<&str>, name: &str) -> Option<Event> {
        let place = object_name(namespace, name);
        let entry = self.objects.get_mut(&place)?;
        let seen = entry.seen.take();
        if let Some(applied) = &entry.applied {
            return Some(Event::Drifted(applied.owner.clone()));
        }
        self.objects.remove(&place);
        // The ManagedResource of the object may wait for the deletion.
        seen.map(|seen| Event::Drifted(seen.owner))
    }

    /// Whether an object was seen that is not tracked.
    #[must_use]
    pub fn has_untracked(&self) -> bool {
        self.has_untracked
    }

    /// The state of an object.
    #[must_use]
    pub fn state(&self, namespace: Option<&str>, name: &str) -> State {
        let entry = self.objects.get(&object_name(namespace, name));
        match (entry.and_then(|entry| entry.seen.as_ref()), &self.problem) {
            (Some(seen), _) => State::Seen(seen.health.clone()),
            (None, Some(why)) => State::Unknown(why.clone()),
            (None, None) if self.listed && self.has_untracked => State::Unknown(format!(
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
