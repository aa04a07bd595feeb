//! The comparison of the whole history of the local etcd with the source, by etcd's own hash.
//!
//! The digest of the follower covers only the changes since the follower began. The hash covers the history
//! before: when the follower begins, and after a connection to a source whose newest revision is compacted.

use super::progress::FollowProgress;
use super::source::{connect, is_final};
use crate::error::{Class, Error, Result};
use crate::etcd::{Etcd, EtcdConfig};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::sleep;

/// Pause while the histories cannot be compared.
const PAUSE: Duration = Duration::from_secs(2);

pub(super) struct HistoryCheck<'a> {
    pub(super) source: &'a EtcdConfig,
    pub(super) local: &'a Etcd,
    pub(super) progress: &'a FollowProgress,
}

impl HistoryCheck<'_> {
    /// Compares whenever a comparison is requested. Ends with an error where the histories differ.
    pub(super) async fn run(&self) -> Result<Infallible> {
        loop {
            let number = self.progress.requested_check().await;
            match self.compare().await {
                Ok(None) => {
                    self.progress.pass_check(number);
                    continue;
                }
                Ok(Some(obstacle)) => tracing::info!(obstacle, "the histories cannot be compared yet"),
                Err(error) if is_final(error.class) => return Err(error),
                Err(error) => {
                    tracing::warn!(class = error.class.as_str(), %error, "cannot compare the histories");
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns why the histories cannot be compared; `None` where the histories are equal.
    async fn compare(&self) -> Result<Option<&'static str>> {
        let source = connect(self.source, self.progress).await?;
        let revision = self.progress.revision();
        // A hash blocks the writes of an etcd for a moment. So the compactions are compared before.
        let oldest = source.oldest_revision(1).await?;
        if oldest > revision {
            return Ok(Some("the source has compacted the revision of the local etcd"));
        }
        let compacted = self.local.oldest_revision(1).await?;
        if compacted > oldest {
            return Ok(Some("the local etcd has compacted more than the source"));
        }
        if compacted < oldest {
            self.local.compact(oldest).await?;
        }
        let there = source.history_hash(revision).await?;
        let here = self.local.history_hash(revision).await?;
        let (Some(here), Some(there)) = (here, there) else {
            return Ok(Some(
                "the source has not reached the revision, or has compacted the revision",
            ));
        };
        if here.compacted != there.compacted {
            return Ok(Some("the source was compacted in between"));
        }
        if here.hash != there.hash {
            let sentence = format!(
                "the history of the local etcd up to revision {revision} is not that of the source (etcd's hash is {:08x} \
                 and not {:08x}); remove the data directory and prepare the etcd again",
                here.hash, there.hash
            );
            return Err(Error::new(Class::Diverged, sentence));
        }
        Ok(None)
    }
}
