//! A database that a restore has made too large for the etcd that follows: a local etcd drops what was overwritten, and gives
//! the pages back.

use super::local::Local;
use super::tools::{Member, Tools};
use crate::error::Result;
use crate::etcd::Etcd;
use std::path::Path;
use std::time::Duration;

/// Part of the quota, in percent, from which on that is done. The rest is for what etcd writes next.
const FULL: u64 = 80;
/// Leases are renewed this often. It must be shorter than half of etcd's shortest lease of 2 s: one that expired here
/// would delete its keys and count a revision that never was.
const RENEW: Duration = Duration::from_millis(500);

/// Whether a database leaves too little room for what etcd writes next.
pub(super) fn is_full(size: u64, quota: u64) -> bool {
    size > quota / 100 * FULL
}

/// Leaves a database behind with which etcd can be written to. The local etcd runs on the directory that is to be, as the
/// member that is to be, so that nothing has to be copied afterwards; the revision stays.
pub(super) async fn settle(
    tools: &Tools,
    (data_dir, member): (&Path, &Member),
    revision: i64,
    quota: u64,
) -> Result<()> {
    let local = Local::start(tools, data_dir, member).await?;
    let leases = local.client.leases().await?;
    let work = async {
        local.client.compact(revision).await?;
        local.client.defragment().await?;
        local.client.size().await
    };
    let worked = tokio::select! {
        worked = work => worked,
        Err(e) = keep(&local.client, leases) => Err(e),
    };
    local.stop().await?;
    let size = worked?;
    if size > quota {
        tracing::warn!(
            size,
            quota,
            "the data alone fill etcd's quota; it will refuse writes"
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
