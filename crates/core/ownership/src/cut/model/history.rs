//! The history of an etcd, and the observations of clients.

use super::super::record::{FollowedEnd, HistoryDigest};

/// The end of a lease at the source.
pub(super) const LEASE: u8 = 20;

/// The end of a lease at the destination, by the destination's own clock.
pub(super) const OWN_LEASE: u8 = 30;

/// A restore within an epoch skips revisions (docs/understand/decisions/0022).
pub(super) const SKIPPED: u8 = 40;

const LONGEST: usize = 10;

/// The events of an etcd in their order; each event is a revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct History {
    events: [u8; LONGEST],
    len: u8,
}

impl History {
    pub(super) fn push(&mut self, event: u8) {
        self.events[usize::from(self.len)] = event;
        self.len += 1;
    }

    pub(super) fn with(mut self, event: u8) -> Self {
        self.push(event);
        self
    }

    pub(super) fn len(&self) -> u8 {
        self.len
    }

    pub(super) fn get(&self, at: u8) -> Option<u8> {
        (at < self.len).then(|| self.events[usize::from(at)])
    }

    pub(super) fn has(&self, event: u8) -> bool {
        self.events.contains(&event)
    }

    pub(super) fn prefix(&self, len: u8) -> Self {
        let mut prefix = Self::default();
        for event in self.events.iter().take(usize::from(len.min(self.len))) {
            prefix.push(*event);
        }
        prefix
    }

    pub(super) fn is_prefix_of(&self, longer: &Self) -> bool {
        self.len <= longer.len && longer.prefix(self.len) == *self
    }

    /// The longest common prefix.
    pub(super) fn common(&self, second: &Self) -> Self {
        let mut len = self.len.min(second.len);
        while self.prefix(len) != second.prefix(len) {
            len -= 1;
        }
        self.prefix(len)
    }

    /// The last revision.
    pub(super) fn revision(&self) -> i64 {
        let events = self.events.iter().take(usize::from(self.len));
        events.map(|event| if *event == SKIPPED { 100 } else { 1 }).sum()
    }

    /// The end of this history. The digest is the content, so equal digests mean equal content.
    pub(super) fn end(&self) -> FollowedEnd {
        let mut digest = [0; 32];
        digest[..LONGEST].copy_from_slice(&self.events);
        FollowedEnd {
            revision: self.revision(),
            digest: HistoryDigest(digest),
        }
    }
}

/// The number of events in the history of this end.
pub(super) fn events_until(end: &FollowedEnd) -> u8 {
    let events = end.digest.0.iter().filter(|event| **event != 0).count();
    u8::try_from(events).unwrap()
}
