//! `with_lease(future)`: work that runs only while a lock is held.

use std::future::{pending, ready};

use permit::{FINISH_WITHIN, Permit};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::announce::Announcer;
use crate::candidate::Candidate;
use crate::ended::{Ended, Lost};
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::mutation::Mutation;
use crate::participant::{Participant, WallClock};
use crate::tenure::Tenure;
use crate::timing::Timing;

/// A clean end of the work.
struct Clean<T> {
    ended: Ended<T>,
    /// Whether every write of the work was answered.
    settled: bool,
}

/// Elects one of several processes by a Lease, and runs work in the elected process.
pub struct Elector {
    participant: Participant,
    announcer: Announcer,
}

impl Elector {
    /// Sends no request yet. Sets `leader_active` of the lock to 0.
    #[must_use]
    pub fn new(lock: Lock, timing: Timing, metrics: Metrics) -> Self {
        Self {
            announcer: Announcer::new(&lock, timing.retry_period),
            participant: Participant::new(lock, timing, metrics),
        }
    }

    /// With a rule switched off.
    #[cfg(test)]
    pub(crate) fn with_mutation(mut self, mutation: Option<Mutation>) -> Self {
        self.participant.mutation = mutation;
        self
    }

    /// With a different wall clock. The election does not depend on the accuracy of that clock.
    #[must_use]
    pub fn with_wall_clock(self, wall: WallClock) -> Self {
        Self {
            participant: self.participant.with_wall_clock(wall),
            ..self
        }
    }

    /// Waits for the lock, runs `work` while the lock is held, and drops `work` on loss. When the work ends
    /// or `shutdown` is cancelled, the work is dropped first. Then the work's writes under way are finished
    /// (for at most 3 s, while the lock is renewed). Then the lock is released, so that the next holder need
    /// not wait. A lost lock is not released, and neither is a lock with an unanswered write of the work:
    /// such a lock expires.
    ///
    /// The work must be a single future without detached tasks: a detached task would outlive the lock.
    /// Clients of the work should carry [`Permit::layer`], because other writes are not tracked here. When
    /// the future of this function is dropped, the work is dropped and the lock expires.
    pub async fn with_lease<F: Future>(
        &self,
        shutdown: CancellationToken,
        work: impl FnOnce(Permit) -> F,
    ) -> Result<Ended<F::Output>, Lost> {
        let (checked, _) = oneshot::channel();
        self.with_checked_lease(checked, shutdown, work).await
    }

    /// As [`Self::with_lease`]. `checked` receives a message as soon as the Lease was read, and shows no
    /// holder that forces this process to end. So work that such a holder would do, too, can wait for the
    /// message.
    pub async fn with_checked_lease<F: Future>(
        &self,
        checked: oneshot::Sender<()>,
        shutdown: CancellationToken,
        work: impl FnOnce(Permit) -> F,
    ) -> Result<Ended<F::Output>, Lost> {
        let mut candidate = Candidate::new(&self.participant, checked);
        let won = tokio::select! {
            biased;
            () = shutdown.cancelled() => None,
            tenure = Box::pin(candidate.acquire()) => Some(tenure),
        };
        let Some(mut tenure) = won.transpose()? else {
            candidate.withdraw().await;
            return Ok(Ended::Shutdown);
        };
        let ended = self.work(&mut tenure, &shutdown, work).await;
        let give_back = match &ended {
            Ok(Clean { settled: true, .. }) => Some(self.participant.timing.request_timeout()),
            Ok(Clean { settled: false, .. }) => {
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
        ended.map(|clean| clean.ended)
    }

    /// Runs the work until the work ends, the lock is lost, or shutdown. The work has been dropped when this
    /// function returns.
    async fn work<F: Future>(
        &self,
        tenure: &mut Tenure<'_>,
        shutdown: &CancellationToken,
        work: impl FnOnce(Permit) -> F,
    ) -> Result<Clean<F::Output>, Lost> {
        let issuer = tenure.issuer();
        let permit = issuer.permit();
        // On the heap: the work of a manager is large, and this future is part of the caller's future.
        let mut guarded = Box::pin(permit.guard(work(permit.clone())));
        let mut keeping = Box::pin(async {
            // The Event must not delay a renewal or a loss.
            let telling = async {
                self.announcer.became_leader().await;
                pending::<Lost>().await
            };
            tokio::select! {
                lost = tenure.keep() => lost,
                never = telling => never,
            }
        });
        let mut settling = issuer.settling();
        let outcome = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(Ended::Shutdown),
            done = &mut guarded => match done {
                Ok(output) => Ok(Ended::Done(output)),
                // The renewal loop returns the reason of the loss.
                Err(_) => Err(keeping.as_mut().await),
            },
            lost = &mut keeping => Err(lost),
            never = settling.go_on() => match never {},
        };
        let ended = match outcome {
            Ok(outcome) => {
                // From here on no request of the work leaves, including requests from destructors.
                issuer.close();
                drop(guarded);
                let settled = tokio::select! {
                    biased;
                    () = ready(()), if self.participant.breaks(Mutation::NoDrain) => Ok(true),
                    lost = &mut keeping => Err(lost),
                    settled = settling.settle() => Ok(settled),
                };
                match settled {
                    // After a stop of the process, the end of the work may be polled before the loss.
                    Ok(_) if !issuer.in_time() => Err(keeping.await),
                    settled => settled.map(|settled| Clean {
                        ended: outcome,
                        settled,
                    }),
                }
            }
            Err(lost) => Err(lost),
        };
        issuer.end(if ended.is_ok() {
            "it was given back"
        } else {
            "it was lost"
        });
        ended
    }

    /// `namespace/name` of the lock.
    #[must_use]
    pub fn lock(&self) -> &str {
        self.participant.lock()
    }

    /// The name of the lock: the label of the lock's metrics.
    #[must_use]
    pub fn name(&self) -> &str {
        self.participant.name()
    }

    /// The identity of this candidate.
    #[must_use]
    pub fn identity(&self) -> &str {
        self.participant.identity()
    }
}
