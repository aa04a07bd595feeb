//! The state of a follower, which the tasks of the follower write and `GET /follow` and the metrics read.

use super::digest::HistoryDigest;
use crate::error::{Class, Error, Result};
use crate::revisions::Change;
use mutation::Mutation;
use sidecar_protocol::{FollowPhase, FollowStatus};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Revisions that were read from the source and are not proved at the local etcd.
const UNPROVED: usize = 10_000;

/// A revision of the source that the local etcd must show.
struct Expected {
    number: i64,
    digest: HistoryDigest,
    received: Instant,
}

#[derive(Default)]
struct Facts {
    status: FollowStatus,
    expected: VecDeque<Expected>,
    /// Of the local etcd's history.
    digest: HistoryDigest,
    /// The last revision that was read from the source.
    received: i64,
    /// Since when the source is known to be at a revision that was not received.
    behind_since: Option<Instant>,
    /// Since when the follower reads deltas.
    catching_up_since: Option<Instant>,
}

/// The progress. A clone is a view of the same progress.
#[derive(Clone)]
pub struct FollowProgress {
    facts: Arc<Mutex<Facts>>,
    proved: Arc<watch::Sender<i64>>,
}

impl Default for FollowProgress {
    fn default() -> Self {
        Self {
            facts: Arc::default(),
            proved: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl FollowProgress {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session begins at a revision of the local etcd. The digests begin anew.
    pub(super) fn begin(&self, from: i64) {
        let mut facts = self.facts();
        facts.expected.clear();
        facts.digest = HistoryDigest::default();
        facts.received = from;
        facts.behind_since = None;
        facts.status.from_revision = from;
        facts.status.revision = from;
        facts.status.digest = None;
        drop(facts);
        self.proved.send_replace(from);
    }

    /// The follower reads deltas, or the watch of the source.
    pub(super) fn phase(&self, phase: FollowPhase) {
        let mut facts = self.facts();
        facts.status.phase = phase;
        facts.catching_up_since = match phase {
            FollowPhase::CatchingUp => facts.catching_up_since.or_else(|| Some(Instant::now())),
            FollowPhase::Following => None,
            _ => facts.catching_up_since,
        };
        if phase == FollowPhase::Following {
            facts.status.error = None;
        }
    }

    /// The follower cannot go on for the moment.
    pub(super) fn interrupted(&self, error: &Error) {
        let mut facts = self.facts();
        facts.status.phase = FollowPhase::Interrupted;
        facts.status.error = Some(error.to_string());
        facts.catching_up_since.get_or_insert_with(Instant::now);
    }

    /// The source is at this revision at least.
    pub(super) fn source_at(&self, revision: i64) {
        let mut facts = self.facts();
        facts.status.source_revision = facts.status.source_revision.max(revision);
        if revision > facts.received {
            facts.behind_since.get_or_insert_with(Instant::now);
        }
    }

    /// A revision was read from the source.
    pub(super) fn expect(&self, number: i64, digest: HistoryDigest) {
        let received = Instant::now();
        let mut facts = self.facts();
        facts.received = number;
        if number >= facts.status.source_revision {
            facts.status.source_revision = number;
            facts.behind_since = None;
        }
        facts.expected.push_back(Expected {
            number,
            digest,
            received,
        });
    }

    /// Whether further revisions may be read from the source.
    pub(super) fn has_room(&self) -> bool {
        self.facts().expected.len() < UNPROVED
    }

    /// The local etcd shows a revision. An error where the source's history differs.
    pub(super) fn prove(&self, number: i64, changes: &[Change]) -> Result<()> {
        let mut facts = self.facts();
        facts.digest.add(number, changes);
        let expected = facts.expected.pop_front();
        let is_equal =
            expected.is_some_and(|expected| (expected.number, expected.digest) == (number, facts.digest));
        if !is_equal && !Mutation::DigestsNotCompared.is_active() {
            return Err(differs(number, changes));
        }
        facts.status.revision = number;
        facts.status.digest = Some(facts.digest.hex());
        drop(facts);
        self.proved.send_replace(number);
        Ok(())
    }

    /// The local etcd was compacted.
    pub(super) fn compacted(&self, revision: i64) {
        self.facts().status.compacted_revision = revision;
    }

    /// The number of leases of the local etcd.
    pub(super) fn leases(&self, count: usize) {
        self.facts().status.leases = count as u64;
    }

    /// The last proved revision, and its changes.
    pub(super) fn proved(&self) -> watch::Receiver<i64> {
        self.proved.subscribe()
    }

    /// The age of the oldest change of the source that is not proved at the local etcd.
    #[must_use]
    pub fn lag(&self) -> Duration {
        let facts = self.facts();
        let received = facts.expected.front().map(|expected| expected.received);
        [received, facts.behind_since, facts.catching_up_since]
            .into_iter()
            .flatten()
            .map(|since| since.elapsed())
            .max()
            .unwrap_or_default()
    }

    /// The answer of `GET /follow`.
    #[must_use]
    pub fn status(&self) -> FollowStatus {
        let lag = self.lag();
        let mut status = self.facts().status.clone();
        // Before the first answer of the source the lag is unknown.
        status.lag_milliseconds =
            (status.source_revision > 0).then(|| u64::try_from(lag.as_millis()).unwrap_or(u64::MAX));
        status
    }
}

/// Keys that an error names.
const NAMED: usize = 5;

pub(super) fn differs(number: i64, changes: &[Change]) -> Error {
    let keys = changes
        .iter()
        .take(NAMED)
        .map(|change| change.key().escape_ascii().to_string());
    let keys = keys.collect::<Vec<_>>().join(", ");
    Error::new(
        Class::Diverged,
        format!(
            "revision {number} of the local etcd ({keys}) is not that of the source; remove the data directory and \
             prepare the etcd again"
        ),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn delete(key: &'static str) -> Vec<Change> {
        vec![Change::Delete(key.into())]
    }

    fn digest_of(number: i64, changes: &[Change]) -> HistoryDigest {
        let mut digest = HistoryDigest::default();
        digest.add(number, changes);
        digest
    }

    fn a_different_change_is_a_divergence() {
        let progress = FollowProgress::default();
        progress.begin(4);
        progress.expect(5, digest_of(5, &delete("a")));
        let error = progress.prove(5, &delete("b")).expect_err("the keys differ");
        assert_eq!(error.class, Class::Diverged);
        assert!(
            error.message.contains("revision 5 of the local etcd (b)"),
            "{error}"
        );
        assert_eq!(progress.status().revision, 4);
    }

    #[test]
    fn a_history_that_differs_is_noticed() {
        a_different_change_is_a_divergence();
        Mutation::DigestsNotCompared.assert_killed_by(a_different_change_is_a_divergence, "the keys differ");
        let progress = FollowProgress::default();
        progress.begin(4);
        assert_eq!(
            progress.prove(5, &delete("a")).unwrap_err().class,
            Class::Diverged
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_lag_is_the_age_of_the_oldest_change_that_is_not_proved() {
        let progress = FollowProgress::default();
        progress.begin(4);
        progress.phase(FollowPhase::CatchingUp);
        let second = Duration::from_secs(1);
        tokio::time::advance(second).await;
        assert_eq!(progress.lag(), second);
        progress.phase(FollowPhase::Following);
        assert_eq!(progress.lag(), Duration::ZERO);
        progress.source_at(5);
        tokio::time::advance(second).await;
        assert_eq!(progress.lag(), second);
        progress.expect(5, digest_of(5, &delete("a")));
        tokio::time::advance(second).await;
        assert_eq!(progress.lag(), second);
        progress.prove(5, &delete("a")).unwrap();
        let status = progress.status();
        assert_eq!((status.revision, status.source_revision), (5, 5));
        assert_eq!(status.lag_milliseconds, Some(0));
        progress.interrupted(&Error::new(Class::Etcd, "gone"));
        tokio::time::advance(second).await;
        assert_eq!(progress.lag(), second);
    }
}
