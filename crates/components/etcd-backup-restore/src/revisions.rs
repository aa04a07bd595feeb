//! The rules by which changes become revisions, for changes of deltas and of watches. The restore and the
//! follower share these rules.

use crate::etcd::messages as m;
use bytes::Bytes;

/// One change of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// The key has this value and these counters from now on.
    Put(m::KeyValue),
    /// The key is deleted.
    Delete(Bytes),
}

impl Change {
    /// Checks a change as etcd reports changes: `kind` is 0 for a put and 1 for a deletion.
    pub(crate) fn check(kind: i64, kv: m::KeyValue) -> Result<Self, String> {
        let wrong = |what: String| Err(format!("revision {} {what}", kv.mod_revision));
        if kv.key.is_empty() {
            return wrong("holds a change without a key".to_owned());
        }
        match kind {
            0 if kv.version < 1 || !(1..=kv.mod_revision).contains(&kv.create_revision) => {
                wrong("holds a change without its version or creation".to_owned())
            }
            0 => Ok(Self::Put(kv)),
            1 => Ok(Self::Delete(kv.key)),
            other => wrong(format!("holds a change of the unknown type {other}")),
        }
    }

    /// The key.
    pub(crate) fn key(&self) -> &Bytes {
        match self {
            Self::Put(kv) => &kv.key,
            Self::Delete(key) => key,
        }
    }
}

/// Groups changes into revisions, and refuses a gap between two revisions. Changes of revisions that were
/// reached before are skipped.
pub(crate) struct Grouping<T> {
    reached: i64,
    number: i64,
    pending: Vec<T>,
}

/// A revision with all its changes.
pub(crate) type Group<T> = (i64, Vec<T>);

impl<T> Grouping<T> {
    /// Revisions after `reached`.
    pub(crate) fn after(reached: i64) -> Self {
        Self {
            reached,
            number: reached,
            pending: Vec::new(),
        }
    }

    /// Adds a change of a revision. Returns the revision before, when this change shows that the revision
    /// before is complete.
    pub(crate) fn push(&mut self, revision: i64, change: T) -> Result<Option<Group<T>>, String> {
        let complete = if self.number == revision {
            None
        } else {
            self.finish()?
        };
        if revision > self.reached {
            self.number = revision;
            self.pending.push(change);
        }
        Ok(complete)
    }

    /// Returns the last revision, of which no further change follows.
    pub(crate) fn finish(&mut self) -> Result<Option<Group<T>>, String> {
        if self.pending.is_empty() {
            return Ok(None);
        }
        if self.number != self.reached + 1 {
            return Err(format!("revision {} follows {}", self.number, self.reached));
        }
        self.reached = self.number;
        Ok(Some((self.number, std::mem::take(&mut self.pending))))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn changes_are_grouped_and_former_revisions_are_skipped() {
        let mut grouping = Grouping::after(4);
        let mut complete = Vec::new();
        for (revision, change) in [(3, 'a'), (4, 'b'), (5, 'c'), (5, 'd'), (6, 'e')] {
            complete.extend(grouping.push(revision, change).unwrap());
        }
        complete.extend(grouping.finish().unwrap());
        assert_eq!(complete, [(5, vec!['c', 'd']), (6, vec!['e'])]);
        assert_eq!(grouping.finish().unwrap(), None);
    }

    #[test]
    fn a_missing_revision_is_an_error() {
        let mut grouping = Grouping::after(4);
        grouping.push(6, 'a').unwrap();
        assert_eq!(grouping.finish().unwrap_err(), "revision 6 follows 4");
        let mut grouping = Grouping::after(4);
        grouping.push(5, 'a').unwrap();
        grouping.push(7, 'b').unwrap();
        assert!(grouping.push(8, 'c').is_err());
    }

    #[test]
    fn a_change_without_its_counters_is_refused() {
        let kv = |version, create_revision| m::KeyValue {
            key: "k".into(),
            create_revision,
            mod_revision: 5,
            version,
            ..m::KeyValue::default()
        };
        assert!(Change::check(0, kv(1, 5)).is_ok());
        assert!(Change::check(1, kv(0, 0)).is_ok());
        for (kind, kv) in [(0, kv(0, 5)), (0, kv(1, 0)), (0, kv(1, 6)), (2, kv(1, 5))] {
            assert!(Change::check(kind, kv).is_err());
        }
        assert!(Change::check(1, m::KeyValue::default()).is_err());
    }
}
