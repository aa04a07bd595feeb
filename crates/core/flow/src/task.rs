//! A step of a flow: the name, the tasks before it, and the work.

use std::future::Future;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::Retry;

/// The work of a task. Called again for each retry, so each call builds a new future.
pub(crate) type Work<'a, E> = Box<dyn FnMut() -> BoxFuture<'a, Result<(), E>> + Send + 'a>;

/// Names a task that was added to a graph. Only [`crate::Graph::add`] creates an id. Hence a dependency
/// always exists and always points backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId {
    pub(crate) graph: u64,
    pub(crate) index: usize,
}

/// A single id is also a list with a single element, so that `.after(namespace)` needs no brackets.
impl IntoIterator for TaskId {
    type Item = TaskId;
    type IntoIter = std::iter::Once<TaskId>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

/// A task that is not part of a graph yet.
pub struct Task<'a, E> {
    pub(crate) name: &'static str,
    pub(crate) after: Vec<TaskId>,
    pub(crate) skipped: bool,
    pub(crate) retry: Option<Retry>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) expected: Duration,
    pub(crate) work: Work<'a, E>,
}

impl<'a, E> Task<'a, E> {
    /// A task that calls `work` once. Operators see `name` while the task runs, and as task id when the task
    /// fails.
    pub fn new<F, Fut>(name: &'static str, mut work: F) -> Self
    where
        F: FnMut() -> Fut + Send + 'a,
        Fut: Future<Output = Result<(), E>> + Send + 'a,
    {
        let work: Work<'a, E> = Box::new(move || work().boxed());
        Self {
            name,
            after: Vec::new(),
            skipped: false,
            retry: None,
            timeout: None,
            expected: Duration::ZERO,
            work,
        }
    }

    /// The task starts only when each of `tasks` has succeeded or was skipped. Several calls add up.
    #[must_use]
    pub fn after(mut self, tasks: impl IntoIterator<Item = TaskId>) -> Self {
        self.after.extend(tasks);
        self
    }

    /// The task counts as done without a run. Later tasks wait only for the tasks before this task.
    #[must_use]
    pub fn skip_if(mut self, condition: bool) -> Self {
        self.skipped |= condition;
        self
    }

    /// Retries after an error, in place of [`crate::Graph::retry`].
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Limits the task as a whole, including all retries. The shorter of this limit and the limit of the
    /// retry counts.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }
}

impl<E> std::fmt::Debug for Task<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task")
            .field("name", &self.name)
            .field("after", &self.after.iter().map(|id| id.index).collect::<Vec<_>>())
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}
