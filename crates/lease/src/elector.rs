//! `with_lease(future)`: work that runs while a lock is held, and only then.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::announce::Announcer;
use crate::candidate::Candidate;
use crate::decision::Decision;
use crate::store::{Failure, Store};
use crate::tenure::Tenure;
use crate::under_way::{FINISH_WITHIN, Finishing};
use crate::view::View;
use crate::{Held, Metrics, Timing};

/// Reads the wall clock, for the time stamps that people see in a Lease.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// One lock and who wants it.
#[derive(Clone)]
pub struct Lock {
    client: Client,
    namespace: String,
    name: String,
    identity: String,
}

impl Lock {
    /// The lock is the Lease `name` in `namespace`; `identity` must be this process's alone ([`crate::identity`] makes
    /// one). The client needs `get`, `create` and `update` of Leases, should have `watch`, and for Events `create` and
    /// `patch` of `events.k8s.io`. It must not be fenced by a lock itself.
    #[must_use]
    pub fn new(
        client: Client,
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            client,
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
        }
    }
}

/// How `with_lease` ended well. The lock was given back, unless a write of the work stayed without an answer: then it runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The work ended by itself.
    Done(T),
    /// Shutdown was asked for; the work was dropped, or had not begun.
    Shutdown,
}

/// How a lock was lost; the work was dropped. The process should exit (RK-33): what it knows may be out of date. The lock is
/// not given back: requests that were under way may still be carried out, and the time that others wait is theirs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The API server could not be reached, or the process did not run.
    #[error("the lock {lock} could not be renewed for {deadline:?}: {why}")]
    NotRenewed {
        /// `namespace/name` of the lock.
        lock: String,
        /// The renew deadline.
        deadline: Duration,
        /// What the last try said.
        why: String,
    },
    /// The Lease names another holder although our time was not over: somebody wrote into it by hand.
    #[error("the lock {lock} is held by {holder}")]
    Taken {
        /// `namespace/name` of the lock.
        lock: String,
        /// The other holder.
        holder: String,
    },
}

/// A clean end of the work.
struct Ended<T> {
    outcome: Outcome<T>,
    /// All its writes were answered.
    settled: bool,
}

/// Elects one of several processes by a Lease, and runs work in the elected one.
pub struct Elector {
    lock: String,
    name: String,
    identity: String,
    announcer: Announcer,
    clock: WallClock,
    pub(crate) store: Store,
    pub(crate) timing: Timing,
    pub(crate) metrics: Metrics,
}

impl Elector {
    /// Asks for nothing yet. `leader_active` of the lock is 0 from now on.
    #[must_use]
    pub fn new(lock: Lock, timing: Timing, metrics: Metrics) -> Self {
        let Lock {
            client,
            namespace,
            name,
            identity,
        } = lock;
        metrics.set_active(&name, false);
        Self {
            lock: format!("{namespace}/{name}"),
            announcer: Announcer::new(client.clone(), &namespace, &name, &identity, timing.retry_period),
            store: Store::new(client, &namespace, &name, timing.request_timeout()),
            name,
            identity,
            clock: Arc::new(wall_clock),
            timing,
            metrics,
        }
    }

    /// With another wall clock. Nothing depends on its being right.
    #[must_use]
    pub fn with_wall_clock(self, clock: WallClock) -> Self {
        Self { clock, ..self }
    }

    /// Waits for the lock, runs `work` while it is held, and drops it on loss. When the work ends or `shutdown` is
    /// cancelled, the work is dropped first; then its writes that are under way are finished (for at most 3 s, while the
    /// lock is renewed); then the lock is given back, so that the next holder need not wait. A lock that was lost is not
    /// given back, nor is one whose work left a write without an answer: it runs out.
    ///
    /// The work must be one future that does everything itself: what it detaches would outlive the lock (invariant 4).
    /// Clients that it writes with should carry [`Held::layer`]: of other writes nothing is known here. When the future of this function is dropped, the work is
    /// dropped and the lock is left to run out.
    pub async fn with_lease<F: Future>(
        &self,
        shutdown: CancellationToken,
        work: impl FnOnce(Held) -> F,
    ) -> Result<Outcome<F::Output>, Lost> {
        let mut candidate = Candidate::new(self);
        let won = tokio::select! {
            biased;
            () = shutdown.cancelled() => None,
            tenure = Box::pin(candidate.acquire()) => Some(tenure),
        };
        let Some(mut tenure) = won else {
            candidate.withdraw().await;
            return Ok(Outcome::Shutdown);
        };
        let ended = self.work(&mut tenure, &shutdown, work).await;
        let give_back = match &ended {
            Ok(Ended { settled: true, .. }) => Some(self.timing.request_timeout()),
            Ok(Ended { settled: false, .. }) => {
                let lock = self.lock();
                warn!(
                    lock,
                    "a write was not answered within {FINISH_WITHIN:?}: the lock will run out"
                );
                None
            }
            Err(lost) => {
                warn!(%lost, "the work was dropped");
                None
            }
        };
        tenure.end(give_back).await;
        self.announcer.stopped_leading().await;
        ended.map(|ended| ended.outcome)
    }

    /// Runs the work until it ends, the lock is lost, or shutdown. When this returns the work has been dropped.
    async fn work<F: Future>(
        &self,
        tenure: &mut Tenure<'_>,
        shutdown: &CancellationToken,
        work: impl FnOnce(Held) -> F,
    ) -> Result<Ended<F::Output>, Lost> {
        let held = tenure.held();
        // On the heap: the work of a manager is large, and this future is part of its caller's.
        let mut guarded = Box::pin(held.guard(work(held.clone())));
        let mut keeping = Box::pin(async {
            // Telling of it must not delay a renewal, nor a loss.
            let telling = async {
                self.announcer.became_leader().await;
                pending::<Lost>().await
            };
            tokio::select! {
                lost = tenure.keep() => lost,
                never = telling => never,
            }
        });
        let mut finishing = Finishing::new(held.clone());
        let outcome = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(Outcome::Shutdown),
            done = &mut guarded => match done {
                Ok(output) => Ok(Outcome::Done(output)),
                // The renewals say why.
                Err(_) => Err(keeping.as_mut().await),
            },
            lost = &mut keeping => Err(lost),
            never = finishing.go_on() => match never {},
        };
        let ended = match outcome {
            Ok(outcome) => {
                // No request of the work leaves from here on, also none that its destructors might send.
                held.close();
                drop(guarded);
                let settled = tokio::select! {
                    biased;
                    lost = &mut keeping => Err(lost),
                    settled = finishing.finish() => Ok(settled),
                };
                match settled {
                    // Of a process that was stopped the end may be seen before the loss.
                    Ok(_) if !held.in_time() => Err(keeping.await),
                    settled => settled.map(|settled| Ended { outcome, settled }),
                }
            }
            Err(lost) => Err(lost),
        };
        held.end();
        ended
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

    /// `namespace/name` of the lock.
    #[must_use]
    pub fn lock(&self) -> &str {
        &self.lock
    }

    /// The name of the lock: the label of its metrics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who this candidate is.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub(crate) fn wall(&self) -> Timestamp {
        (self.clock)()
    }
}

// This crate stands alone, so it has its own clock; it is for people's eyes only (see `observation`).
#[allow(clippy::disallowed_methods)]
fn wall_clock() -> Timestamp {
    Timestamp::now()
}
