//! Error classes. The class of an error names the party that has to act:
//! - `Transient`, `NotReady`: no party, a retry is enough.
//! - `Config`: the user.
//! - `NotOwner`: the seed that owns the shoot.
//! - `Bug`: the developers.

use std::{error::Error as StdError, fmt, time::Duration};

use api::meta::ErrorCode;
use permit::NotPermitted;

pub use crate::error_message::{ErrorMessage, with_causes};

/// The result of a step.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a step did not succeed. Every message is a sentence that an operator can act on and holds no secret.
///
/// `{}` prints the message, for statuses and Events. `{:#}` also prints the causes that the message does not
/// describe, for logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// An outside system failed, and a retry may succeed: a request, a connection.
    Transient(ErrorMessage),

    /// No failure: an awaited event has not happened yet. Not counted as a failure.
    NotReady {
        /// The requeue interval at the latest; a watch may wake the controller earlier.
        after: Duration,
        /// The awaited event.
        why: ErrorMessage,
    },

    /// The configuration or the infrastructure blocks the work. A person has to change the configuration or
    /// the infrastructure; the flow then continues without further action.
    Config {
        /// Codes for `lastErrors[].codes`.
        codes: Vec<ErrorCode>,
        /// The fault and the remedy.
        message: ErrorMessage,
    },

    /// This seed does not own the shoot (R17-60, RX-41). Not counted as a failure: the owner seed acts.
    NotOwner(ErrorMessage),

    /// An assumption of ours does not hold.
    Bug(ErrorMessage),
}

impl Error {
    /// A transient error with a sentence.
    pub fn transient(message: impl Into<ErrorMessage>) -> Self {
        Self::Transient(message.into())
    }

    /// An awaited event has not happened yet; requeue after `after`.
    pub fn not_ready(after: Duration, why: impl Into<ErrorMessage>) -> Self {
        Self::NotReady {
            after,
            why: why.into(),
        }
    }

    /// A configuration problem with one code.
    pub fn config(code: ErrorCode, message: impl Into<ErrorMessage>) -> Self {
        Self::Config {
            codes: vec![code],
            message: message.into(),
        }
    }

    /// A different seed owns the shoot, or this process has lost the right to act.
    pub fn not_owner(message: impl Into<ErrorMessage>) -> Self {
        Self::NotOwner(message.into())
    }

    /// An assumption of ours does not hold.
    pub fn bug(message: impl Into<ErrorMessage>) -> Self {
        Self::Bug(message.into())
    }

    /// The codes for `lastErrors[].codes`; empty for most classes.
    #[must_use]
    pub fn codes(&self) -> &[ErrorCode] {
        match self {
            Self::Config { codes, .. } => codes,
            _ => &[],
        }
    }

    /// Whether trying again within the same run may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Transient(_) | Self::NotReady { .. })
    }

    /// Whether this is a failure for metrics, events and back-off.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        !matches!(self, Self::NotReady { .. } | Self::NotOwner(_))
    }

    /// A short word for metrics and events.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Transient(_) => "Transient",
            Self::NotReady { .. } => "NotReady",
            Self::Config { .. } => "Config",
            Self::NotOwner(_) => "NotOwner",
            Self::Bug(_) => "Bug",
        }
    }

    /// The same error with `doing`, the failed action, in front of the message.
    #[must_use]
    pub fn context(self, doing: impl fmt::Display) -> Self {
        self.map_message(|message| message.context(doing))
    }

    /// The same error with a colon and the text of `source` after the message. Keeps `source` for the logs,
    /// and replaces an earlier source.
    #[must_use]
    pub fn caused_by(self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.map_message(|message| message.caused_by(source))
    }

    fn map_message(self, change: impl FnOnce(ErrorMessage) -> ErrorMessage) -> Self {
        match self {
            Self::Transient(message) => Self::Transient(change(message)),
            Self::NotReady { after, why } => Self::NotReady {
                after,
                why: change(why),
            },
            Self::Config { codes, message } => Self::Config {
                codes,
                message: change(message),
            },
            Self::NotOwner(message) => Self::NotOwner(change(message)),
            Self::Bug(message) => Self::Bug(change(message)),
        }
    }

    fn message(&self) -> &ErrorMessage {
        match self {
            Self::Transient(message)
            | Self::NotReady { why: message, .. }
            | Self::Config { message, .. }
            | Self::NotOwner(message)
            | Self::Bug(message) => message,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return f.write_str(&with_causes(self));
        }
        if let Self::Bug(_) = self {
            f.write_str("internal error, please report it: ")?;
        }
        f.write_str(self.message())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.message().source()
    }
}

/// The permit ended: a different process acts, or may act.
impl From<NotPermitted> for Error {
    fn from(refused: NotPermitted) -> Self {
        Self::NotOwner(ErrorMessage::from_source(refused))
    }
}

