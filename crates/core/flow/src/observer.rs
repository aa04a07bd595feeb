//! A hook after the end of each task, for records outside of this crate, such as the spans of a trace.

use std::time::Duration;

use crate::outcome::{Cause, TaskFailure};

/// The end of a task that has run.
#[derive(Debug)]
pub struct TaskEnd<'t, E> {
    /// Name of the task.
    pub task: &'static str,
    /// Time from the start of the task to the end, with all attempts and pauses.
    pub took: Duration,
    /// Number of attempts.
    pub attempts: u32,
    /// The failure; `None` after a success.
    pub failure: Option<&'t TaskFailure<E>>,
}

impl<E> TaskEnd<'_, E> {
    /// `succeeded`, `failed` (a final error) or `timed_out` (the time limit has passed).
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match self.failure.map(|failure| &failure.cause) {
            None => "succeeded",
            Some(Cause::Error(_)) => "failed",
            Some(Cause::TimedOut { .. }) => "timed_out",
        }
    }
}

/// Called after the end of each task.
pub(crate) type TaskObserver<E> = Box<dyn Fn(&TaskEnd<'_, E>) + Send + Sync>;
