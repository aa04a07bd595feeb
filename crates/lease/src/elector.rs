//! `with_lease(future)`: work that runs while a lock is held, and only then.

use std::future::{pending, ready};

use permit::{FINISH_WITHIN, Permit};
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
    /// All its writes were answered.
    settled: bool,
}

/// Elects one of several processes by a Lease, and runs work in the elected one.
pub struct Elector {
    participant: Participant,
    announcer: Announcer,
}

impl Elector {
    /// Asks for nothing yet. `leader_active` of the lock is 0 from now on.
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

    /// With another wall clock. Nothing depends on its being right.
    #[must_use]
    pub fn with_wall_clock(self, wall: WallClock) -> Self {
        Self {
            participant: self.participant.with_wall_clock(wall),
            ..self
        }
    }

    /// Waits for the lock, runs `work` while it is held, and drops it on loss. When the work ends or
    /// `shutdown` is cancelled, the work is dropped first; then its writes that are under way are finished
    /// (for at most 3 s, while the lock is renewed); then the lock is given back, so that the next holder
    /// need not wait. A lock that was lost is not given back, nor is one whose work left a write without an
    /// answer: it runs out.
    ///
    /// The work must be one future that does everything itself: what it detaches would outlive the lock
    /// (invariant 4). Clients that it writes with should carry [`Permit::layer`]: of other writes nothing is
    /// known here. When the future of this function is dropped, the work is dropped and the lock is left to
    /// run out.
    pub async fn with_lease<F: Future>(
        &self,
        shutdown: CancellationToken,
        work: impl FnOnce(Permit) -> F,
    ) -> Result<Ended<F::Output>, Lost> {
        let mut candidate = Candidate::new(&self.participant);
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

    /// Runs the work until it ends, the lock is lost, or shutdown. When this returns the work has been
    /// dropped.
    async fn work<F: Future>(
        &self,
        tenure: &mut Tenure<'_>,
        shutdown: &CancellationToken,
        work: impl FnOnce(Permit) -> F,
    ) -> Result<Clean<F::Output>, Lost> {
        let issuer = tenure.issuer();
        let permit = issuer.permit();
        // On the heap: the work of a manager is large, and this future is part of its caller's.
        let mut guarded = Box::pin(permit.guard(work(permit.clone())));
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
        let mut settling = issuer.settling();
        let outcome = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(Ended::Shutdown),
            done = &mut guarded => match done {
                Ok(output) => Ok(Ended::Done(output)),
                // The renewals say why.
                Err(_) => Err(keeping.as_mut().await),
            },
            lost = &mut keeping => Err(lost),
            never = settling.go_on() => match never {},
        };
        let ended = match outcome {
            Ok(outcome) => {
                // No request of the work leaves from here on, also none that its destructors might send.
                issuer.close();
                drop(guarded);
                let settled = tokio::select! {
                    biased;
                    () = ready(()), if self.participant.breaks(Mutation::NoDrain) => Ok(true),
                    lost = &mut keeping => Err(lost),
                    settled = settling.settle() => Ok(settled),
                };
                match settled {
                    // Of a process that was stopped the end may be seen before the loss.
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

    /// The name of the lock: the label of its metrics.
    #[must_use]
    pub fn name(&self) -> &str {
        self.participant.name()
    }

    /// Who this candidate is.
    #[must_use]
    pub fn identity(&self) -> &str {
        self.participant.identity()
    }
}
