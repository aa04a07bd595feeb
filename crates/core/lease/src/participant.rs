//! A process in the election of a single lock: the shared state of waiting and holding.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use permit::Clock;
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use crate::decision::Decision;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::mutation::Mutation;
use crate::store::{Failure, Store};
use crate::timing::Timing;
use crate::view::View;

/// Reads the wall clock, for the time stamps of a Lease that people read.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A process and a lock.
pub(crate) struct Participant {
    lock: String,
    name: String,
    identity: String,
    wall: WallClock,
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) timing: Timing,
    pub(crate) metrics: Metrics,
    #[cfg(test)]
    pub(crate) mutation: Option<Mutation>,
}

impl Participant {
    pub(crate) fn new(lock: Lock, timing: Timing, metrics: Metrics) -> Self {
        metrics.set_active(&lock.name, false);
        Self {
            lock: format!("{}/{}", lock.namespace, lock.name),
            name: lock.name.clone(),
            identity: lock.identity.clone(),
            store: Store::new(lock, timing.request_timeout()),
            wall: Arc::new(wall_clock),
            clock: Clock::default(),
            timing,
            metrics,
            #[cfg(test)]
            mutation: None,
        }
    }

    pub(crate) fn with_wall_clock(self, wall: WallClock) -> Self {
        Self { wall, ..self }
    }

    /// `namespace/name` of the lock.
    pub(crate) fn lock(&self) -> &str {
        &self.lock
    }

    /// The name of the lock: the label of the lock's metrics.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The identity of this process.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn wall(&self) -> Timestamp {
        (self.wall)()
    }

    /// Releases the lock if this process is the holder. Bounded; after a failure the lock expires.
    pub(crate) async fn release(&self, within: Duration) {
        let deadline = Instant::now() + within;
        let mut view = View::default();
        loop {
            let released = timeout_at(deadline, async {
                view.see(self.store.read().await?, Instant::now());
                match (view.decide(self.identity(), &self.timing), view.lease()) {
                    (Some(Decision::Renew), Some(lease)) => {
                        let record = view.record().released(self.wall());
                        self.store.update(lease, &record).await.map(|_| true)
                    }
                    _ => Ok(false),
                }
            });
            match released.await {
                Ok(Ok(true)) => info!(lock = self.lock, "released"),
                Ok(Ok(false)) => {}
                Ok(Err(Failure::Changed)) => continue,
                Ok(Err(error)) => {
                    warn!(lock = self.lock, %error, "the lock is not released and will run out");
                }
                Err(_) => warn!(
                    lock = self.lock,
                    "the lock is not released in time and will run out"
                ),
            }
            return;
        }
    }

    /// Whether a rule is switched off.
    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    pub(crate) const fn breaks(&self, _: Mutation) -> bool {
        false
    }

    /// Whether a rule is switched off.
    #[cfg(test)]
    pub(crate) fn breaks(&self, rule: Mutation) -> bool {
        self.mutation == Some(rule)
    }
}

// This crate does not depend on the workspace's clock. The time is only for people (see `observation`).
#[allow(clippy::disallowed_methods)]
fn wall_clock() -> Timestamp {
    Timestamp::now()
}
