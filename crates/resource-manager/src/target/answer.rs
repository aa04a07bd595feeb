//! Why a request brought nothing.

use std::error::Error;

use kube::core::Status;
use permit::NotPermitted;

/// Why a request brought nothing.
#[derive(Clone, Debug)]
pub enum Refused {
    /// The API server was not reached, or said nothing.
    Away(String),
    /// It answered, and not as wanted.
    Api(Box<Status>),
    /// We may not act any more.
    Lost(NotPermitted),
    /// What it said cannot be read.
    Unreadable,
}

impl Refused {
    /// Whether there is no such object, or no such kind.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api(status) if status.code == 404)
    }

    /// Whether the object changed in between, or is another one.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(status) if status.code == 409)
    }

    /// Whether the object itself is at fault.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Api(status) if status.code == 422)
    }

    /// Whether nothing but `immutable` of a ConfigMap or a Secret stands against the change.
    #[must_use]
    pub fn is_immutable(&self) -> bool {
        let Self::Api(status) = self else { return false };
        let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
        let by_immutable = |message: &str| message.contains("field is immutable when `immutable` is set");
        self.is_invalid() && !causes.is_empty() && causes.iter().all(|cause| by_immutable(&cause.message))
    }
}

impl From<kube::Error> for Refused {
    fn from(error: kube::Error) -> Self {
        if let Some(lost) = runtime::error::refusal(&error) {
            return Self::Lost(lost.clone());
        }
        match error {
            kube::Error::Api(status) => Self::Api(status),
            // An answer that is none of this kind may quote what it is.
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) | kube::Error::Discovery(_) => {
                Self::Unreadable
            }
            other => Self::Away(innermost(&other)),
        }
    }
}

/// The cause of all: libraries wrap it in their own words.
fn innermost(error: &dyn Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
