//! The part of etcd's database to which a restore adds changes: each change under its revision, and the
//! leases.
//!
//! A change is stored with its original revision, creation revision and version: no counter is computed
//! again.

use super::bolt::{Database, Tail};
use crate::etcd::messages as m;
use crate::revisions::Change;
use prost::Message;
use std::collections::{BTreeMap, HashSet};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Bucket of all changes.
const CHANGES: &str = "key";
/// Bucket of all leases.
const LEASES: &str = "lease";
/// Bucket of the raised alarms; each key is an alarm with its member.
const ALARMS: &str = "alarm";
/// Bucket of etcd's metadata.
const MEMORY: &str = "meta";
/// Keys of the bucket: the revision up to which history was compacted, and the revision of a scheduled
/// compaction. If a compaction removed the newest change, a deletion, these two keys alone still hold its
/// revision.
const DROPPED: [&[u8]; 2] = [b"finishedCompactRev", TO_BE_DROPPED];
const TO_BE_DROPPED: &[u8] = b"scheduledCompactRev";
/// Separates the revision and the number of the change within the revision.
const BETWEEN: u8 = b'_';
/// Ends the key of a deletion.
const DELETION: u8 = b't';

/// The database of an etcd that does not run.
pub(super) struct History {
    database: Database,
    tail: Tail,
    revision: i64,
    leases: HashSet<i64>,
    /// New leases, with their TTL in seconds.
    granted: BTreeMap<i64, i64>,
}

impl History {
    /// Opens the database.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let database = Database::open(path)?;
        let tail = Tail::open(&database, CHANGES)?;
        // An etcd without a key is at revision 1.
        let mut revision = tail.last_key().map_or(Ok(1), revision_of)?;
        database.each(MEMORY, |key, value| {
            if DROPPED.contains(&key) {
                revision = revision.max(revision_of(value)?);
            }
            Ok(())
        })?;
        let mut leases = HashSet::new();
        database.each(LEASES, |key, _| {
            let id = key.try_into().map_err(|_| broken("a lease has no number"))?;
            leases.insert(i64::from_be_bytes(id));
            Ok(())
        })?;
        Ok(Self {
            database,
            tail,
            revision,
            leases,
            granted: BTreeMap::new(),
        })
    }

    /// The newest revision.
    pub(super) fn revision(&self) -> i64 {
        self.revision
    }

    /// Bytes of the database.
    pub(super) fn size(&self) -> u64 {
        self.database.size()
    }

    /// Whether alarm NOSPACE is raised, so that an etcd on this database refuses writes.
    pub(super) fn refuses_writes(&self) -> Result<bool> {
        let mut raised = false;
        self.database.each_if_any(ALARMS, |key, _| {
            let alarm =
                m::AlarmMember::decode(key).map_err(|e| broken(&format!("an alarm cannot be read: {e}")))?;
            raised |= alarm.alarm() == m::AlarmType::NoSpace;
            Ok(())
        })?;
        Ok(raised)
    }

    /// Whether a lease is known.
    pub(super) fn knows(&self, lease: i64) -> bool {
        self.leases.contains(&lease)
    }

    /// Adds a lease.
    pub(super) fn grant(&mut self, lease: i64, seconds: i64) {
        self.leases.insert(lease);
        self.granted.insert(lease, seconds);
    }

    /// Adds the changes of the next revision.
    pub(super) fn add(&mut self, changes: impl IntoIterator<Item = Change>) -> Result<()> {
        let revision = self.revision + 1;
        for (change, number) in changes.into_iter().zip(0_i64..) {
            let mut key = key_of(revision, number);
            let value = match change {
                Change::Put(value) => value,
                Change::Delete(name) => {
                    key.push(DELETION);
                    m::KeyValue {
                        key: name,
                        ..m::KeyValue::default()
                    }
                }
            };
            self.tail.push(&mut self.database, key, value.encode_to_vec())?;
        }
        self.revision = revision;
        Ok(())
    }

    /// Skips this number of revisions, and schedules a compaction of the earlier history for etcd's start.
    /// Clients that watch from a skipped revision are then told to list again. No change may have been added
    /// before.
    pub(super) fn leave_out(mut self, revisions: i64) -> Result<i64> {
        let revision = self
            .revision
            .checked_add(revisions)
            .ok_or_else(|| broken("its revisions are at their end"))?;
        let mark = (TO_BE_DROPPED.to_vec(), key_of(revision, 0));
        upsert_entries(&mut self.database, MEMORY, [mark])?;
        self.database.seal()?;
        Ok(revision)
    }

    /// Writes all pending entries; returns the size of the database in bytes.
    pub(super) fn close(mut self) -> Result<u64> {
        self.tail.finish(&mut self.database)?;
        if !self.granted.is_empty() {
            let granted = self.granted.into_iter().map(|(id, ttl)| {
                let lease = m::Lease { id, ttl };
                (id.to_be_bytes().to_vec(), lease.encode_to_vec())
            });
            upsert_entries(&mut self.database, LEASES, granted)?;
        }
        self.database.seal()
    }
}

/// Inserts entries into a small bucket, and replaces entries with the same key.
fn upsert_entries(
    database: &mut Database,
    bucket: &str,
    entries: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
) -> Result<()> {
    let mut all = BTreeMap::new();
    database.each(bucket, |key, value| {
        all.insert(key.to_vec(), value.to_vec());
        Ok(())
    })?;
    all.extend(entries);
    Tail::refill(database, bucket, all)
}

/// Of a change in a revision, with room for the mark of a deletion.
fn key_of(revision: i64, number: i64) -> Vec<u8> {
    let mut key = Vec::with_capacity(18);
    key.extend(revision.to_be_bytes());
    key.push(BETWEEN);
    key.extend(number.to_be_bytes());
    key
}

fn revision_of(key: &[u8]) -> Result<i64> {
    let revision = key.get(..8).and_then(|revision| revision.try_into().ok());
    revision
        .map(i64::from_be_bytes)
        .ok_or_else(|| broken("a revision is too short"))
}

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
