//! The result of a flow's run.

use std::fmt;
use std::time::Duration;

/// The finished, skipped and missing tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tasks that ran and succeeded, in the order of the ends.
    pub succeeded: Vec<&'static str>,
    /// Tasks that were skipped by a condition.
    pub skipped: Vec<&'static str>,
    /// Tasks that did not run because a task before them failed, in the order of the graph. Empty after a
    /// success.
    pub not_run: Vec<&'static str>,
}

/// The reason of a task's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause<E> {
    /// The work ended with an error that is not retried, or no attempt was left.
    Error(E),
    /// The time limit has passed.
    TimedOut {
        /// The limit.
        after: Duration,
        /// The error of the last finished attempt, if any attempt finished.
        last: Option<E>,
    },
}

/// A failed task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFailure<E> {
    /// Name of the task.
    pub task: &'static str,
    /// Reason of the failure.
    pub cause: Cause<E>,
    /// Number of attempts.
    pub attempts: u32,
}

impl<E> TaskFailure<E> {
    /// The error of the last attempt. `None` only if the time limit passed during the first attempt.
    pub fn error(&self) -> Option<&E> {
        match &self.cause {
            Cause::Error(error) => Some(error),
            Cause::TimedOut { last, .. } => last.as_ref(),
        }
    }
}

impl<E: fmt::Display> fmt::Display for TaskFailure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {:?} failed: ", self.task)?;
        match &self.cause {
            // The formatter is passed on: `{:#}` of a failure is `{:#}` of the error.
            Cause::Error(error) => fmt::Display::fmt(error, f),
            Cause::TimedOut {
                after,
                last: Some(error),
            } => {
                let attempts = self.attempts;
                write!(
                    f,
                    "not done after {after:?} and {attempts} attempts, the last error was: "
                )?;
                fmt::Display::fmt(error, f)
            }
            Cause::TimedOut { after, last: None } => write!(f, "not done after {after:?}"),
        }
    }
}

/// At least one task failed; all independent tasks were still run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowError<E> {
    /// Name of the flow.
    pub flow: &'static str,
    /// The failed tasks, in the order of the failures. Never empty.
    pub failures: Vec<TaskFailure<E>>,
    /// The finished tasks: errors of an earlier run under these names are solved.
    pub report: Report,
}

impl<E: fmt::Display> fmt::Display for FlowError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow {:?}: ", self.flow)?;
        for (i, failure) in self.failures.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { "; " })?;
            fmt::Display::fmt(failure, f)?;
        }
        Ok(())
    }
}

impl<E: fmt::Display + fmt::Debug> std::error::Error for FlowError<E> {}
