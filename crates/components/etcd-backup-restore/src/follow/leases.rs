//! Leases of the local etcd: the same numbers as at the source, and none ends before its end at the source.
//!
//! A lease that ended at the local etcd would delete keys in a revision that the source does not have. So
//! each lease is renewed until the follower ends. A lease has a TTL of 10 min at least, so that a follower
//! may stop for minutes. The deletions of a lease that ends at the source arrive as changes.

use super::progress::FollowProgress;
use crate::error::Result;
use crate::etcd::Etcd;
use futures::{StreamExt, TryStreamExt};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The shortest TTL that a lease gets, in seconds.
const LEAST_TTL: i64 = 600;
/// Between two renewals, at most and at least. A lease of a restored snapshot may have a short TTL.
const LONGEST_PERIOD: Duration = Duration::from_secs(60);
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);
/// Timeout of a renewal.
const RENEWAL: Duration = Duration::from_secs(10);
/// Leases in a renewal, and questions under way.
const CHUNK: usize = 500;
const QUESTIONS: usize = 16;
/// The text of etcd's error for a lease that exists.
const EXISTS: &str = "lease already exists";

/// The leases of the local etcd.
pub(super) struct Leases<'a> {
    etcd: &'a Etcd,
    progress: &'a FollowProgress,
    /// With the TTL in seconds.
    known: Mutex<HashMap<i64, i64>>,
}

impl<'a> Leases<'a> {
    /// Reads the leases of the local etcd.
    pub(super) async fn read(etcd: &'a Etcd, progress: &'a FollowProgress) -> Result<Self> {
        let ids = etcd.leases().await?;
        let with_ttl = futures::stream::iter(ids)
            .map(|id| async move { etcd.granted_ttl(id).await.map(|ttl| ttl.map(|ttl| (id, ttl))) })
            .buffer_unordered(QUESTIONS);
        let known: Vec<_> = with_ttl.try_collect().await?;
        let leases = Self {
            etcd,
            progress,
            known: Mutex::new(known.into_iter().flatten().collect()),
        };
        leases.report();
        Ok(leases)
    }

    /// The local etcd.
    pub(super) fn etcd(&self) -> &Etcd {
        self.etcd
    }

    fn lock_known(&self) -> MutexGuard<'_, HashMap<i64, i64>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) {
        let count = self.lock_known().len();
        self.progress.leases(count);
    }

    /// Makes sure that a lease exists before a key gets the lease. `recorded`: the TTL in seconds of a delta,
    /// or 0. The source is asked otherwise; a lease that has ended there has no TTL.
    pub(super) async fn ensure(&self, id: i64, recorded: i64, source: &Etcd) -> Result<()> {
        if id == 0 || self.lock_known().contains_key(&id) {
            return Ok(());
        }
        let ttl = match recorded {
            0 => source.granted_ttl(id).await?.unwrap_or_default(),
            recorded => recorded,
        };
        let ttl = ttl.max(LEAST_TTL);
        match self.etcd.grant(id, ttl).await {
            Err(e) if !e.message.contains(EXISTS) => return Err(e),
            _ => {}
        }
        self.lock_known().insert(id, ttl);
        self.report();
        Ok(())
    }

    /// Renews all leases again and again.
    pub(super) async fn keep(&self) -> Result<Infallible> {
        loop {
            self.renew().await?;
            let shortest = self.lock_known().values().copied().min();
            tokio::time::sleep(period(shortest)).await;
        }
    }

    /// Renews all leases once.
    pub(super) async fn renew(&self) -> Result<()> {
        let ids: Vec<_> = self.lock_known().keys().copied().collect();
        for chunk in ids.chunks(CHUNK) {
            let renewal = tokio::time::timeout(RENEWAL, self.etcd.keep_alive(chunk.to_vec()));
            if let Ok(renewed) = renewal.await {
                // A lease that is gone is granted again before its next use.
                let gone = renewed?;
                self.lock_known().retain(|id, _| !gone.contains(id));
            } else {
                tracing::warn!(leases = chunk.len(), "etcd does not renew leases in time");
            }
        }
        Ok(())
    }

    /// Grants the leases of the source that no key has had yet: a client may be about to use such a lease.
    pub(super) async fn grant_missing(&self, at_source: &HashSet<i64>, source: &Etcd) -> Result<()> {
        let missing: Vec<_> = {
            let known = self.lock_known();
            at_source
                .iter()
                .filter(|id| !known.contains_key(id))
                .copied()
                .collect()
        };
        for id in missing {
            // A lease that has ended since the question has no TTL.
            if let Some(ttl) = source.granted_ttl(id).await? {
                self.ensure(id, ttl, source).await?;
            }
        }
        Ok(())
    }

    /// Ends the leases that are not at the source and have no key. No change up to the revision at which the
    /// source was asked may be outstanding.
    pub(super) async fn revoke_ended(&self, at_source: &HashSet<i64>) -> Result<()> {
        let ended: Vec<_> = {
            let known = self.lock_known();
            known
                .keys()
                .filter(|id| !at_source.contains(id))
                .copied()
                .collect()
        };
        for id in ended {
            match self.etcd.is_empty_lease(id).await? {
                // A key is about to be deleted by a later change.
                Some(false) => continue,
                Some(true) => self.etcd.revoke(id).await?,
                None => {}
            }
            self.lock_known().remove(&id);
        }
        self.report();
        Ok(())
    }
}

/// The time between two renewals: a third of the shortest TTL, in seconds.
fn period(shortest: Option<i64>) -> Duration {
    let third = shortest.and_then(|ttl| u64::try_from(ttl / 3).ok());
    third.map_or(SHORTEST_PERIOD, |third| {
        Duration::from_secs(third).clamp(SHORTEST_PERIOD, LONGEST_PERIOD)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_renewed_three_times_within_its_ttl() {
        for (ttl, seconds) in [(None, 1), (Some(1), 1), (Some(15), 5), (Some(600), 60)] {
            assert_eq!(period(ttl), Duration::from_secs(seconds), "{ttl:?}");
        }
    }
}
