//! What can go wrong, in classes a caller can act on.
//!
//! Every error prints as `<Class>: <sentence that says what to do>`; the word of the class is what the HTTP interface
//! and the callers above it (the gardenlet maps `credentials` to `ERR_INFRA_UNAUTHENTICATED`) decide by.

use http::StatusCode;

/// Result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Class of an error: who has to do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A flag or a mounted file is wrong.
    Configuration,
    /// The object store refuses the credentials.
    Credentials,
    /// The object store does not answer, or the bucket does not exist.
    Store,
    /// An object does not hold what its hash promises.
    SnapshotCorrupt,
    /// The chain has a hole, or there is nothing to restore from.
    SnapshotMissing,
    /// etcd does not answer.
    Etcd,
    /// etcd no longer has the history that a delta snapshot needs; a full one has to be taken.
    Compacted,
    /// The data directory or its volume.
    DataDirectory,
    /// `etcd` or `etcdutl` could not be run, or refused.
    Tool,
    /// A final snapshot was taken; none follows until the process is started again.
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
            Self::Etcd => "etcd",
            Self::Compacted => "compacted",
            Self::DataDirectory => "data-directory",
            Self::Tool => "tool",
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
            Self::Etcd => "EtcdUnavailable",
            Self::Compacted => "EtcdCompacted",
            Self::DataDirectory => "DataDirectory",
            Self::Tool => "Tool",
            Self::Finished => "FinalSnapshotTaken",
            Self::Stopping => "Stopping",
        }
    }

    /// Status of the HTTP answer. 502 means "the store, not us", 503 "ask again".
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Credentials | Self::Store => StatusCode::BAD_GATEWAY,
            Self::Etcd | Self::Compacted | Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            Self::Finished => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// An error with its class.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {message}", class.prefix())]
pub struct Error {
    /// Who has to act.
    pub class: Class,
    /// What to do; no secrets.
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

    /// Classifies what the object store answered.
    #[must_use]
    pub fn store(doing: &str, error: &object_store::Error) -> Self {
        use object_store::Error as E;
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
