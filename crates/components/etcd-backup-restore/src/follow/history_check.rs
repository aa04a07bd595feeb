//! The comparison of the whole history of the local etcd with the source, by etcd's own hash.
//!
//! The digest of the follower covers only the changes since the follower began. The hash covers the history
//! before: when the follower begins, and after a connection to a source whose newest revision is compacted.

use super::progress::FollowProgress;
use super::source::{connect, is_final};
use crate::error::{Class, Error, Result};
use crate::etcd::{Etcd, EtcdConfig};
use crate::owner::PreparedRefusal;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Shortest pause while the histories cannot be compared.
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);
/// The pause after a hash, as a multiple of the time that etcd took for the hash. etcd answers no write in
/// that time.
const PAUSE_PER_HASH: u32 = 20;

/// The obstacle where the gate of the source refuses a hash with the certificate of a preparation.
const HASH_REFUSED: &str = "the gate of the source passes one hash a minute";

pub(super) struct HistoryCheck<'a> {
    pub(super) source: &'a EtcdConfig,
    pub(super) local: &'a Etcd,
    pub(super) progress: &'a FollowProgress,
    /// The largest database of the source that is hashed, in bytes.
    pub(super) max_hashed: u64,
}

impl HistoryCheck<'_> {
    /// Compares whenever a comparison is requested. Ends with an error where the histories differ.
    pub(super) async fn run(&self) -> Result<Infallible> {
        let mut reported = None;
        loop {
            let number = self.progress.requested_check().await;
            let (mut hashing, mut refused) = (Duration::ZERO, Duration::ZERO);
            match self.compare(&mut hashing).await {
                Ok(None) => {
                    self.progress.pass_check(number);
                    continue;
                }
                // A catch-up may take hours.
                Ok(Some(obstacle)) => {
                    refused = refusal_pause(obstacle);
                    if reported.replace(obstacle) != Some(obstacle) {
                        tracing::info!(obstacle, "the histories cannot be compared yet");
                    }
                }
                Err(error) if is_final(error.class) => return Err(error),
                Err(error) => {
                    tracing::warn!(class = error.class.as_str(), %error, "cannot compare the histories");
                }
            }
            sleep(pause(hashing).max(refused)).await;
        }
    }

    /// Returns why the histories cannot be compared; `None` where the histories are equal. `hashing`: the
    /// time that etcd took for the hash.
    async fn compare(&self, hashing: &mut Duration) -> Result<Option<&'static str>> {
        let source = connect(self.source, self.progress).await?;
        // A hash blocks the writes of an etcd. So the size and the compactions are compared before.
        check_size(source.space().await?.in_use, self.max_hashed)?;
        let revision = self.progress.revision();
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
        // The source is hashed only after the local etcd has answered.
        let begun = Instant::now();
        let here = self.local.history_hash(revision).await?;
        let there = source.history_hash(revision).await;
        *hashing = begun.elapsed();
        if there.as_ref().is_err_and(is_refused_by_gate) {
            return Ok(Some(HASH_REFUSED));
        }
        let (Some(here), Some(there)) = (here, there?) else {
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

fn pause(hashing: Duration) -> Duration {
    SHORTEST_PAUSE.max(hashing * PAUSE_PER_HASH)
}

/// Whether the gate of the source has refused the hash.
fn is_refused_by_gate(error: &Error) -> bool {
    error.message.contains(PreparedRefusal::HASH_MESSAGE)
}

/// The pause after an obstacle. Before the gate passes a further hash, each hash of the local etcd is in
/// vain.
fn refusal_pause(obstacle: &str) -> Duration {
    if obstacle == HASH_REFUSED {
        PreparedRefusal::HASH_INTERVAL
    } else {
        Duration::ZERO
    }
}

fn check_size(bytes: u64, max_hashed: u64) -> Result<()> {
    if bytes <= max_hashed {
        return Ok(());
    }
    let sentence = format!(
        "the database of the source has {bytes} bytes, and etcd would answer no write while etcd hashes more than \
         {max_hashed} bytes; raise --max-hashed-bytes if the clients of the source may wait for seconds, or compact and \
         delete data of the source"
    );
    Err(Error::new(Class::Configuration, sentence))
}

#[cfg(test)]
#[path = "history_check_tests.rs"]
mod tests;
