//! Error classes. The class of an error names the party that has to act:
//! - `Transient`, `NotReady`: no party, a retry is enough.
//! - `Config`: the user.
//! - `NotOwner`: the seed that owns the shoot.
//! - `Bug`: the developers.

use std::time::Duration;

use api::meta::ErrorCode;
use permit::NotPermitted;

/// The result of a step.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a step did not succeed. Every message is a sentence that an operator can act on and holds no secret.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// An outside system failed, and a retry may succeed: a request, a connection.
    #[error("{0}")]
    Transient(String),

    /// No failure: an awaited event has not happened yet. Not counted as a failure.
    #[error("{why}")]
    NotReady {
        /// The requeue interval at the latest; a watch may wake the controller earlier.
        after: Duration,
        /// The awaited event.
        why: String,
    },

    /// The configuration or the infrastructure blocks the work. A person has to change the configuration or
    /// the infrastructure; the flow then continues without further action.
    #[error("{message}")]
    Config {
        /// Codes for `lastErrors[].codes`.
        codes: Vec<ErrorCode>,
        /// The fault and the remedy.
        message: String,
    },

    /// This seed does not own the shoot (R17-60, RX-41). Not counted as a failure: the owner seed acts.
    #[error("{0}")]
    NotOwner(String),

    /// An assumption of ours does not hold.
    #[error("internal error, please report it: {0}")]
    Bug(String),
}

impl Error {
    /// A transient error with a sentence.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::Transient(message.into())
    }

    /// An awaited event has not happened yet; requeue after `after`.
    pub fn not_ready(after: Duration, why: impl Into<String>) -> Self {
        Self::NotReady {
            after,
            why: why.into(),
        }
    }

    /// A configuration problem with one code.
    pub fn config(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Config {
            codes: vec![code],
            message: message.into(),
        }
    }

    /// An assumption of ours does not hold.
    pub fn bug(message: impl Into<String>) -> Self {
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
    pub fn context(self, doing: impl std::fmt::Display) -> Self {
        match self {
            Self::Transient(m) => Self::Transient(format!("{doing}: {m}")),
            Self::NotReady { after, why } => Self::NotReady {
                after,
                why: format!("{doing}: {why}"),
            },
            Self::Config { codes, message } => Self::Config {
                codes,
                message: format!("{doing}: {message}"),
            },
            Self::NotOwner(m) => Self::NotOwner(format!("{doing}: {m}")),
            Self::Bug(m) => Self::Bug(format!("{doing}: {m}")),
        }
    }
}

/// The permit ended: a different process acts, or may act.
impl From<NotPermitted> for Error {
    fn from(refused: NotPermitted) -> Self {
        Self::NotOwner(refused.to_string())
    }
}

/// The refusal of a fenced client, at any depth in the error of a library that used the client.
#[must_use]
pub fn refusal<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a NotPermitted> {
    let mut found = Some(error);
    while let Some(error) = found {
        if let Some(refused) = error.downcast_ref() {
            return Some(refused);
        }
        found = error.source();
    }
    None
}

impl From<kube::Error> for Error {
    /// An invalid object needs a fix by the user (`Config`), a lost permit is `NotOwner`, every further error
    /// may be transient.
    fn from(error: kube::Error) -> Self {
        if let Some(refused) = refusal(&error) {
            return refused.clone().into();
        }
        match error {
            kube::Error::Api(status) if status.is_invalid() => Self::Config {
                codes: vec![ErrorCode::ErrConfigurationProblem],
                message: status.message.clone(),
            },
            kube::Error::Api(status) => {
                Self::Transient(format!("the API server answered: {}", status.message))
            }
            other => Self::Transient(other.to_string()),
        }
    }
}

impl From<kube::runtime::wait::Error> for Error {
    fn from(error: kube::runtime::wait::Error) -> Self {
        Self::Transient(error.to_string())
    }
}

/// Adds the failed action to an error.
pub trait Explain<T> {
    /// The same result with the failed action in front of the error.
    fn context(self, doing: impl std::fmt::Display) -> Result<T>;
}

impl<T, E: Into<Error>> Explain<T> for std::result::Result<T, E> {
    fn context(self, doing: impl std::fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().context(doing))
    }
}
