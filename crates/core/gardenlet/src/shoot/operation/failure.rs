//! The failure of an operation: the errors for the status, and the error whose class decides about the next
//! attempt.

use api::meta::LastError;
use flow::{Cause, FlowError, TaskFailure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use placement::last_errors;
use runtime::{Error, ErrorMessage, clock};

/// The progress of a failed operation, and the errors.
pub(crate) struct Failure {
    /// Percent.
    pub(crate) progress: i32,
    /// At most one error for each task.
    pub(crate) errors: Vec<LastError>,
    /// The error whose class decides about the next attempt.
    pub(crate) error: Error,
    /// The text of an ownership loss: this epoch has no next attempt.
    pub(crate) lost: Option<String>,
}

/// A failure before or after the flow.
pub(crate) fn outside(task: &str, error: Error) -> Failure {
    Failure {
        progress: 0,
        errors: vec![single_error(task, &error, &clock::now_k8s())],
        error,
        lost: None,
    }
}

/// The failure of a flow that reached this percentage.
pub(crate) fn from_flow(error: &FlowError<Error>, progress: i32) -> Failure {
    let errors = flow_errors(error, &clock::now_k8s());
    Failure {
        progress,
        errors,
        error: class_of(error),
        lost: None,
    }
}

/// The errors of a flow in the form of the API: an error per task, with the name of the task and the error
/// codes.
#[must_use]
pub(crate) fn flow_errors(error: &FlowError<Error>, now: &Time) -> Vec<LastError> {
    error
        .failures
        .iter()
        .map(|failure| {
            let sentence = match &failure.cause {
                Cause::Error(error) => error.to_string(),
                Cause::TimedOut {
                    after,
                    last: Some(error),
                } => format!("not done after {after:?}: {error}"),
                Cause::TimedOut { after, last: None } => format!("not done after {after:?}"),
            };
            let codes = failure
                .error()
                .map(|error| error.codes().to_vec())
                .unwrap_or_default();
            let description = format!("task \"{}\" failed: {sentence}", failure.task);
            last_errors::new_error(failure.task, &description, codes, now)
        })
        .collect()
}

/// An error outside of any task of a flow. `task`: the step that failed.
#[must_use]
pub(crate) fn single_error(task: &str, error: &Error, now: &Time) -> LastError {
    last_errors::new_error(task, &error.to_string(), error.codes().to_vec(), now)
}

/// The error of a flow, with a class from the errors of the tasks. `NotOwner` precedes all classes.
/// `NotReady` needs that every failed task waits.
pub(crate) fn class_of(error: &FlowError<Error>) -> Error {
    let causes = error.failures.iter().map(|failure| match &failure.cause {
        Cause::Error(error) => Some(error),
        // A task that has waited for its whole time has failed, unless the last attempt has a final error.
        Cause::TimedOut { last, .. } => last.as_ref().filter(|last| !last.is_retryable()),
    });
    let mut waits = None;
    let mut codes = Vec::new();
    let mut all_wait = true;
    for cause in causes {
        match cause {
            Some(Error::NotOwner(why)) => return Error::NotOwner(why.clone()),
            Some(Error::NotReady { after, .. }) => waits = waits.min(Some(*after)).or(Some(*after)),
            Some(Error::Config { codes: more, .. }) => {
                all_wait = false;
                codes.extend_from_slice(more);
            }
            _ => all_wait = false,
        }
    }
    let message = describe(error);
    match waits {
        Some(after) if all_wait => Error::NotReady { after, why: message },
        _ if !codes.is_empty() => Error::Config { codes, message },
        _ => Error::Transient(message),
    }
}

/// Describes all failures, with the first error as the source: logs print the causes of that error.
fn describe(error: &FlowError<Error>) -> ErrorMessage {
    match error.failures.iter().find_map(TaskFailure::error) {
        Some(first) => ErrorMessage::with_source(error.to_string(), first.clone()),
        None => error.to_string().into(),
    }
}
