//! What changes something outside, and how it outlives its caller (`under_way` says why it must).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;

use crate::grant::NotPermitted;
use crate::permit::Permit;
use crate::under_way::One;

impl Permit {
    /// Runs what changes something outside, while it is permitted. From its first step on it is counted: a
    /// clean end of the permit waits until it is done, also where its caller was dropped in the middle (for
    /// at most [`crate::FINISH_WITHIN`]). What takes its effect by a request that reads (a final snapshot)
    /// belongs here too. What only reads does not: it changes nothing and is dropped; that includes watches,
    /// which would never end.
    // Boxed here: the compiler does not see through all of it that a caller's future may be sent to another
    // thread.
    pub fn effect<F>(&self, work: F) -> BoxFuture<'static, Result<F::Output, NotPermitted>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let permit = self.clone();
        Box::pin(async move { permit.guard(Counted::new(permit.clone(), work)).await })
    }
}

/// An effect as its caller sees it: to be polled under a guard. When the caller drops it after it was begun,
/// it is kept for as long as the right is there. Of several rights that were and-ed, the issuer of the first
/// one keeps it.
struct Counted<F: Future<Output: Send> + Send + 'static> {
    permit: Permit,
    work: Option<Pin<Box<F>>>,
    /// Told to each right: from the first step on.
    begun: Option<Vec<One>>,
}

impl<F: Future<Output: Send> + Send + 'static> Counted<F> {
    fn new(permit: Permit, work: F) -> Self {
        Self {
            permit,
            work: Some(Box::pin(work)),
            begun: None,
        }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.begun.is_none() {
            let grants = self.permit.grants().iter();
            let counted = grants.map(|grant| One::new(&grant.under_way)).collect();
            // Looked at after it was counted: either it is not begun, or the end waits for it. The guard
            // around it tells.
            if !self.permit.is_valid() {
                return Poll::Pending;
            }
            self.begun = Some(counted);
        }
        let Some(work) = &mut self.work else {
            return Poll::Pending;
        };
        let done = work.as_mut().poll(context);
        if done.is_ready() {
            self.work = None;
            self.begun = None;
        }
        done
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for Counted<F> {
    fn drop(&mut self) {
        let (Some(mut work), Some(begun)) = (self.work.take(), self.begun.take()) else {
            return;
        };
        let permit = self.permit.clone();
        let Some(first) = self.permit.grants().first() else {
            return;
        };
        if !first.in_time() {
            return;
        }
        first.under_way.keep(Box::pin(async move {
            let _begun = begun;
            // The clock before each step here too: of the other rights the first one's issuer knows nothing.
            // What may not go on is not done either.
            let finished = poll_fn(|context| {
                if permit.in_time() {
                    work.as_mut().poll(context).map(drop)
                } else {
                    Poll::Pending
                }
            });
            finished.await;
        }));
    }
}
