//! Failing midway, for any work: the future is dropped at the n-th await, as by a stop or crash of the
//! process.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Work that is polled a bounded number of times and then dropped.
pub struct Interrupted<F> {
    work: Option<Pin<Box<F>>>,
    polls: usize,
}

/// Polls `work` at most `polls` times. `None`: the work was not complete by then.
pub fn interrupted<F: Future>(work: F, polls: usize) -> Interrupted<F> {
    Interrupted {
        work: Some(Box::pin(work)),
        polls,
    }
}

impl<F: Future> Future for Interrupted<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = self.work.as_mut() else {
            return Poll::Ready(None);
        };
        match work.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.polls <= 1 => {
                self.work = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                self.polls -= 1;
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::interrupted;

    async fn three_awaits() -> u8 {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        7
    }

    #[tokio::test]
    async fn work_is_dropped_at_the_nth_await() {
        assert_eq!(interrupted(three_awaits(), 1).await, None);
        assert_eq!(interrupted(three_awaits(), 3).await, None);
        assert_eq!(interrupted(three_awaits(), 4).await, Some(7));
    }
}
