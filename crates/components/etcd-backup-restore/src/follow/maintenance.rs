//! Work beside the stream of changes: the compaction of the local etcd after the source's compaction, and the
//! end of leases that have ended at the source.

use super::leases::Leases;
use super::progress::FollowProgress;
use crate::error::Result;
use crate::etcd::{Etcd, EtcdConfig};
use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Timeout of the last check of leases, in which clients may be waiting.
const LAST_LEASES: Duration = Duration::from_millis(500);

pub(super) struct Maintenance<'a> {
    pub(super) source: &'a EtcdConfig,
    pub(super) local: &'a Etcd,
    pub(super) leases: &'a Leases<'a>,
    pub(super) progress: &'a FollowProgress,
    pub(super) period: Duration,
}

impl Maintenance<'_> {
    /// Works in each period. A failure is logged, since the next period tries again.
    pub(super) async fn run(&self) -> Infallible {
        let mut compacted = 1;
        loop {
            sleep(self.period).await;
            if let Err(error) = self.once(&mut compacted).await {
                tracing::warn!(class = error.class.as_str(), %error, "compaction and leases were not followed");
            }
        }
    }

    /// `compacted`: a revision below which the local etcd has no history.
    async fn once(&self, compacted: &mut i64) -> Result<()> {
        let source = self.source.connect().await?;
        self.compact(&source, compacted).await?;
        self.follow_leases(&source).await
    }

    /// Follows the leases before the follower ends, and renews all leases: from here on the local etcd counts
    /// each TTL, as after a change of its leader. A failure is logged, since the data are complete.
    pub(super) async fn end(&self) {
        let leases = async {
            let source = self.source.connect().await?;
            let (at_source, revision) = self.ask(&source).await?;
            if *self.progress.proved().borrow() >= revision {
                self.leases.revoke_ended(&at_source).await?;
            }
            self.leases.renew().await
        };
        match timeout(LAST_LEASES, leases).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(class = error.class.as_str(), %error, "leases were not followed last");
            }
            Err(_) => tracing::warn!("leases were not followed last within {LAST_LEASES:?}"),
        }
    }

    async fn follow_leases(&self, source: &Etcd) -> Result<()> {
        let (at_source, revision) = self.ask(source).await?;
        let mut proved = self.progress.proved();
        if proved.wait_for(|proved| *proved >= revision).await.is_ok() {
            self.leases.revoke_ended(&at_source).await?;
        }
        Ok(())
    }

    /// Grants the leases that are missing. Returns the leases of the source, and a revision of the source: a
    /// lease that is not returned got no key after this revision.
    async fn ask(&self, source: &Etcd) -> Result<(HashSet<i64>, i64)> {
        let at_source: HashSet<_> = source.leases().await?.into_iter().collect();
        self.leases.grant_missing(&at_source, source).await?;
        Ok((at_source, source.revision().await?))
    }

    /// Compacts the local etcd at the revision at which the source was compacted, once the local etcd has
    /// this revision.
    async fn compact(&self, source: &Etcd, compacted: &mut i64) -> Result<()> {
        *compacted = self.local.oldest_revision(*compacted).await?;
        let oldest = source.oldest_revision(*compacted).await?;
        if oldest > *compacted {
            let mut proved = self.progress.proved();
            if proved.wait_for(|proved| *proved >= oldest).await.is_err() {
                return Ok(());
            }
            self.local.compact(oldest).await?;
            tracing::info!(revision = oldest, "compacted like the source");
            *compacted = oldest;
        }
        self.progress.compacted(*compacted);
        Ok(())
    }
}