/// The refusal of a fenced client, at any depth in the error of a library that used the client.
#[must_use]
pub fn refusal<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a NotPermitted> {
    let mut found = Some(error);
    while let Some(error) = found {
        if let Some(refused) = error.downcast_ref() {
            return Some(refused);
        }
        found = error.source();
    }
    None
}

/// Phrases of the refusals by etcd, and by the connection to etcd: the API server repeats these phrases.
const SIZE_REFUSALS: [&str; 3] = [
    "request is too large",
    "trying to send message larger than max",
    "received message larger than max",
];

/// Whether an API server, or the etcd of an API server, has refused a write for the size of the object. A
/// smaller write may succeed.
#[must_use]
pub fn is_refused_for_size(error: &Error) -> bool {
    is_answered_with(error, |code, message| {
        let names_size = |phrase: &&str| message.contains(*phrase);
        code == 413 || SIZE_REFUSALS.iter().any(names_size)
    })
}

/// The answer to a JSON patch whose tests fail on the present object, also with code 422.
const FAILED_PATCH: &str = "the server rejected our request due to an error in our request";

/// Whether an API server has refused a write for the content: by the schema, a rule or a right. The same
/// write fails again. A test of a JSON patch that fails after a concurrent write is no such refusal.
#[must_use]
pub fn is_refused_for_content(error: &Error) -> bool {
    is_answered_with(error, |code, message| {
        matches!(code, 403 | 422) && !message.contains(FAILED_PATCH)
    })
}

/// Whether the cause is an answer of an API server whose code and message fit.
fn is_answered_with(error: &Error, fits: impl Fn(u16, &str) -> bool) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(kube::Error::Api(answer)) = error.downcast_ref() {
            return fits(answer.code, &answer.message);
        }
        cause = error.source();
    }
    false
}

impl From<kube::Error> for Error {
    /// An invalid object needs a fix by the user (`Config`), a lost permit is `NotOwner`, every further error
    /// may be transient.
    fn from(error: kube::Error) -> Self {
        if let Some(refused) = refusal(&error) {
            return refused.clone().into();
        }
        match &error {
            kube::Error::Api(status) if status.is_invalid() => Self::Config {
                codes: vec![ErrorCode::ErrConfigurationProblem],
                message: ErrorMessage::with_source(status.message.clone(), error),
            },
            kube::Error::Api(status) => {
                let text = format!("the API server answered: {}", status.message);
                Self::Transient(ErrorMessage::with_source(text, error))
            }
            _ => Self::Transient(ErrorMessage::from_source(error)),
        }
    }
}

impl From<kube::runtime::wait::Error> for Error {
    fn from(error: kube::runtime::wait::Error) -> Self {
        Self::Transient(ErrorMessage::from_source(error))
    }
}

/// Adds the failed action to an error.
pub trait Explain<T> {
    /// The same result with the failed action in front of the error.
    fn context(self, doing: impl fmt::Display) -> Result<T>;
}

impl<T, E: Into<Error>> Explain<T> for std::result::Result<T, E> {
    fn context(self, doing: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().context(doing))
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn refused(code: u16, message: &str) -> Error {
        let status = Status::failure(message, "").with_code(code);
        Error::from(kube::Error::Api(status.boxed())).context("could not write the status of the Shoot")
    }

    /// As a kube-apiserver repeats the refusals of etcd, of the connection to etcd, and of the own bound of a
    /// request.
    #[test]
    fn a_refusal_for_the_size_of_an_object_is_recognised() {
        for (code, message) in [
            (500, "etcdserver: request is too large"),
            (
                500,
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097302 vs. 2097152)",
            ),
            (
                500,
                "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (2097302 vs. 2097152)",
            ),
            (413, "Request entity too large: limit is 3145728"),
        ] {
            assert!(is_refused_for_size(&refused(code, message)), "{message}");
        }
        for (code, message) in [
            (500, "etcdserver: request timed out"),
            (422, "spec.region: Too long: may not be more than 63 bytes"),
            (409, "the object has been modified"),
        ] {
            assert!(!is_refused_for_size(&refused(code, message)), "{message}");
        }
        assert!(!is_refused_for_size(&Error::transient("request is too large")));
    }

    #[test]
    fn a_refusal_for_the_content_of_a_write_is_recognised() {
        for (code, expected) in [(403, true), (422, true), (409, false), (429, false), (500, false)] {
            assert_eq!(is_refused_for_content(&refused(code, "m")), expected, "{code}");
        }
        assert!(!is_refused_for_content(&refused(422, FAILED_PATCH)));
        assert!(!is_refused_for_content(&Error::transient("m")));
    }
}
