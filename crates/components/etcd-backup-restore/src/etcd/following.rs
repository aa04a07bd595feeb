//! Calls that only the follower needs: leases that end, the revision of a compaction, and the hash of a
//! history.

use super::{ALL, Etcd, messages as m};
use crate::error::Result;
use std::time::Duration;

/// Least timeout of a hash over the history. etcd completes a hash that the client does not wait for.
const HASH_TIMEOUT: Duration = Duration::from_secs(120);

/// The text of etcd's error for a revision below the compaction.
const COMPACTED: &str = "required revision has been compacted";
/// The text of etcd's error for a revision that etcd has not reached.
const FUTURE: &str = "required revision is a future revision";

/// etcd's own hash over its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryHash {
    /// The hash covers each change after the compaction, and the changes that the compaction kept.
    pub hash: u32,
    /// The revision of the compaction; 1 without a compaction. Only hashes of one compaction are comparable.
    pub compacted: i64,
}

impl Etcd {
    /// The id of the etcd cluster.
    pub async fn cluster_id(&self) -> Result<u64> {
        Ok(self.header().await?.cluster_id)
    }

    /// etcd's revision after each transaction that was proposed before. A read would not wait for a
    /// transaction that is in etcd's log and not applied.
    pub async fn barrier(&self) -> Result<i64> {
        let never = m::Compare {
            result: m::CompareResult::Less.into(),
            target: m::CompareTarget::Version.into(),
            key: ALL.into(),
            version: Some(0),
            create_revision: None,
            mod_revision: None,
        };
        // etcd takes a transaction with a write through its log. An etcd without space accepts a deletion.
        let deletion = m::DeleteRangeRequest {
            key: ALL.into(),
            ..m::DeleteRangeRequest::default()
        };
        let deletion = m::RequestOp {
            operation: Some(m::Change::Delete(deletion)),
        };
        self.txn_request(m::TxnRequest {
            compare: vec![never],
            success: vec![deletion],
            failure: Vec::new(),
        })
        .await
    }

    /// etcd's hash over its history up to a revision. `None` where etcd does not have the revision any more,
    /// or not yet.
    pub async fn history_hash(&self, revision: i64) -> Result<Option<HistoryHash>> {
        let patient = Self {
            timeout: self.timeout.max(HASH_TIMEOUT),
            ..self.clone()
        };
        let answer = patient
            .call::<_, m::HashKvResponse>(
                "/etcdserverpb.Maintenance/HashKV",
                "hashing its history",
                m::HashKvRequest { revision },
            )
            .await;
        match answer {
            Err(e) if e.message.contains(COMPACTED) || e.message.contains(FUTURE) => Ok(None),
            answer => answer.map(|answer| {
                Some(HistoryHash {
                    hash: answer.hash,
                    compacted: answer.compact_revision.max(1),
                })
            }),
        }
    }

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
