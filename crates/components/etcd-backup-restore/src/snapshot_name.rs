//! Names of snapshot objects:
//! `{Full|Incr}-<first revision>-<last revision>-<unix time>[.gz|.zlib|.zst][.final]`.
//!
//! The layout equals the layout of Gardener's buckets, so that each side can read the objects of the other.
//! The name holds everything that the chain selection needs: a listing is enough, no object has to be opened.

use crate::clock;
use crate::compression::Compression;
use crate::error::{Class, Error, Result};
use jiff::Timestamp;
use sidecar_protocol::ReportedSnapshot;
use std::fmt;

/// Folder below the store's prefix; the name is the version of the layout.
pub const LAYOUT: &str = "v2";

/// The start of the year 9000, in seconds since 1970.
const YEAR_9000: i64 = 221_845_392_000;

/// Full state of etcd, or the changes since the snapshot before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The whole database.
    Full,
    /// Events between two revisions.
    Delta,
}

impl Kind {
    /// As in names, JSON and metric labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "Full",
            Self::Delta => "Incr",
        }
    }
}

/// A snapshot object, as its name describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// Full or delta.
    pub kind: Kind,
    /// First revision inside; 0 for a full snapshot.
    pub start_revision: i64,
    /// Last revision inside. A full snapshot may hold slightly more, because etcd reports its revision before
    /// etcd streams the database.
    pub last_revision: i64,
    /// Seconds since 1970.
    pub created: i64,
    /// Compression of the content.
    pub compression: Compression,
    /// The snapshot was taken when the shoot left this seed; no snapshot follows.
    pub is_final: bool,
    /// Bytes in the store; 0 before the upload.
    pub size: u64,
    /// Ownership epoch in which the snapshot was taken (see [`crate::store`]; the name does not hold the
    /// epoch). 0 before the upload.
    pub epoch: i64,
}

impl Snapshot {
    /// A snapshot that is about to be written.
    #[must_use]
    pub fn new(kind: Kind, revisions: (i64, i64), compression: Compression, is_final: bool) -> Self {
        let created = clock::now().as_second();
        Self {
            kind,
            start_revision: revisions.0,
            last_revision: revisions.1,
            created,
            compression,
            is_final,
            size: 0,
            epoch: 0,
        }
    }

    /// Reads the name of an object in the folder of the snapshots; `None` for an object that does not look
    /// like a snapshot, and is then ignored.
    ///
    /// An object that begins like a snapshot and cannot be parsed is an error that names the object. The
    /// object may be the newest: ignoring it would silently select an older chain.
    pub fn read(name: &str) -> Result<Option<Self>> {
        let looks_like_one = [Kind::Full, Kind::Delta].iter().any(|kind| {
            name.strip_prefix(kind.as_str())
                .is_some_and(|rest| rest.starts_with('-'))
        });
        match Self::parse(name) {
            None if looks_like_one => Err(Error::new(
                Class::SnapshotUnparsable,
                format!(
                    "{} looks like a snapshot and cannot be read as one (read are {{Full|Incr}}-<first revision>-\
                     <last revision>-<unix time>[.gz|.zlib|.zst][.final]); give it its right name, pack it in another \
                     way, or move it out of the folder if its changes may be lost",
                    name.escape_debug()
                ),
            )),
            snapshot => Ok(snapshot),
        }
    }

