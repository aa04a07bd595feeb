//! A database that is too large for the etcd that follows: a local etcd drops overwritten values, and gives
//! the pages back.
//!
//! Alarm NOSPACE is stored in the database, so that a full snapshot carries the alarm. The local etcd disarms
//! the alarm where the database leaves room below the quota of the etcd that follows.

use super::local::Local;
use super::tools::{Fsync, Member, Tools};
use crate::error::Result;
use crate::etcd::{Etcd, Space};
use std::path::Path;
use std::time::Duration;

/// Part of the quota, in percent, from which on a database is defragmented. The rest is for etcd's next
/// writes.
const FULL: u64 = 80;
/// Interval at which leases are renewed. Must be shorter than half of etcd's shortest lease of 2 s. A lease
/// that expired in the local etcd would delete its keys and add a revision that never existed.
const RENEW: Duration = Duration::from_millis(500);

/// Whether a database leaves too little space for etcd's next writes.
fn is_full(size: u64, quota: u64) -> bool {
    size > quota / 100 * FULL
}

/// The work that a database needs from a local etcd.
#[derive(Clone, Copy)]
pub(super) struct Unsettled {
    /// Whether the database leaves too little room for the writes that follow.
    pub(super) is_full: bool,
    /// Whether alarm NOSPACE is raised in the database: the etcd that follows would refuse writes at any
    /// size.
    pub(super) alarm: bool,
}

impl Unsettled {
    /// `None` if the database needs no local etcd.
    pub(super) fn find(size: u64, alarm: bool, quota: u64) -> Option<Self> {
        let is_full = is_full(size, quota);
        (is_full || alarm).then_some(Self { is_full, alarm })
    }
}

/// Makes sure that etcd can write to the database. The local etcd runs on the final directory, as the final
/// member, so that no copy follows; the revision stays.
pub(super) async fn settle(
    tools: &Tools,
    (data_dir, member, fsync): (&Path, &Member, Fsync),
    revision: i64,
    (unsettled, quota): (Unsettled, u64),
) -> Result<()> {
    let local = Local::start(tools, data_dir, member, fsync).await?;
    let leases = local.client.leases().await?;
    let work = async {
        if unsettled.is_full {
            local.client.compact(revision).await?;
            local.client.defragment().await?;
        }
        // The local etcd has a different quota.
        let space = Space {
            quota,
            ..local.client.space().await?
        };
        if unsettled.alarm && space.has_room() {
            local.client.disarm_no_space().await?;
            tracing::info!(
                size = space.used,
                quota,
                "disarmed alarm NOSPACE of the former seed: there is room"
            );
        }
        Ok(space)
    };
    let worked = tokio::select! {
        worked = work => worked,
        Err(e) = keep(&local.client, leases) => Err(e),
    };
    local.stop().await?;
    let space = worked?;
    if !space.has_room() {
        tracing::warn!(
            size = space.used,
            quota,
            "the data alone fill etcd's quota; etcd will refuse writes until the quota is raised or keys are deleted"
        );
    }
    Ok(())
}

/// Renews leases without end.
async fn keep(client: &Etcd, leases: Vec<i64>) -> Result<()> {
    let mut ticks = tokio::time::interval(RENEW);
    loop {
        ticks.tick().await;
        if !leases.is_empty() {
            client.keep_alive(leases.clone()).await?;
        }
    }
}
