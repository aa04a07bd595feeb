//! A process that takes part in the election of one lock: what waiting for the lock and holding it have in
//! common.

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

/// Reads the wall clock, for the time stamps that people see in a Lease.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// One process and one lock.
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

    /// The name of the lock: the label of its metrics.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Who this is.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn wall(&self) -> Timestamp {
        (self.wall)()
    }

    /// Gives the lock back if it is ours. Bounded; on failure it runs out by itself.
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

// This crate stands alone, so it has its own clock; it is for people's eyes only (see `observation`).
#[allow(clippy::disallowed_methods)]
fn wall_clock() -> Timestamp {
    Timestamp::now()
}