    /// Parses a name; `None` if the name is not a snapshot's.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (name, is_final) = match name.strip_suffix(".final") {
            Some(rest) => (rest, true),
            None => (name, false),
        };
        let (stem, suffix) = name.find('.').map_or((name, ""), |dot| name.split_at(dot));
        let compression = Compression::from_suffix(suffix)?;
        let mut parts = stem.split('-');
        let kind = match parts.next()? {
            "Full" => Kind::Full,
            "Incr" => Kind::Delta,
            _ => return None,
        };
        let mut number = || {
            parts
                .next()
                .filter(|p| p.bytes().all(|b| b.is_ascii_digit()))?
                .parse::<i64>()
                .ok()
        };
        let (start_revision, last_revision, created) = (number()?, number()?, number()?);
        if parts.next().is_some() || start_revision > last_revision || (kind == Kind::Delta && is_final) {
            return None;
        }
        Some(Self {
            kind,
            start_revision,
            last_revision,
            created,
            compression,
            is_final,
            size: 0,
            epoch: 0,
        })
    }

    /// The time at which the snapshot was begun; 1970 for an invalid time.
    #[must_use]
    pub fn created_on(&self) -> Timestamp {
        Timestamp::from_second(self.created).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The time at which the snapshot was begun; `None` for an invalid time. No API server accepts a time
    /// from the year 9000 on.
    #[must_use]
    pub fn taken_on(&self) -> Option<Timestamp> {
        let taken = Some(self.created).filter(|created| *created < YEAR_9000)?;
        Timestamp::from_second(taken).ok()
    }

    /// The JSON shape of the HTTP interface.
    #[must_use]
    pub fn view(&self, prefix: &str) -> ReportedSnapshot {
        ReportedSnapshot {
            created_on: Some(self.created_on()),
            immutability_expiry_time: Some(Timestamp::UNIX_EPOCH),
            kind: self.kind.as_str().to_owned(),
            snap_dir: String::new(),
            snap_name: Some(self.to_string()),
            prefix: prefix.to_owned(),
            compression_suffix: self.compression.suffix().to_owned(),
            start_revision: self.start_revision,
            last_revision: Some(self.last_revision),
            is_chunk: false,
            is_final: self.is_final,
        }
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, suffix) = (self.kind.as_str(), self.compression.suffix());
        let end = if self.is_final { ".final" } else { "" };
        write!(
            f,
            "{kind}-{:08}-{:08}-{}{suffix}{end}",
            self.start_revision, self.last_revision, self.created
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_survive_a_round_trip() {
        for name in [
            "Full-00000000-00000001-1518427675",
            "Full-00000000-00012345-1518427675.gz",
            "Full-00000000-00012345-1518427675.gz.final",
            "Full-00000000-00012345-1518427675.final",
            "Incr-00012346-123456789012-1518427999.zst",
            "Incr-00000002-00000002-1518427999.zlib",
        ] {
            assert_eq!(Snapshot::parse(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn what_is_not_a_snapshot_is_not_read_as_one() {
        for name in [
            "",
            "README.md",
            "Full-1-2",
            "Full-00000000-00000001-1518427675.lzw",
            "Full-00000000-00000001-1518427675.gz.tmp",
            "Full-00000000-00000001-1518427675-9",
            "Incr-00000009-00000002-1518427675",
            "Incr-00000001-00000002-1518427675.final",
            "Full-00000000-+0000001-1518427675",
            "Chunk-00000000-00000001-1518427675",
            "Full-00000000-99999999999999999999-1518427675",
        ] {
            assert_eq!(Snapshot::parse(name), None, "{name}");
        }
    }

    #[test]
    fn what_looks_like_a_snapshot_and_cannot_be_read_is_never_skipped() {
        for name in [
            "Full-00000000-00012345-1518427675.Z",
            "Incr-00000002-00000009-1518427675.Z",
            "Full-00000000-00012345-1518427675.gz.tmp",
            "Incr-00000009-00000002-1518427675",
            "Full-",
        ] {
            let error = Snapshot::read(name).unwrap_err();
            assert_eq!(error.class, Class::SnapshotUnparsable);
            assert!(error.to_string().contains(name), "{error}");
        }
        for name in [
            "",
            "README.md",
            "Fully",
            "Chunk-00000000-00000001-1518427675",
            "full-1",
        ] {
            assert_eq!(Snapshot::read(name).unwrap(), None, "{name}");
        }
        assert!(
            Snapshot::read("Full-00000000-00012345-1518427675.gz")
                .unwrap()
                .is_some()
        );
    }

    /// Any user of the bucket can write a name.
    #[test]
    fn a_time_that_can_be_none_is_none() {
        for (created, taken) in [
            ("0", Some("1970-01-01T00:00:00Z")),
            ("1518427675", Some("2018-02-12T09:27:55Z")),
            ("221845391999", Some("8999-12-31T23:59:59Z")),
            ("221845392000", None),
            ("9223372036854775807", None),
        ] {
            let snapshot = Snapshot::parse(&format!("Full-00000000-00000007-{created}.gz")).unwrap();
            let on = snapshot.taken_on().map(|on| on.to_string());
            assert_eq!(on.as_deref(), taken);
            serde_json::to_value(snapshot.view("p")).unwrap();
        }
    }

    #[test]
    fn the_view_has_the_words_of_the_interface() {
        let snapshot = Snapshot::parse("Full-00000000-00000007-1518427675.gz.final").unwrap();
        let json = serde_json::to_value(snapshot.view("shoot/etcd-main/v2")).unwrap();
        assert_eq!(json["createdOn"], "2018-02-12T09:27:55Z");
        assert_eq!(json["kind"], "Full");
        assert_eq!(json["snapName"], "Full-00000000-00000007-1518427675.gz.final");
        assert_eq!(json["compressionSuffix"], ".gz");
        assert_eq!(json["lastRevision"], 7);
        assert_eq!(json["isFinal"], true);
        assert_eq!(json["isChunk"], false);
    }
}
