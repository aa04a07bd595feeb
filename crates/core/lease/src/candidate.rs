//! Waiting for a lock.
//!
//! A candidate reads the Lease every retry period, as client-go does, and also watches the Lease. The watch
//! makes a hand-over quick (a released lock is seen after milliseconds), the reads make the hand-over
//! certain. A watch that is broken, silent or forbidden only costs time.

use std::future::pending;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::WatchEvent;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::decision::Decision;
use crate::election_record::ElectionRecord;
use crate::ended::Lost;
use crate::mutation::Mutation;
use crate::participant::Participant;
use crate::store::Failure;
use crate::tenure::{Sent, Tenure};
use crate::terms::Reaction;
use crate::view::View;

/// The result of an attempt to get the lock.
enum Attempt {
    /// This process holds the lock; the write that took the lock was sent at this time.
    Acquired(Sent),
    /// Another process holds the lock for this much longer.
    Wait(Duration),
    /// Another process holds the lock on different terms.
    Disagrees(Lost),
}

pub(crate) struct Candidate<'a> {
    participant: &'a Participant,
    view: View,
    changes: Option<BoxStream<'static, kube::Result<WatchEvent<Lease>>>>,
    /// A write of this process as holder was sent and not answered: this process may hold the lock without
    /// knowing.
    unsure: bool,
    reported: Option<String>,
    /// The first record of a holder on different terms: a changed record of the same holder is a sign of
    /// life.
    contradicted: Option<ElectionRecord>,
    /// Receives a message after the first read without a holder that forces this process to end.
    checked: Option<oneshot::Sender<()>>,
}

impl<'a> Candidate<'a> {
    pub(crate) fn new(participant: &'a Participant, checked: oneshot::Sender<()>) -> Self {
        Self {
            participant,
            view: View::default(),
            changes: None,
            unsure: false,
            reported: None,
            contradicted: None,
            checked: Some(checked),
        }
    }

