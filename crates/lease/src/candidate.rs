//! Waiting for a lock.
//!
//! A candidate looks at the Lease every retry period, as client-go does, and beside that it watches it. The watch makes a
//! hand-over quick (a released lock is seen after milliseconds), the looks make it certain: a watch that is broken, silent
//! or not allowed costs time and nothing else.

use std::future::pending;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::WatchEvent;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::decision::Decision;
use crate::store::Failure;
use crate::tenure::Tenure;
use crate::view::View;
use crate::{Elector, Record};

/// What one look at the lock led to.
enum Look {
    /// The lock is ours; the write that took it was sent at this time.
    Acquired(Instant),
    /// Another one has it for this much longer.
    Wait(Duration),
}

pub(crate) struct Candidate<'a> {
    elector: &'a Elector,
    view: View,
    changes: Option<BoxStream<'static, kube::Result<WatchEvent<Lease>>>>,
    /// A write of our own name was sent and not answered: we may hold the lock without knowing.
    unsure: bool,
    reported: Option<String>,
}

impl<'a> Candidate<'a> {
    pub(crate) fn new(elector: &'a Elector) -> Self {
        Self {
            elector,
            view: View::default(),
            changes: None,
            unsure: false,
            reported: None,
        }
    }

    /// Waits until the lock is ours. Goes on through outages of the API server (RK-33 is about holders: who holds nothing
    /// has nothing to stop).
    pub(crate) async fn acquire(&mut self) -> Tenure<'a> {
        let mut beaten = false;
        loop {
            match self.look().await {
                Ok(Look::Acquired(sent)) => {
                    let view = std::mem::take(&mut self.view);
                    return Tenure::new(self.elector, view, sent);
                }
                Ok(Look::Wait(left)) => {
                    beaten = false;
                    self.wait(left).await;
                }
                // Another one was faster: look at once what it wrote. If that goes on, something else is going on.
                Err(Failure::Changed) if !beaten => beaten = true,
                Err(error) => {
                    warn!(lock = self.elector.lock(), %error, "the lock could not be read or taken");
                    sleep(self.pause()).await;
                }
            }
        }
    }

    /// Gives back what may be ours without our knowing.
    pub(crate) async fn withdraw(self) {
        if self.unsure {
            self.elector.release(self.elector.timing.request_timeout()).await;
        }
    }

    async fn look(&mut self) -> Result<Look, Failure> {
        let elector = self.elector;
        let found = elector.store.read().await?;
        self.view.see(found, Instant::now());
        self.report();
        let (me, timing) = (elector.identity(), &elector.timing);
        let wall = elector.wall();
        let record = match self.view.decide(me, timing) {
            Some(Decision::Wait(left)) => return Ok(Look::Wait(left)),
            Some(Decision::TakeOver) => self.view.record().taken_over(me, timing, wall),
            Some(Decision::Renew) => self.view.record().renewed(me, timing, wall),
            Some(Decision::Create) | None => Record::created(me, timing, wall),
        };
        let free_since = self.view.free_since(timing);
        let sent = Instant::now();
        let lease = self.write(&record).await?;
        self.view.see(Some(lease), Instant::now());
        if let Some(since) = free_since {
            elector.metrics.handed_over(elector.name(), since.elapsed());
        }
        info!(lock = elector.lock(), identity = me, "became leader");
        Ok(Look::Acquired(sent))
    }

    /// Writes our name. Whether it was written is unknown until there is an answer, also when this future is dropped.
    async fn write(&mut self, record: &Record) -> Result<Lease, Failure> {
        self.unsure = true;
        let answer = match self.view.lease() {
            Some(lease) => self.elector.store.update(lease, record).await,
            None => self.elector.store.create(record).await,
        };
        self.unsure = !matches!(answer, Ok(_) | Err(Failure::Changed));
        answer
    }

    /// Waits for the next look: until the holder's time is up, the retry period is over, or the lock was seen to be free.
    async fn wait(&mut self, left: Duration) {
        let mut pause = std::pin::pin!(sleep(left.min(self.pause())));
        loop {
            let seen = tokio::select! {
                () = &mut pause => return,
                seen = next(&mut self.changes, self.elector, &self.view) => seen,
            };
            self.view.see(seen, Instant::now());
            self.report();
            let next = self.view.decide(self.elector.identity(), &self.elector.timing);
            if !matches!(next, Some(Decision::Wait(_))) {
                return;
            }
        }
    }

    fn pause(&self) -> Duration {
        self.elector.timing.pause(fastrand::f64())
    }

    /// Logs a holder once, as client-go does.
    fn report(&mut self) {
        let holder = self.view.holder();
        if holder != self.reported.as_deref() {
            info!(
                lock = self.elector.lock(),
                holder = holder.unwrap_or("nobody"),
                "holder seen"
            );
            self.reported = holder.map(ToOwned::to_owned);
        }
    }
}

/// The next change of the Lease; never returns when the watch ended or cannot be had. It is made anew in the next wait.
async fn next(
    changes: &mut Option<BoxStream<'static, kube::Result<WatchEvent<Lease>>>>,
    elector: &Elector,
    view: &View,
) -> Option<Lease> {
    let Some(version) = view.version() else {
        return pending().await;
    };
    let stream = changes.get_or_insert_with(|| elector.store.changes(version));
    loop {
        match stream.next().await {
            Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease))) => return Some(lease),
            Some(Ok(WatchEvent::Deleted(_))) => {
                *changes = None;
                return None;
            }
            Some(Ok(WatchEvent::Bookmark(_))) => {}
            ended => {
                debug!(lock = elector.lock(), ?ended, "the watch of the lock ended");
                *changes = None;
                return pending().await;
            }
        }
    }
}
