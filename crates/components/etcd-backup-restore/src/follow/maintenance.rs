//! Work beside the stream of changes: the compaction of the local etcd after the source's compaction, and the
//! end of leases that have ended at the source.

use super::leases::Leases;
use super::progress::FollowProgress;
use super::source::connect;
use crate::error::Result;
use crate::etcd::{Etcd, EtcdConfig};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Timeout of the last check of leases, in which clients may be waiting.
const LAST_LEASES: Duration = Duration::from_secs(2);

pub(super) struct Maintenance<'a> {
    source: &'a EtcdConfig,
    local: &'a Etcd,
    leases: &'a Leases<'a>,
    progress: &'a FollowProgress,
    period: Duration,
    /// The connection to the source, unless the last call failed.
    connection: Mutex<Option<Etcd>>,
}

impl<'a> Maintenance<'a> {
    pub(super) fn new(
        source: &'a EtcdConfig,
        leases: &'a Leases<'a>,
        progress: &'a FollowProgress,
        period: Duration,
    ) -> Self {
        Self {
            source,
            local: leases.etcd(),
            leases,
            progress,
            period,
            connection: Mutex::new(None),
        }
    }

    /// Works until `stop`. Must not be dropped before: a revocation under way would change the local etcd
    /// after its last comparison.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        tokio::join!(self.follow_compactions(stop), self.follow_leases(stop));
    }

    /// Compacts at once and in each period: a session with a full local etcd may be short.
    async fn follow_compactions(&self, stop: &CancellationToken) {
        let mut compacted = 1;
        loop {
            tokio::select! {
                result = self.compact(&mut compacted) => self.log(result),
                () = stop.cancelled() => return,
            }
            if timeout(self.period, stop.cancelled()).await.is_ok() {
                return;
            }
        }
    }

    async fn follow_leases(&self, stop: &CancellationToken) {
        while timeout(self.period, stop.cancelled()).await.is_err() {
            self.log(self.check_leases(stop).await);
        }
    }

    /// Logs a failure, since the next period tries again.
    fn log(&self, result: Result<()>) {
        if let Err(error) = result {
            *self.lock_connection() = None;
            tracing::warn!(class = error.class.as_str(), %error, "compaction or leases were not followed");
        }
    }

    fn lock_connection(&self) -> MutexGuard<'_, Option<Etcd>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn source(&self) -> Result<Etcd> {
        let open = self.lock_connection().clone();
        if let Some(open) = open {
            return Ok(open);
        }
        let source = connect(self.source, self.progress).await?;
        *self.lock_connection() = Some(source.clone());
        Ok(source)
    }

    /// Grants missing leases and renews all leases before the follower ends: from here on the local etcd
    /// counts each TTL. Returns whether the local etcd has each lease of the
    /// source. A lease that has ended at the source has no key, and is left to its TTL.
    pub(super) async fn end(&self) -> bool {
        let leases = async {
            let source = self.source().await?;
            self.grant_missing(&source).await?;
            self.leases.renew().await
        };
        match timeout(LAST_LEASES, leases).await {
            Ok(Ok(is_complete)) => return is_complete,
            Ok(Err(error)) => {
                tracing::warn!(class = error.class.as_str(), %error, "leases were not followed last");
            }
            Err(_) => tracing::warn!("leases were not followed last within {LAST_LEASES:?}"),
        }
        false
    }

    async fn grant_missing(&self, source: &Etcd) -> Result<HashSet<i64>> {
        let at_source: HashSet<_> = source.leases().await?.into_iter().collect();
        self.leases.grant_missing(&at_source, source).await?;
        Ok(at_source)
    }

    async fn check_leases(&self, stop: &CancellationToken) -> Result<()> {
        let at_source = tokio::select! {
            at_source = self.leases_of_source() => at_source?,
            () = stop.cancelled() => return Ok(()),
        };
        self.leases.revoke_ended(&at_source, stop).await
    }

    /// Grants the leases that are missing. Returns the leases of the source, once the changes up to the
    /// question are proved: a lease that is not returned got no key before its grant after the question.
    async fn leases_of_source(&self) -> Result<HashSet<i64>> {
        let source = self.source().await?;
        self.leases.begin_check();
        let at_source = self.grant_missing(&source).await?;
        let revision = source.revision().await?;
        self.progress.wait_for_proof(revision).await;
        Ok(at_source)
    }

    /// Compacts the local etcd towards the revision at which the source was compacted, as far as the local
    /// etcd is proved. A long catch-up must not keep its whole history.
    async fn compact(&self, compacted: &mut i64) -> Result<()> {
        let source = self.source().await?;
        *compacted = self.local.oldest_revision(*compacted).await?;
        let oldest = source.oldest_revision(*compacted).await?;
        let revision = self.progress.revision().min(oldest);
        if revision > *compacted {
            self.local.compact(revision).await?;
            tracing::info!(revision, source = oldest, "compacted like the source");
            *compacted = revision;
        }
        self.progress.compacted(*compacted);
        Ok(())
    }
}
