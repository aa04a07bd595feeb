//! The report of an attempt to make room in an etcd that refuses writes.

use crate::clock;
use crate::etcd::Space;
use sidecar_protocol::{ReliefResult, ReportedRelief};
use std::time::Duration;

/// An attempt to make room that ended without an error.
pub(super) struct ReliefAttempt {
    pub(super) report: ReportedRelief,
    /// How long the defragmentation blocked the reads of etcd; zero without a defragmentation.
    pub(super) blocked: Duration,
}

/// The report of an attempt that ended now. `alarm`: whether alarm NOSPACE is still raised.
pub(super) fn report(space: Space, alarm: bool) -> ReportedRelief {
    let mib = |bytes: u64| bytes >> 20;
    let (result, message) = if alarm {
        let message = format!(
            "The data of etcd use {} MiB of the quota of {} MiB, so that compaction and defragmentation do not make room. Delete \
             objects, or raise the quota",
            mib(space.in_use),
            mib(space.quota)
        );
        (ReliefResult::NoRoom, message)
    } else {
        let message = format!(
            "Former values were compacted and etcd was defragmented to {} MiB of the quota of {} MiB, and alarm NOSPACE was disarmed",
            mib(space.used),
            mib(space.quota)
        );
        (ReliefResult::Disarmed, message)
    };
    ReportedRelief {
        at: Some(clock::now()),
        result,
        message,
    }
}
