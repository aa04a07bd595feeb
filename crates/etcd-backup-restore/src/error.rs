//! Error classes on which a caller can act.
//!
//! Every error prints as `<Class>: <sentence with the remedy>`. The HTTP interface and its callers decide by
//! the word of the class (the gardenlet maps `credentials` to `ERR_INFRA_UNAUTHENTICATED`).

use http::StatusCode;
use permit::NotPermitted;
use permit_object_store::{WebIdentityCause, WebIdentityError};

/// Result of every fallible function in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Class of an error: determines the process or person that must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A flag or a mounted file is wrong.
    Configuration,
    /// The object store refuses the credentials.
    Credentials,
    /// The object store does not answer, or the bucket does not exist.
    Store,
    /// The content of an object does not match its hash.
    SnapshotCorrupt,
    /// The chain has a hole, or there is no snapshot to restore from.
    SnapshotMissing,
    /// An object looks like a snapshot and cannot be parsed.
    SnapshotUnparsable,
    /// The content of a final snapshot that was read back differs from the written content.
    SnapshotUnverified,
    /// etcd was written to while its final snapshot was taken.
    Overtaken,
    /// A more urgent request came first, or the time was up; repeat the request.
    Interrupted,
    /// The store or the volume belongs to a different ownership epoch.
    OtherEpoch,
    /// etcd does not answer.
    Etcd,
    /// etcd no longer has the history that a delta snapshot needs; a full snapshot is needed.
    Compacted,
    /// An error of the data directory or of its volume.
    DataDirectory,
    /// `etcd` or `etcdutl` could not be run, or failed.
    Tool,
    /// The process does not have the right to act any more.
    NotPermitted,
    /// A final snapshot was taken; no snapshot follows until a request to resume.
    Finished,
    /// The server is going away.
    Stopping,
}

impl Class {
    /// Word in JSON answers and in log fields.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Credentials => "credentials",
            Self::Store => "store",
            Self::SnapshotCorrupt => "snapshot-corrupt",
            Self::SnapshotMissing => "snapshot-missing",
            Self::SnapshotUnparsable => "snapshot-unparsable",
            Self::SnapshotUnverified => "snapshot-unverified",
            Self::Overtaken => "overtaken",
            Self::Interrupted => "interrupted",
            Self::OtherEpoch => "other-epoch",
            Self::Etcd => "etcd",
            Self::Compacted => "compacted",
            Self::DataDirectory => "data-directory",
            Self::Tool => "tool",
            Self::NotPermitted => "not-permitted",
            Self::Finished => "finished",
            Self::Stopping => "stopping",
        }
    }

    /// Prefix of the printed sentence.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Configuration => "Configuration",
            Self::Credentials => "StoreCredentials",
            Self::Store => "StoreUnavailable",
            Self::SnapshotCorrupt => "SnapshotCorrupt",
            Self::SnapshotMissing => "SnapshotMissing",
            Self::SnapshotUnparsable => "SnapshotUnparsable",
            Self::SnapshotUnverified => "SnapshotUnverified",
            Self::Overtaken => "FinalSnapshotOvertaken",
            Self::Interrupted => "Interrupted",
            Self::OtherEpoch => "OtherEpoch",
            Self::Etcd => "EtcdUnavailable",
            Self::Compacted => "EtcdCompacted",
            Self::DataDirectory => "DataDirectory",
            Self::Tool => "Tool",
            Self::NotPermitted => "NotPermitted",
            Self::Finished => "FinalSnapshotTaken",
            Self::Stopping => "Stopping",
        }
    }

    /// Status of the HTTP answer. 502 means "the store, not us", 503 "ask again".
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Credentials | Self::Store => StatusCode::BAD_GATEWAY,
            Self::Etcd | Self::Compacted | Self::Interrupted | Self::NotPermitted | Self::Stopping => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Finished | Self::Overtaken => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

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
        assert_eq!(Class::Credentials.status(), StatusCode::BAD_GATEWAY);
    }
}
