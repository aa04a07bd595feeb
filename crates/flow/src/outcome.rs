//! What a run of a flow ended with.

use std::fmt;
use std::time::Duration;

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tasks that ran and succeeded, in the order in which they ended.
    pub succeeded: Vec<&'static str>,
    /// Tasks that were skipped by their own condition.
    pub skipped: Vec<&'static str>,
    /// Tasks that did not run because a task before them failed, in the order of the graph. Empty after a
    /// success.
    pub not_run: Vec<&'static str>,
}

/// Why a task failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause<E> {
    /// Its work ended with an error that is not worth another attempt, or there was no attempt left.
    Error(E),
    /// Its time was over.
    TimedOut {
        /// The limit.
        after: Duration,
        /// The error of the last attempt that ended, if one did.
        last: Option<E>,
    },
}

/// One failed task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFailure<E> {
    /// Its name.
    pub task: &'static str,
    /// Why.
    pub cause: Cause<E>,
    /// How often it was tried.
    pub attempts: u32,
}

impl<E> TaskFailure<E> {
    /// The error of the last attempt. None only if the task's time was over during its first attempt.
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
            Cause::Error(error) => write!(f, "{error}"),
            Cause::TimedOut {
                after,
                last: Some(error),
            } => {
                write!(
                    f,
                    "not done after {after:?} and {} attempts, the last error was: {error}",
                    self.attempts
                )
            }
            Cause::TimedOut { after, last: None } => write!(f, "not done after {after:?}"),
        }
    }
}

/// One or more tasks failed; all that do not depend on them were still run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowError<E> {
    /// Name of the flow.
    pub flow: &'static str,
    /// The failed tasks, in the order in which they failed. Never empty.
    pub failures: Vec<TaskFailure<E>>,
    /// What was done all the same: errors of an earlier run under these names are over.
    pub report: Report,
}

impl<E: fmt::Display> fmt::Display for FlowError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow {:?}: ", self.flow)?;
        for (i, failure) in self.failures.iter().enumerate() {
            write!(f, "{}{failure}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl<E: fmt::Display + fmt::Debug> std::error::Error for FlowError<E> {}
