//! Holding a lock: renewing it, and giving it back.

use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{info, warn};

use crate::decision::Decision;
use crate::store::Failure;
use crate::view::View;
use crate::{Elector, Held, Lost, Record};

/// The time between having got a lock and not having it any more. However it ends (also when it is dropped in the middle),
/// nothing is held afterwards and `leader_active` is 0.
pub(crate) struct Tenure<'a> {
    elector: &'a Elector,
    view: View,
    held: Held,
    last_sent: Instant,
}

impl<'a> Tenure<'a> {
    /// `sent` is when the write was sent that took the lock.
    pub(crate) fn new(elector: &'a Elector, view: View, sent: Instant) -> Self {
        elector.metrics.set_active(elector.name(), true);
        let lease_duration = elector.timing.lease_duration;
        elector.metrics.renewed(elector.name(), sent, lease_duration);
        Self {
            elector,
            view,
            held: Held::new(elector.lock().to_owned(), valid_until(elector, sent)),
            last_sent: sent,
        }
    }

    pub(crate) fn held(&self) -> Held {
        self.held.clone()
    }

    /// Renews until that fails for good, and says why. Never returns while the lock is held.
    pub(crate) async fn keep(&mut self) -> Lost {
        let timing = &self.elector.timing;
        let mut why = None;
        let mut next = self.last_sent + timing.retry_period;
        loop {
            let deadline = self.held.valid_until();
            // The deadline first: after a stop of the process both are over.
            if timeout_at(deadline, sleep_until(next)).await.is_err() || !self.held.in_time() {
                return self.not_renewed(why);
            }
            let begun = Instant::now();
            match timeout_at(deadline, self.renew()).await {
                Ok(Ok(None)) => why = None,
                Ok(Ok(Some(lost))) => return lost,
                Ok(Err(failure)) => {
                    warn!(lock = self.elector.lock(), %failure, "the lock could not be renewed");
                    why = Some(failure.to_string());
                }
                Err(_) => return self.not_renewed(why),
            }
            next = begun + timing.retry_period;
        }
    }

    /// One renewal. What changed the Lease since the last one (a label, or a renewal of ours whose answer was lost) is read
    /// and then overwritten, as long as the lock is still ours.
    async fn renew(&mut self) -> Result<Option<Lost>, Failure> {
        let (me, timing) = (self.elector.identity(), &self.elector.timing);
        let sent = Instant::now();
        let record = self.view.record().renewed(me, timing, self.elector.wall());
        let answer = if let Some(lease) = self.view.lease() {
            self.elector.store.update(lease, &record).await
        } else {
            // Deleted by someone. The others still wait for our time to run out (`Observation::update`).
            let record = Record::created(me, timing, self.elector.wall());
            self.elector.store.create(&record).await
        };
        match answer {
            Ok(lease) => {
                self.view.see(Some(lease), Instant::now());
                self.last_sent = sent;
                let elector = self.elector;
                elector
                    .metrics
                    .renewed(elector.name(), sent, timing.lease_duration);
                let in_time = self.held.extend(valid_until(self.elector, sent));
                Ok((!in_time).then(|| self.not_renewed(None)))
            }
            Err(Failure::Changed) => {
                self.view.see(self.elector.store.read().await?, Instant::now());
                match self.view.decide(me, timing) {
                    // Ours (or deleted): Box, because this function calls itself; `keep` bounds it by the deadline.
                    Some(Decision::Renew | Decision::Create) => Box::pin(self.renew()).await,
                    _ => Ok(Some(Lost::Taken {
                        lock: self.elector.lock().to_owned(),
                        holder: self.view.holder().unwrap_or("nobody").to_owned(),
                    })),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    /// Ends the tenure. The work must have been dropped. Where nothing is under way any more the lock is given back within
    /// this time; else it is left to run out.
    pub(crate) async fn end(self, give_back: Option<Duration>) {
        let elector = self.elector;
        drop(self);
        if let Some(within) = give_back {
            elector.release(within).await;
        }
        info!(
            lock = elector.lock(),
            identity = elector.identity(),
            "stopped leading"
        );
    }

    fn not_renewed(&self, why: Option<String>) -> Lost {
        Lost::NotRenewed {
            lock: self.elector.lock().to_owned(),
            deadline: self.elector.timing.renew_deadline,
            why: why.unwrap_or_else(|| "there was no time for it".to_owned()),
        }
    }
}

impl Drop for Tenure<'_> {
    fn drop(&mut self) {
        self.held.end();
        self.elector.metrics.set_active(self.elector.name(), false);
    }
}

fn valid_until(elector: &Elector, sent: Instant) -> Instant {
    Instant::from_std(elector.timing.valid_until(sent.into_std()))
}
