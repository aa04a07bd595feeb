//! Holding a lock: renewal and release.

use std::sync::Arc;
use std::time::Duration;

use permit::{Issuer, Moment};
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{info, warn};

use crate::decision::Decision;
use crate::election_record::ElectionRecord;
use crate::ended::Lost;
use crate::mutation::Mutation;
use crate::participant::Participant;
use crate::store::Failure;
use crate::view::View;

/// The time from winning a lock until the lock is released or lost. After any end, also a drop in the middle,
/// the lock is not held here and `leader_active` is 0.
pub(crate) struct Tenure<'a> {
    participant: &'a Participant,
    view: View,
    issuer: Arc<Issuer>,
    last_sent: Instant,
}

/// The time at which a write was sent, for timers and for the right that follows from the write.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    at: Instant,
    moment: Moment,
}

impl Sent {
    /// Call before the write is sent.
    pub(crate) fn now(participant: &Participant) -> Self {
        Self {
            moment: participant.clock.now(),
            at: Instant::now(),
        }
    }

    /// The time that counts after the answer arrived: the time of sending.
    pub(crate) fn answered(self, participant: &Participant) -> Self {
        if participant.breaks(Mutation::TimeAfterWrite) {
            Self::now(participant)
        } else {
            self
        }
    }
}

impl<'a> Tenure<'a> {
    /// `sent`: the time at which the write that took the lock was sent.
    pub(crate) fn new(participant: &'a Participant, view: View, sent: Sent) -> Self {
        participant.metrics.set_active(participant.name(), true);
        let lease_duration = participant.timing.lease_duration;
        participant
            .metrics
            .renewed(participant.name(), sent.at, lease_duration);
        let by = format!("the lock {}", participant.lock());
        let until = participant.timing.valid_until(sent.moment);
        Self {
            participant,
            view,
            issuer: Arc::new(Issuer::new(by, participant.clock.clone(), until)),
            last_sent: sent.at,
        }
    }

    pub(crate) fn issuer(&self) -> Arc<Issuer> {
        Arc::clone(&self.issuer)
    }

    /// Renews until the renewal fails for good, and returns the reason. Never returns while the lock is held.
    pub(crate) async fn keep(&mut self) -> Lost {
        let timing = &self.participant.timing;
        let mut why = None;
        let mut next = self.last_sent + timing.retry_period;
        loop {
            let deadline = self.issuer.valid_until();
            // Check the deadline first: after a stop of the process both times have passed.
            if timeout_at(deadline, sleep_until(next)).await.is_err() || !self.issuer.in_time() {
                return self.not_renewed(why);
            }
            let begun = Instant::now();
            match timeout_at(deadline, self.renew()).await {
                Ok(Ok(None)) => why = None,
                Ok(Ok(Some(lost))) => return lost,
                Ok(Err(failure)) => {
                    warn!(lock = self.participant.lock(), %failure, "the lock could not be renewed");
                    why = Some(failure.to_string());
                }
                Err(_) => return self.not_renewed(why),
            }
            next = begun + timing.retry_period;
        }
    }

    /// A single renewal. The Lease may have changed since the last renewal: a label, or a renewal of this
    /// process with a lost answer. Then the renewal reads the Lease and writes again, as long as this process
    /// is still the holder.
    async fn renew(&mut self) -> Result<Option<Lost>, Failure> {
        let (me, timing) = (self.participant.identity(), &self.participant.timing);
        let sent = Sent::now(self.participant);
        let record = self.view.record().renewed(me, timing, self.participant.wall());
        let answer = if let Some(lease) = self.view.lease() {
            self.participant.store.update(lease, &record).await
        } else {
            // A client has deleted the Lease. Candidates still wait until the time of this holder expires
            // (`Observation::update`).
            let record = ElectionRecord::created(me, timing, self.participant.wall());
            self.participant.store.create(&record).await
        };
        match answer {
            Ok(lease) => {
                let sent = sent.answered(self.participant);
                self.view.see(Some(lease), Instant::now());
                self.last_sent = sent.at;
                let participant = self.participant;
                participant
                    .metrics
                    .renewed(participant.name(), sent.at, timing.lease_duration);
                participant.metrics.answered(participant.name());
                let in_time = self.issuer.extend(timing.valid_until(sent.moment));
                Ok((!in_time).then(|| self.not_renewed(None)))
            }
            Err(Failure::Changed) => {
                self.view
                    .see(self.participant.store.read().await?, Instant::now());
                match self.view.decide(me, timing) {
                    // Still the holder (or the Lease was deleted): Box, because this function calls itself;
                    // `keep` bounds the recursion by the deadline.
                    Some(Decision::Renew | Decision::Create) => Box::pin(self.renew()).await,
                    _ => Ok(Some(Lost::Taken {
                        lock: self.participant.lock().to_owned(),
                        holder: self.view.holder().unwrap_or("nobody").to_owned(),
                    })),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    /// Ends the hold after the work was dropped. If no write is under way, the lock is released within
    /// `give_back`; otherwise the lock expires.
    pub(crate) async fn end(self, give_back: Option<Duration>) {
        let participant = self.participant;
        drop(self);
        if let Some(within) = give_back {
            participant.release(within).await;
        }
        info!(
            lock = participant.lock(),
            identity = participant.identity(),
            "stopped leading"
        );
    }

    fn not_renewed(&self, why: Option<String>) -> Lost {
        Lost::NotRenewed {
            lock: self.participant.lock().to_owned(),
            deadline: self.participant.timing.renew_deadline,
            why: why.unwrap_or_else(|| "there was no time for it".to_owned()),
        }
    }
}

impl Drop for Tenure<'_> {
    fn drop(&mut self) {
        self.issuer.end("it was lost");
        self.participant
            .metrics
            .set_active(self.participant.name(), false);
    }
}
