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
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;

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

/// The leases that the local etcd has.
#[derive(Default)]
struct KnownLeases {
    /// With the TTL in seconds.
    ttls: HashMap<i64, i64>,
    /// Leases that no change has used since the present check began.
    unused: HashSet<i64>,
}

impl KnownLeases {
    /// A check of leases begins, before the source is asked for its leases.
    fn begin_check(&mut self) {
        self.unused = self.ttls.keys().copied().collect();
    }

    /// Whether the local etcd has the lease. The present check does not end the lease then.
    fn record_use(&mut self, id: i64) -> bool {
        self.unused.remove(&id);
        self.ttls.contains_key(&id)
    }

    /// Leases that have ended at the source.
    fn ended(&self, at_source: &HashSet<i64>) -> Vec<i64> {
        self.unused.difference(at_source).copied().collect()
    }

    /// Takes a lease out for its revocation, with its TTL. `None` where a change has used the lease.
    fn take_unused(&mut self, id: i64) -> Option<i64> {
        self.unused.remove(&id).then(|| self.ttls.remove(&id)).flatten()
    }
}

/// The leases of the local etcd.
pub(super) struct Leases<'a> {
    etcd: &'a Etcd,
    progress: &'a FollowProgress,
    known: Mutex<KnownLeases>,
    /// Grants share the lock. A revocation holds the lock alone, so that no grant overtakes the revocation.
    changing: RwLock<()>,
}

impl<'a> Leases<'a> {
    /// Reads the leases of the local etcd.
    pub(super) async fn read(etcd: &'a Etcd, progress: &'a FollowProgress) -> Result<Self> {
        let ids = etcd.leases().await?;
        let with_ttl = futures::stream::iter(ids)
            .map(|id| async move { etcd.granted_ttl(id).await.map(|ttl| ttl.map(|ttl| (id, ttl))) })
            .buffer_unordered(QUESTIONS);
        let ttls: Vec<_> = with_ttl.try_collect().await?;
        let leases = Self {
            etcd,
            progress,
            known: Mutex::new(KnownLeases {
                ttls: ttls.into_iter().flatten().collect(),
                unused: HashSet::new(),
            }),
            changing: RwLock::new(()),
        };
        leases.report();
        Ok(leases)
    }

