//! Error classes. An error says who has to act: nobody yet (`Transient`, `NotReady`), the user (`Config`),
//! the other seed (`NotOwner`), or us (`Bug`).

use std::time::Duration;

use api::meta::ErrorCode;
use permit::NotPermitted;

/// The result of a step.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a step did not succeed. Every message is a sentence that an operator can act on and holds no secret.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Something outside failed and may succeed when it is tried again: a request, a connection.
    #[error("{0}")]
    Transient(String),

    /// Nothing failed; something that is awaited has not happened yet. Not counted as a failure.
    #[error("{why}")]
    NotReady {
        /// When to look again at the latest; a watch may wake the controller earlier.
        after: Duration,
        /// What is awaited.
        why: String,
    },

    /// The configuration or the infrastructure is in the way. Someone has to change something; the flow goes
    /// on by itself afterwards.
    #[error("{message}")]
    Config {
        /// Codes for `lastErrors[].codes`.
        codes: Vec<ErrorCode>,
        /// What is wrong and what to do.
        message: String,
    },

    /// This seed does not own the shoot (R17-60, RX-41). Not counted as a failure: another seed acts.
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

    /// Something is awaited; look again after `after`.
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

    /// The same error with what was being done in front.
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

/// The right to act was lost: another one acts, or may do so.
impl From<NotPermitted> for Error {
    fn from(refused: NotPermitted) -> Self {
        Self::NotOwner(refused.to_string())
    }
}

/// The refusal of a fenced client, however deep it is in the error of a library that used the client.
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
    /// An invalid object is ours to mend, a lost right is what it is, everything else may pass.
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

/// Adds what was being done to an error.
pub trait Explain<T> {
    /// The same result with what was being done in front of the error.
    fn context(self, doing: impl std::fmt::Display) -> Result<T>;
}

impl<T, E: Into<Error>> Explain<T> for std::result::Result<T, E> {
    fn context(self, doing: impl std::fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().context(doing))
    }
}
