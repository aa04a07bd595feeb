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
    /// Of the local etcd's history up to `proved`.
    digest: HistoryDigest,
    /// The last revision whose digest was compared.
    proved: i64,
    has_begun: bool,
    /// Whether the follower reads the watch of the source.
    is_watching: bool,
    /// The last revision that was read from the source.
    received: i64,
    /// Since when the source is known to be at a revision that was not received.
    behind_since: Option<Instant>,
    /// Since when the follower reads deltas.
    catching_up_since: Option<Instant>,
    /// The source's etcd cluster.
    cluster_id: Option<u64>,
}

/// The comparison of the whole history by etcd's hash. The digest covers only the changes since the follower
/// has begun.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HistoryChecks {
    /// The number of comparisons that were requested.
    requested: u64,
    /// The last comparison that showed equal histories.
    passed: u64,
}

impl HistoryChecks {
    /// Whether no comparison is outstanding.
    pub(super) fn are_complete(self) -> bool {
        self.passed == self.requested
    }
}

/// The begin of a session.
pub(super) struct SessionBegin {
    /// The session compares each later revision.
    pub(super) proved: i64,
    /// The digest at `proved`.
    pub(super) digest: HistoryDigest,
}

/// The progress. A clone is a view of the same progress.
#[derive(Clone)]
pub struct FollowProgress {
    facts: Arc<Mutex<Facts>>,
    proved: Arc<watch::Sender<i64>>,
    received: Arc<watch::Sender<i64>>,
    checks: Arc<watch::Sender<HistoryChecks>>,
}

impl Default for FollowProgress {
    fn default() -> Self {
        Self {
            facts: Arc::default(),
            proved: Arc::new(watch::Sender::new(0)),
            received: Arc::new(watch::Sender::new(0)),
            checks: Arc::new(watch::Sender::new(HistoryChecks::default())),
        }
    }
}

impl FollowProgress {
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session begins with the local etcd at a revision. Revisions that an earlier session applied and did
    /// not compare are still to be compared.
    pub(super) fn begin(&self, reached: i64) -> Result<SessionBegin> {
        let mut facts = self.facts();
        let is_first = !facts.has_begun;
        if is_first {
            facts.has_begun = true;
            facts.proved = reached;
            facts.status.from_revision = reached;
        }
        if reached < facts.proved {
            return Err(lost(reached, facts.proved));
        }
        facts.expected.clear();
        facts.received = facts.proved;
        facts.behind_since = None;
        let begin = SessionBegin {
            proved: facts.proved,
            digest: facts.digest,
        };
        drop(facts);
        self.proved.send_replace(begin.proved);
        self.received.send_replace(begin.proved);
        if is_first {
            self.request_check();
            // An etcd at revision 1 has no history.
            if reached <= 1 {
                self.pass_check(self.history_checks().requested);
            }
        }
        Ok(begin)
    }

    /// The whole history must be compared before a revision counts as proved.
    pub(super) fn request_check(&self) {
        self.checks.send_modify(|checks| checks.requested += 1);
    }

    /// The comparison with this number showed equal histories.
    pub(super) fn pass_check(&self, number: u64) {
        self.checks.send_modify(|checks| checks.passed = number);
        let mut facts = self.facts();
        self.publish(&mut facts);
        let is_watching = facts.is_watching;
        drop(facts);
        if is_watching {
            self.phase(FollowPhase::Following);
        }
    }

    fn history_checks(&self) -> HistoryChecks {
        *self.checks.borrow()
    }

    /// The comparisons of the whole history.
    pub(super) fn checks(&self) -> watch::Receiver<HistoryChecks> {
        self.checks.subscribe()
    }

    /// Whether the whole history up to [`Self::revision`] is known to be equal.
    pub(super) fn is_history_checked(&self) -> bool {
        self.history_checks().are_complete()
    }

    /// Waits until a comparison of the whole history is requested; returns its number.
    pub(super) async fn requested_check(&self) -> u64 {
        let mut checks = self.checks();
        loop {
            let present = *checks.borrow_and_update();
            if !present.are_complete() {
                return present.requested;
            }
            // The sender lives as long as `self`.
            let _ = checks.changed().await;
        }
    }

    fn publish(&self, facts: &mut Facts) {
        if self.is_history_checked() {
            facts.status.revision = facts.proved;
            facts.status.digest = (facts.proved > facts.status.from_revision).then(|| facts.digest.hex());
        }
    }

    /// An endpoint of the source must lead to one etcd cluster for the life of the process.
    pub(super) fn check_cluster(&self, cluster_id: u64) -> Result<()> {
        let former = *self.facts().cluster_id.get_or_insert(cluster_id);
        if former == cluster_id {
            return Ok(());
        }
        let sentence = format!(
            "the source has the etcd cluster id {cluster_id:x}, and had {former:x} before; name endpoints of one etcd, \
             remove the data directory and prepare the etcd again"
        );
        Err(Error::new(Class::Diverged, sentence))
    }

    /// The follower reads deltas, or the watch of the source. A follower whose history is not compared yet is
    /// catching up.
    pub(super) fn phase(&self, phase: FollowPhase) {
        let mut facts = self.facts();
        facts.is_watching = phase == FollowPhase::Following;
        let phase = if facts.is_watching && !self.is_history_checked() {
            FollowPhase::CatchingUp
        } else {
            phase
        };
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
        facts.is_watching = false;
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
        drop(facts);
        self.received.send_replace(number);
    }

    /// Waits until a revision was read from the source.
    pub(super) async fn wait_for_source(&self, number: i64) {
        let mut received = self.received.subscribe();
        // The sender lives as long as `self`.
        let _ = received.wait_for(|received| *received >= number).await;
    }

    /// Waits until a revision was compared.
    pub(super) async fn wait_for_proof(&self, number: i64) {
        let mut proved = self.proved();
        // The sender lives as long as `self`.
        let _ = proved.wait_for(|proved| *proved >= number).await;
    }

    /// The last revision that was compared.
    pub(super) fn revision(&self) -> i64 {
        self.facts().proved
    }

    /// Whether further revisions may be read from the source.
    pub(super) fn has_room(&self) -> bool {
        self.facts().expected.len() < UNPROVED
    }

    /// The local etcd shows a revision. An error where the source's history differs.
    pub(super) fn prove(&self, number: i64, changes: &[Change]) -> Result<()> {
        let mut facts = self.facts();
        let mut digest = facts.digest;
        digest.add(number, changes);
        let expected = facts.expected.pop_front();
        let is_equal =
            expected.is_some_and(|expected| (expected.number, expected.digest) == (number, digest));
        if !is_equal && !Mutation::DigestsNotCompared.is_active() {
            return Err(differs(number, changes));
        }
        (facts.digest, facts.proved) = (digest, number);
        self.publish(&mut facts);
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

    /// Whether the last check found each lease of the source.
    pub(super) fn leases_complete(&self, are_complete: bool) {
        self.facts().status.leases_complete = Some(are_complete);
    }

    /// The last revision that was compared, for a task that waits.
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

fn lost(reached: i64, proved: i64) -> Error {
    let sentence = format!(
        "the local etcd is at revision {reached}, and was at revision {proved} before; remove the data directory and \
         prepare the etcd again"
    );
    Error::new(Class::Diverged, sentence)
}

/// Keys that an error names.
const NAMED: usize = 5;

fn differs(number: i64, changes: &[Change]) -> Error {
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
#[path = "progress_tests.rs"]
mod tests;
