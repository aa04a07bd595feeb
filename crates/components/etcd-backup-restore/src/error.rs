//! Error classes on which a caller can act.
//!
//! Every error prints as `<Class>: <sentence with the remedy>`. The HTTP interface and its callers decide by
//! the word of the class (the gardenlet maps `credentials` to `ERR_INFRA_UNAUTHENTICATED`).

use permit::NotPermitted;
use permit_object_store::{WebIdentityCause, WebIdentityError};
pub use sidecar_protocol::ErrorClass as Class;

/// Result of every fallible function in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error with its class.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {message}", class.prefix())]
pub struct Error {
    /// The class, which determines the required action.
    pub class: Class,
    /// Failure and remedy; no secrets.
    pub message: String,
}

impl Error {
    /// An error of a class.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
        }
    }

    /// A file operation below the data directory's volume failed.
    #[must_use]
    pub fn file(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::new(
            Class::DataDirectory,
            format!("cannot {what} {}: {error}", path.display()),
        )
    }

    /// Classifies an error of the object store.
    #[must_use]
    pub fn store(doing: &str, error: &object_store::Error) -> Self {
        use object_store::Error as E;
        if let Some(refused) = not_permitted(error) {
            return refused.into();
        }
        if let Some(failure) = WebIdentityError::find(error) {
            let class = match failure.cause() {
                WebIdentityCause::Token | WebIdentityCause::Denied => Class::Credentials,
                WebIdentityCause::Secret => Class::Configuration,
                WebIdentityCause::Unavailable => Class::Store,
            };
            return Self::new(class, format!("cannot sign requests while {doing}: {failure}"));
        }
        let text = error.to_string();
        if matches!(error, E::PermissionDenied { .. } | E::Unauthenticated { .. }) || refuses(&text) {
            let hint = "put working ones into the backup Secret";
            let what = format!("the object store refuses the credentials while {doing}; {hint}: {text}");
            return Self::new(Class::Credentials, what);
        }
        match error {
            E::NotFound { .. } => Self::new(
                Class::Store,
                format!("the object store does not know the bucket or object while {doing}: {text}"),
            ),
            _ => Self::new(
                Class::Store,
                format!("the object store failed while {doing}: {text}"),
            ),
        }
    }
}

impl From<NotPermitted> for Error {
    fn from(refused: NotPermitted) -> Self {
        Self::new(Class::NotPermitted, refused.to_string())
    }
}

/// The loss of the right to act, if the error has this cause.
pub(crate) fn not_permitted(error: &(dyn std::error::Error + 'static)) -> Option<NotPermitted> {
    std::iter::successors(Some(error), |error| error.source())
        .find_map(|error| error.downcast_ref::<NotPermitted>())
        .cloned()
}

/// Listings and the parts of an upload fail with an error that has no kind, so the answer's text decides.
fn refuses(text: &str) -> bool {
    [
        "status code: 401",
        "status code: 403",
        "<Code>ExpiredToken",
        "<Code>InvalidAccessKeyId",
        "<Code>SignatureDoesNotMatch",
    ]
    .iter()
    .any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_kind_is_classified_by_its_text() {
        let answered = |what: &str| object_store::Error::Generic {
            store: "S3",
            source: what.into(),
        };
        let class = |what: &str| Error::store("listing", &answered(what)).class;
        assert_eq!(
            class("Server returned non-2xx status code: 403 Forbidden: ..."),
            Class::Credentials
        );
        assert_eq!(
            class("400 Bad Request: <Error><Code>ExpiredToken</Code></Error>"),
            Class::Credentials
        );
        assert_eq!(class("Server returned non-2xx status code: 500"), Class::Store);
    }
}
