//! Calls that only the follower needs: leases that end, and the revision of a compaction.

use super::{ALL, Etcd, Watch, messages as m, unavailable};
use crate::error::{Class, Error, Result};

/// The text of etcd's error for a revision below the compaction.
const COMPACTED: &str = "required revision has been compacted";

/// Checks a response of a watch: `Compacted` where etcd does not have the history any more.
pub(crate) fn check_watch(response: Option<m::WatchResponse>) -> Result<m::WatchResponse> {
    let Some(response) = response else {
        return Err(Error::new(Class::Etcd, "etcd closed the watch"));
    };
    if response.compact_revision > 0 {
        let what = format!("etcd has compacted up to revision {}", response.compact_revision);
        return Err(Error::new(Class::Compacted, what));
    }
    if response.canceled {
        return Err(Error::new(
            Class::Etcd,
            format!("etcd ended the watch: {}", response.cancel_reason),
        ));
    }
    Ok(response)
}

/// Waits for the next response of a watch. May be dropped: no response is lost.
pub(crate) async fn watch_response(watch: &mut Watch) -> Result<m::WatchResponse> {
    let response = watch.message().await;
    check_watch(response.map_err(|status| unavailable("watching", &status))?)
}

impl Etcd {
    /// Whether a lease has no key; `None` when the lease is gone.
    pub async fn is_empty_lease(&self, id: i64) -> Result<Option<bool>> {
        let answer: m::LeaseTimeToLiveResponse = self
            .call(
                "/etcdserverpb.Lease/LeaseTimeToLive",
                "listing the keys of a lease",
                m::LeaseTimeToLiveRequest { id, keys: true },
            )
            .await?;
        Ok((answer.ttl >= 0).then_some(answer.keys.is_empty()))
    }

    /// Ends a lease, and deletes the keys of the lease.
    pub async fn revoke(&self, id: i64) -> Result<()> {
        self.call::<_, m::Done>(
            "/etcdserverpb.Lease/LeaseRevoke",
            "revoking a lease",
            m::LeaseId { id },
        )
        .await
        .map(drop)
    }

    /// Whether a compaction removed the history at a revision.
    async fn is_compacted(&self, revision: i64) -> Result<bool> {
        let request = m::RangeRequest {
            key: ALL.into(),
            limit: 1,
            revision,
            ..m::RangeRequest::default()
        };
        let answer = self
            .call::<_, m::Done>("/etcdserverpb.KV/Range", "asking for the compaction", request)
            .await;
        match answer {
            Err(e) if e.message.contains(COMPACTED) => Ok(true),
            answer => answer.map(|_| false),
        }
    }

    /// The oldest revision of which etcd still has the history, at least `known`. etcd reports this revision
    /// only beside a hash over the whole database, so a binary search with reads of a single key finds the
    /// revision. Where no compaction happened since `known`, the search is one read.
    pub async fn oldest_revision(&self, known: i64) -> Result<i64> {
        let mut low = known.max(1);
        if !self.is_compacted(low).await? {
            return Ok(low);
        }
        let mut high = self.revision().await?;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.is_compacted(middle).await? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(high)
    }
}
