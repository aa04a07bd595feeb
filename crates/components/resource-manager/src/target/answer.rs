//! The reason why a request failed.

use std::error::Error;

use kube::core::Status;
use permit::NotPermitted;

/// The reason why a request failed.
#[derive(Clone, Debug)]
pub enum Refused {
    /// The API server was unreachable, or sent no answer.
    Away(String),
    /// The API server answered with an error.
    Api(Box<Status>),
    /// The permit of this process has ended.
    Lost(NotPermitted),
    /// The answer cannot be parsed.
    Unreadable,
}

impl Refused {
    /// Whether the object or the kind does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api(status) if status.code == 404)
    }

    /// Whether the object has changed in between, or was replaced by a new object.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(status) if status.code == 409)
    }

    /// Whether the object is invalid.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self, Self::Api(status) if status.code == 422)
    }

    /// Whether only `immutable` of a ConfigMap or a Secret prevents the change.
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
            // An error from an unexpected answer may quote the content, so the text is not kept.
            kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) | kube::Error::Discovery(_) => {
                Self::Unreadable
            }
            other => Self::Away(innermost(&other)),
        }
    }
}

/// The innermost cause: libraries wrap the cause in texts of their own.
fn innermost(error: &dyn Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
