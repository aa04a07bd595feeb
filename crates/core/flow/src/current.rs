//! The name of the running task, for code that the task calls.

use std::future::Future;

tokio::task_local! {
    static CURRENT: &'static str;
}

/// The name of the running task; `None` outside of all tasks. A graph calls the retry predicate inside the
/// task as well.
#[must_use]
pub fn current_task() -> Option<&'static str> {
    CURRENT.try_with(|name| *name).ok()
}

/// Runs work on behalf of a task.
pub(crate) fn on_behalf_of<F: Future>(task: &'static str, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(task, work)
}
