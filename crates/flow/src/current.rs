//! The task on whose behalf the present code runs.

use std::future::Future;

tokio::task_local! {
    static CURRENT: &'static str;
}

/// The name of the task whose work calls this, or `None` outside of all tasks. The retry predicate of a graph
/// is called inside the task as well.
#[must_use]
pub fn current_task() -> Option<&'static str> {
    CURRENT.try_with(|name| *name).ok()
}

/// Runs work on behalf of a task.
pub(crate) fn on_behalf_of<F: Future>(task: &'static str, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(task, work)
}
