//! Runs the tasks of a connection inside the task of the connection: all of them end with the permit, and a
//! request wakes no second thread.

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use hyper::rt::Executor;
use std::pin::Pin;
use std::task::{Context, Poll};

type Task = BoxFuture<'static, ()>;

/// Adds tasks to [`ConnectionTasks`].
#[derive(Clone)]
pub(super) struct TaskAdder(UnboundedSender<Task>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for TaskAdder {
    fn execute(&self, task: F) {
        // After the end of the connection the task is dropped.
        let _ = self.0.unbounded_send(task.boxed());
    }
}

/// The tasks of a connection. Ends when no task runs and no [`TaskAdder`] is left.
pub(super) struct ConnectionTasks {
    added: UnboundedReceiver<Task>,
    running: FuturesUnordered<Task>,
}

impl ConnectionTasks {
    pub(super) fn new() -> (TaskAdder, Self) {
        let (sender, added) = unbounded();
        let running = FuturesUnordered::new();
        (TaskAdder(sender), Self { added, running })
    }
}

impl Future for ConnectionTasks {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            while let Poll::Ready(Some(())) = self.running.poll_next_unpin(context) {}
            // A task may have added tasks.
            match self.added.poll_next_unpin(context) {
                Poll::Ready(Some(task)) => self.running.push(task),
                Poll::Ready(None) if self.running.is_empty() => return Poll::Ready(()),
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }
}
