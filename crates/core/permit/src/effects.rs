//! Work that changes state outside the process, and outlives the caller (`under_way` states the reason).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;

use crate::grant::NotPermitted;
use crate::permit::Permit;
use crate::under_way::One;

impl Permit {
    /// Runs `work` that changes state outside the process, while permitted. The effect is counted from the
    /// first step on: a clean end of the permit waits until the effect is done (for at most
    /// [`crate::FINISH_WITHIN`]). The wait also covers an effect with a dropped caller. Work with an effect
    /// through a read request (a final snapshot) belongs here too. Pure reads do not: a read is dropped at
    /// the end, and so are watches, which would never end.
    // Boxed here: without the box, the compiler cannot prove that the caller's future is `Send`.
    pub fn effect<F>(&self, work: F) -> BoxFuture<'static, Result<F::Output, NotPermitted>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let permit = self.clone();
        Box::pin(async move { permit.guard(Counted::new(permit.clone(), work)).await })
    }
}

/// An effect, polled by the caller under a guard. If the caller drops an effect that has begun, the effect is
/// kept while the right is valid. With several combined rights, the issuer of the first right keeps the
/// effect.
struct Counted<F: Future<Output: Send> + Send + 'static> {
    permit: Permit,
    work: Option<Pin<Box<F>>>,
    /// The counts at each right, from the first step on.
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
            // Checked after counting: either the effect has not begun, or the end of the right waits for the
            // effect. The guard around this future reports the refusal.
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
            // Check all rights before each step here too: the issuer of the first right does not know the
            // other rights. After the end of any right the effect takes no step.
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