    /// Waits until this process holds the lock. Continues through outages of the API server (RK-33 is about
    /// holders: a candidate has no work to stop).
    ///
    /// # Errors
    /// A living process holds the lock on different terms, and the terms of this process do not allow to
    /// wait: waiting would let processes with contradicting terms take turns.
    pub(crate) async fn acquire(&mut self) -> Result<Tenure<'a>, Lost> {
        let mut beaten = false;
        let participant = self.participant;
        let patience = participant.timing.lease_duration;
        participant.metrics.wait_begun(participant.name(), patience);
        loop {
            match self.attempt().await {
                Ok(Attempt::Acquired(sent)) => {
                    let view = std::mem::take(&mut self.view);
                    return Ok(Tenure::new(self.participant, view, sent));
                }
                Ok(Attempt::Disagrees(lost)) => {
                    self.refused("other terms");
                    return Err(lost);
                }
                Ok(Attempt::Wait(left)) => {
                    beaten = false;
                    self.wait(left).await;
                }
                // Another candidate was faster: read the new holder at once. After a repeated conflict, wait
                // as after any error.
                Err(Failure::Changed) if !beaten => {
                    self.refused("overtaken");
                    beaten = true;
                }
                Err(error) => {
                    self.refused(error.reason());
                    warn!(lock = self.participant.lock(), %error, "the lock could not be read or taken");
                    sleep(self.pause()).await;
                }
            }
        }
    }

    /// Releases a lock that may be held without an answer to the write.
    pub(crate) async fn withdraw(self) {
        if self.unsure {
            self.participant
                .release(self.participant.timing.request_timeout())
                .await;
        }
    }

    async fn attempt(&mut self) -> Result<Attempt, Failure> {
        let participant = self.participant;
        let asked = Instant::now();
        let found = participant.store.read().await?;
        participant.metrics.answered(participant.name());
        let early = participant.breaks(Mutation::SeenBeforeRead);
        self.view.see(found, if early { asked } else { Instant::now() });
        self.report();
        if let Some(lost) = self.disagreement() {
            return Ok(Attempt::Disagrees(lost));
        }
        if let Some(checked) = self.checked.take() {
            // The receiver may not wait.
            let _ = checked.send(());
        }
        let (me, timing) = (participant.identity(), &participant.timing);
        let wall = participant.wall();
        let record = match self.view.decide(me, timing) {
            Some(Decision::Wait(_))
                if self.view.lease().is_none() && participant.breaks(Mutation::NoWaitWithoutLease) =>
            {
                ElectionRecord::created(me, timing, wall)
            }
            Some(Decision::Wait(left)) => return Ok(Attempt::Wait(left)),
            Some(Decision::TakeOver) => self.view.record().taken_over(me, timing, wall),
            Some(Decision::Renew) => self.view.record().renewed(me, timing, wall),
            Some(Decision::Create) | None => ElectionRecord::created(me, timing, wall),
        };
        let free_since = self.view.free_since(timing);
        let sent = Sent::now(participant);
        let lease = self.write(&record).await?;
        self.view.see(Some(lease), Instant::now());
        if let Some(since) = free_since {
            participant
                .metrics
                .handed_over(participant.name(), since.elapsed());
        }
        info!(lock = participant.lock(), identity = me, "became leader");
        Ok(Attempt::Acquired(sent.answered(participant)))
    }

    /// The error, if a different process holds the lock on different terms, and the terms of this process do
    /// not allow to wait. Counts each attempt beside such a holder, and logs the first attempt.
    fn disagreement(&mut self) -> Option<Lost> {
        let contradiction = self.participant.store.find_contradiction(self.view.lease()?)?;
        let record = self.view.record();
        let first = self.contradicted.as_ref();
        let first = first.filter(|first| first.holder == record.holder);
        let lives = first.is_some_and(|first| *first != record);
        let is_new = first.is_none();
        let disagrees = Lost::Disagrees {
            lock: self.participant.lock().to_owned(),
            holder: self.view.holder().unwrap_or("nobody").to_owned(),
            theirs: contradiction.theirs,
        };
        let fails = match contradiction.reaction {
            Reaction::FailAtOnce => true,
            Reaction::FailBesideLiving => lives,
            Reaction::Wait => false,
        };
        if fails {
            return Some(disagrees);
        }
        self.refused("other terms");
        if is_new {
            warn!(%disagrees, "waiting for the holder to end");
            self.contradicted = Some(record);
        }
        None
    }

    /// Counts an attempt that did not win the lock.
    fn refused(&self, reason: &'static str) {
        self.participant.metrics.refused(self.participant.name(), reason);
    }

    /// Writes this process as holder. The outcome is unknown until the answer, also when this future is
    /// dropped.
    async fn write(&mut self, record: &ElectionRecord) -> Result<Lease, Failure> {
        self.unsure = true;
        let answer = match self.view.lease() {
            Some(lease) => self.participant.store.update(lease, record).await,
            None => self.participant.store.create(record).await,
        };
        self.unsure = !matches!(answer, Ok(_) | Err(Failure::Changed));
        answer
    }

    /// Waits for the next read: until the holder's time expires, the retry period ends, or the watch shows a
    /// free lock.
    async fn wait(&mut self, left: Duration) {
        let mut pause = std::pin::pin!(sleep(left.min(self.pause())));
        loop {
            let seen = tokio::select! {
                () = &mut pause => return,
                seen = next(&mut self.changes, self.participant, &self.view) => seen,
            };
            self.view.see(seen, Instant::now());
            self.report();
            let next = self
                .view
                .decide(self.participant.identity(), &self.participant.timing);
            if !matches!(next, Some(Decision::Wait(_))) {
                return;
            }
        }
    }

    fn pause(&self) -> Duration {
        self.participant.timing.pause(fastrand::f64())
    }

    /// Logs each holder once, as client-go does.
    fn report(&mut self) {
        let holder = self.view.holder();
        if holder != self.reported.as_deref() {
            info!(
                lock = self.participant.lock(),
                holder = holder.unwrap_or("nobody"),
                "holder seen"
            );
            self.reported = holder.map(ToOwned::to_owned);
        }
    }
}

/// The next change of the Lease; never returns when the watch ended or is forbidden. The next wait opens a
/// new watch.
async fn next(
    changes: &mut Option<BoxStream<'static, kube::Result<WatchEvent<Lease>>>>,
    participant: &Participant,
    view: &View,
) -> Option<Lease> {
    let Some(version) = view.version() else {
        return pending().await;
    };
    let stream = changes.get_or_insert_with(|| participant.store.changes(version));
    loop {
        match stream.next().await {
            Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease))) => return Some(lease),
            Some(Ok(WatchEvent::Deleted(_))) => {
                *changes = None;
                return None;
            }
            Some(Ok(WatchEvent::Bookmark(_))) => {}
            ended => {
                debug!(lock = participant.lock(), ?ended, "the watch of the lock ended");
                *changes = None;
                return pending().await;
            }
        }
    }
}
