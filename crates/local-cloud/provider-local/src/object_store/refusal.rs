//! The answer of a store that refuses. The library hides the answer in the texts of its errors.

use api::meta::ErrorCode;
use async_trait::async_trait;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use runtime::Error;

/// A refusal as an error.
#[derive(Debug, thiserror::Error)]
#[error("the object store answered {status} {code} {message}")]
pub struct S3Error {
    status: u16,
    /// The error code of S3; empty without a code.
    pub code: String,
    message: String,
}

impl S3Error {
    /// Reads an answer. As an error of the client, the refusal comes out of the library at any depth in the
    /// library's own error.
    pub async fn read(answer: HttpResponse) -> HttpError {
        let status = answer.status().as_u16();
        match answer.into_body().bytes().await {
            Ok(text) => {
                let refusal = Self::new(status, &String::from_utf8_lossy(&text));
                // A kind of error that the library does not retry.
                HttpError::new(HttpErrorKind::Unknown, refusal)
            }
            Err(error) => error,
        }
    }

    fn new(status: u16, text: &str) -> Self {
        let element = |name| element(text, name).unwrap_or_default().to_owned();
        Self {
            status,
            code: element("Code"),
            message: element("Message"),
        }
    }

    /// The refusal inside an error.
    pub fn find_in<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Self> {
        std::iter::successors(Some(error), |error| error.source()).find_map(|error| error.downcast_ref())
    }

    /// Whether the bucket does not exist.
    pub fn is_missing(&self) -> bool {
        self.code == "NoSuchBucket" || (self.code.is_empty() && self.status == 404)
    }

    /// Whether the object or the bucket does not exist.
    pub fn names_nothing(&self) -> bool {
        self.code == "NoSuchKey" || self.is_missing()
    }

    /// The store accepts the account, and the account lacks the right.
    pub fn is_permission_denied(&self) -> bool {
        self.status == 403 && !self.is_for_account()
    }

    fn is_for_account(&self) -> bool {
        matches!(
            self.code.as_str(),
            "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "ExpiredToken" | "InvalidToken" | "NotSignedUp"
        )
    }

    /// Divides refusals into faults that a person must fix and transient errors.
    pub fn error(&self, doing: &str, origin: &str) -> Error {
        let said = format!("{doing}: {self}");
        let said = said.trim_end();
        match (self.status, self.code.as_str()) {
            (status, _) if status == 401 || self.is_for_account() => Error::config(
                ErrorCode::ErrInfraUnauthenticated,
                format!("{said}; correct accessKeyID and secretAccessKey in the Secret {origin}"),
            ),
            (403, _) => Error::config(
                ErrorCode::ErrInfraUnauthorized,
                format!("{said}; grant the account of the Secret {origin} this permission"),
            ),
            (_, "BucketNotEmpty") => Error::transient(format!(
                "{said}; old versions may be left: grant the account of the Secret {origin} s3:ListBucketVersions and \
                 s3:DeleteObjectVersion, or remove the versions"
            )),
            (_, "TooManyBuckets") => Error::config(
                ErrorCode::ErrInfraQuotaExceeded,
                format!("{said}; remove buckets or raise the quota"),
            ),
            (_, "InvalidBucketName" | "IllegalLocationConstraintException") => Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!("{said}; correct name or region"),
            ),
            _ => Error::transient(said),
        }
    }
}

/// A client that turns refusals into errors that can be found again. Answers that the library retries are
/// passed through.
#[derive(Clone, Debug)]
pub struct Telling(pub HttpClient);

#[async_trait]
impl HttpService for Telling {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = self.0.execute(request).await?;
        let status = answer.status();
        if status.is_client_error() && !matches!(status.as_u16(), 408 | 429) {
            return Err(S3Error::read(answer).await);
        }
        Ok(answer)
    }
}

impl HttpConnector for Telling {
    fn connect(&self, _: &object_store::ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

/// Content of the first XML element of this name, as in S3 errors.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once("</").map(|(content, _)| content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_carry_codes_and_what_to_do() {
        for (status, text, code, missing) in [
            (
                403,
                "<Error><Code>InvalidAccessKeyId</Code><Message>no</Message></Error>",
                Some(ErrorCode::ErrInfraUnauthenticated),
                false,
            ),
            (
                403,
                "<Error><Code>AccessDenied</Code></Error>",
                Some(ErrorCode::ErrInfraUnauthorized),
                false,
            ),
            (
                400,
                "<Error><Code>TooManyBuckets</Code></Error>",
                Some(ErrorCode::ErrInfraQuotaExceeded),
                false,
            ),
            (404, "<Error><Code>NoSuchBucket</Code></Error>", None, true),
            (503, "<Error><Code>SlowDown</Code></Error>", None, false),
            (404, "", None, true),
            (404, "<Error><Code>NoSuchKey</Code></Error>", None, false),
        ] {
            let refusal = S3Error::new(status, text);
            let error = refusal.error("could not list bucket b", "garden/backup");
            assert_eq!(error.codes().first().copied(), code, "{text}");
            assert_eq!(refusal.is_missing(), missing, "{text}");
            assert_eq!(refusal.names_nothing(), status == 404, "{text}");
        }
    }
}
