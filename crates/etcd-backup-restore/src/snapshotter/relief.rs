//! The report of an attempt to make room in an etcd that refuses writes.

use crate::clock;
use crate::etcd::Space;
use jiff::Timestamp;
use serde::Serialize;

/// The result of an attempt to make room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Relief {
    /// When the attempt ended.
    pub at: Timestamp,
    /// `Disarmed`, or `NoRoom` where the data alone fill the quota.
    pub result: &'static str,
    /// The state of etcd and the remedy, for people.
    pub message: String,
}

impl Relief {
    pub(super) const DISARMED: &'static str = "Disarmed";
    pub(super) const NO_ROOM: &'static str = "NoRoom";

    pub(super) fn new(space: Space, alarm: bool) -> Self {
        let mib = |bytes: u64| bytes >> 20;
        let (result, message) = if alarm {
            let message = format!(
                "The data of etcd use {} MiB of the quota of {} MiB, so that compaction and defragmentation do not make room. Delete \
                 objects, or raise the quota",
                mib(space.in_use),
                mib(space.quota)
            );
            (Self::NO_ROOM, message)
        } else {
            let message = format!(
                "Former values were compacted and etcd was defragmented to {} MiB of the quota of {} MiB, and alarm NOSPACE was disarmed",
                mib(space.used),
                mib(space.quota)
            );
            (Self::DISARMED, message)
        };
        Self {
            at: clock::now(),
            result,
            message,
        }
    }
}
