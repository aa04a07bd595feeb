//! The message of an error, with the cause. Users see the message; logs also print the causes of the cause.

use std::{error::Error as StdError, fmt, ops::Deref, sync::Arc};

/// A message for users, and the error that caused the failure, if an error did.
///
/// The message describes the cause, so `Display` prints the message only. Messages are equal if the texts are
/// equal, because errors of libraries cannot be compared.
#[derive(Clone, Debug)]
pub struct ErrorMessage {
    text: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl ErrorMessage {
    /// A message that already describes `source`.
    #[must_use]
    pub fn with_source(text: impl Into<String>, source: impl StdError + Send + Sync + 'static) -> Self {
        Self {
            text: text.into(),
            source: Some(Arc::new(source)),
        }
    }

    /// The text of `source` as the message.
    #[must_use]
    pub fn from_source(source: impl StdError + Send + Sync + 'static) -> Self {
        Self::with_source(source.to_string(), source)
    }

    /// The same message, followed by a colon and the text of `source`. Replaces an earlier source.
    #[must_use]
    pub fn caused_by(self, source: impl StdError + Send + Sync + 'static) -> Self {
        Self::with_source(format!("{self}: {source}"), source)
    }

    /// The same message and source, with `doing`, the failed action, in front of the message.
    pub(crate) fn context(mut self, doing: impl fmt::Display) -> Self {
        self.text = format!("{doing}: {self}");
        self
    }

    /// The error that caused the failure.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

/// Every text is a message without a source.
impl<T: Into<String>> From<T> for ErrorMessage {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            source: None,
        }
    }
}

impl Deref for ErrorMessage {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ErrorMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for ErrorMessage {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ErrorMessage {}

/// The text of an error, followed by the text of each cause that the text does not contain yet.
#[must_use]
pub fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // The text of an API error lists all fields of the status, so only the message of the status counts.
        let (cause_text, next) = match cause.downcast_ref() {
            Some(kube::Error::Api(status)) => (status.message.clone(), None),
            _ => (cause.to_string(), cause.source()),
        };
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = next;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{io, time::Duration};

    use api::meta::ErrorCode;
    use kube::core::Status;

    use super::*;
    use crate::Error;

    /// An error of a client library: the text does not contain the cause.
    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct ConnectError(#[source] io::Error);

    fn connect_error() -> ConnectError {
        ConnectError(io::Error::new(
            io::ErrorKind::ConnectionRefused,
            "connection refused",
        ))
    }

    fn errors_of_all_classes(message: &ErrorMessage) -> [Error; 5] {
        [
            Error::transient(message.clone()),
            Error::not_ready(Duration::ZERO, message.clone()),
            Error::config(ErrorCode::ErrConfigurationProblem, message.clone()),
            Error::not_owner(message.clone()),
            Error::bug(message.clone()),
        ]
    }

    #[test]
    fn each_class_keeps_the_source_and_shows_the_source_once() {
        let message = ErrorMessage::from("the garden does not answer").caused_by(connect_error());
        let plain = "the garden does not answer: client error (Connect)";
        for error in errors_of_all_classes(&message) {
            let prefix = match error {
                Error::Bug(_) => "internal error, please report it: ",
                _ => "",
            };
            assert_eq!(error.to_string(), format!("{prefix}{plain}"));
            assert_eq!(
                format!("{error:#}"),
                format!("{prefix}{plain}: connection refused")
            );
            let source = StdError::source(&error).and_then(|source| source.downcast_ref::<ConnectError>());
            assert!(source.is_some(), "{error:?}");
        }
    }

    #[test]
    fn context_and_clones_keep_the_source() {
        for error in errors_of_all_classes(&ErrorMessage::from_source(connect_error())) {
            let class = error.class();
            let explained = error.clone().context("could not read the Shoot").clone();
            assert_eq!(explained.class(), class);
            assert!(
                format!("{explained:#}")
                    .ends_with("could not read the Shoot: client error (Connect): connection refused")
            );
            assert!(StdError::source(&explained).is_some());
        }
    }

    #[test]
    fn caused_by_adds_the_cause_to_the_message_of_each_class() {
        for error in errors_of_all_classes(&"the garden does not answer".into()) {
            let expected = format!("{error}: client error (Connect)");
            let class = error.class();
            let error = error.caused_by(connect_error());
            assert_eq!((error.to_string(), error.class()), (expected, class));
            assert!(format!("{error:#}").ends_with("(Connect): connection refused"));
        }
    }

    #[test]
    fn the_causes_of_an_api_error_repeat_nothing() {
        let status = Status::failure("pods \"a\" not found", "NotFound").with_code(404);
        let error = Error::from(kube::Error::Api(status.boxed()));
        assert_eq!(error.to_string(), "the API server answered: pods \"a\" not found");
        assert_eq!(format!("{error:#}"), error.to_string());
        let source = StdError::source(&error).and_then(|source| source.downcast_ref());
        assert!(matches!(source, Some(kube::Error::Api(status)) if status.is_not_found()));
    }

    #[test]
    fn a_message_without_a_source_has_no_causes() {
        let error = Error::transient("no answer");
        assert!(StdError::source(&error).is_none());
        assert_eq!(format!("{error:#}"), "no answer");
        assert_eq!(
            error,
            Error::transient(ErrorMessage::with_source("no answer", connect_error()))
        );
    }
}