    /// The local etcd.
    pub(super) fn etcd(&self) -> &'a Etcd {
        self.etcd
    }

    fn lock_known(&self) -> MutexGuard<'_, KnownLeases> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) {
        let count = self.lock_known().ttls.len();
        self.progress.leases(count);
    }

    /// Makes sure that a lease exists before a key gets the lease. `recorded`: the TTL in seconds of a delta,
    /// or 0. The source is asked otherwise; a lease that has ended there has no TTL.
    pub(super) async fn ensure(&self, id: i64, recorded: i64, source: &Etcd) -> Result<()> {
        if id == 0 || self.lock_known().record_use(id) {
            return Ok(());
        }
        let ttl = match recorded {
            0 => source.granted_ttl(id).await?.unwrap_or_default(),
            recorded => recorded,
        };
        let ttl = ttl.max(LEAST_TTL);
        let changing = self.changing.read().await;
        match self.etcd.grant(id, ttl).await {
            Err(e) if !e.message.contains(EXISTS) => return Err(e),
            _ => {}
        }
        self.lock_known().ttls.insert(id, ttl);
        drop(changing);
        self.report();
        Ok(())
    }

    /// Renews all leases again and again.
    pub(super) async fn keep(&self) -> Result<Infallible> {
        loop {
            self.renew().await?;
            let shortest = self.lock_known().ttls.values().copied().min();
            tokio::time::sleep(period(shortest)).await;
        }
    }

    /// Renews all leases once. Returns whether each lease was renewed.
    pub(super) async fn renew(&self) -> Result<bool> {
        let ids: Vec<_> = self.lock_known().ttls.keys().copied().collect();
        let mut is_complete = true;
        for chunk in ids.chunks(CHUNK) {
            let renewal = tokio::time::timeout(RENEWAL, self.etcd.keep_alive(chunk.to_vec()));
            if let Ok(renewed) = renewal.await {
                // A lease that is gone is granted again before its next use.
                let gone = renewed?;
                self.lock_known().ttls.retain(|id, _| !gone.contains(id));
                is_complete &= gone.is_empty();
            } else {
                tracing::warn!(leases = chunk.len(), "etcd does not renew leases in time");
                is_complete = false;
            }
        }
        Ok(is_complete)
    }

    /// A check of leases begins. The caller asks the source for its leases afterwards: a lease that a client
    /// grants after the answer must not be taken for ended.
    pub(super) fn begin_check(&self) {
        self.lock_known().begin_check();
    }

    /// Grants the leases of the source that no key has had yet: a client may be about to use such a lease.
    pub(super) async fn grant_missing(&self, at_source: &HashSet<i64>, source: &Etcd) -> Result<()> {
        let missing: Vec<_> = {
            let known = self.lock_known();
            at_source
                .iter()
                .filter(|id| !known.ttls.contains_key(id))
                .copied()
                .collect()
        };
        let grants = futures::stream::iter(missing).map(|id| async move {
            // A lease that has ended since the question has no TTL.
            match source.granted_ttl(id).await? {
                Some(ttl) => self.ensure(id, ttl, source).await,
                None => Ok(()),
            }
        });
        grants.buffer_unordered(QUESTIONS).try_collect().await
    }

    /// Ends the leases that were not at the source, that no change has used since the check began, and that
    /// have no key. No change up to the revision at which the source was asked may be outstanding.
    ///
    /// Must not be dropped: a revocation under way would change the local etcd later.
    pub(super) async fn revoke_ended(
        &self,
        at_source: &HashSet<i64>,
        stop: &CancellationToken,
    ) -> Result<()> {
        let ended = self.lock_known().ended(at_source);
        for id in ended {
            if stop.is_cancelled() {
                break;
            }
            let changing = self.changing.write().await;
            let taken = self.lock_known().take_unused(id);
            let Some(ttl) = taken else { continue };
            let is_empty = self.etcd.is_empty_lease(id).await;
            if !matches!(is_empty, Ok(Some(true) | None)) {
                // A key is about to be deleted by a later change, or etcd did not answer.
                self.lock_known().ttls.insert(id, ttl);
            }
            if is_empty? == Some(true) {
                self.etcd.revoke(id).await?;
            }
            drop(changing);
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

    /// Leases 1 and 2, after the source was asked and before its changes up to the answer are proved.
    fn checked() -> (KnownLeases, HashSet<i64>) {
        let mut known = KnownLeases {
            ttls: HashMap::from([(1, 600), (2, 600)]),
            ..KnownLeases::default()
        };
        known.begin_check();
        (known, HashSet::from([2]))
    }

    #[test]
    fn a_lease_that_a_client_grants_during_a_check_does_not_end() {
        let (mut known, at_source) = checked();
        // A client grants lease 3 after the answer, and a change uses the lease.
        assert!(!known.record_use(3));
        known.ttls.insert(3, 600);
        assert_eq!(known.ended(&at_source), [1]);
        // The next check may end lease 3.
        known.begin_check();
        let mut ended = known.ended(&at_source);
        ended.sort_unstable();
        assert_eq!(ended, [1, 3]);
    }

    #[test]
    fn a_lease_that_a_change_uses_during_a_check_does_not_end() {
        let (mut known, at_source) = checked();
        assert!(known.record_use(1));
        assert!(known.ended(&at_source).is_empty());
        // The change comes after the list of ended leases was made.
        let (mut known, at_source) = checked();
        assert_eq!(known.ended(&at_source), [1]);
        assert!(known.record_use(1));
        assert_eq!(known.take_unused(1), None);
        assert!(known.record_use(1));
        // A lease that is being revoked must be granted again before its next use.
        let (mut known, _) = checked();
        assert_eq!(known.take_unused(1), Some(600));
        assert!(!known.record_use(1));
    }

    #[test]
    fn a_lease_is_renewed_three_times_within_its_ttl() {
        for (ttl, seconds) in [(None, 1), (Some(1), 1), (Some(15), 5), (Some(600), 60)] {
            assert_eq!(period(ttl), Duration::from_secs(seconds), "{ttl:?}");
        }
    }
}
