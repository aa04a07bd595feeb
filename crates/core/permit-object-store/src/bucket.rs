//! Requests of the S3 protocol that the crate `object_store` does not have: listings that return every key,
//! and removals of keys and of versions.
//!
//! The library fails a whole listing on a key with an empty segment, a dot segment or a control character,
//! and cannot remove such an object. So a user with write access could stop every backup and restore by a
//! single key of this kind.

use std::fmt::Write;
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, Uri, header::CONTENT_TYPE};
use hyper::body::Bytes;
use md5::{Digest, Md5};
use object_store::{
    Error, Result, RetryConfig,
    aws::{AwsAuthorizer, AwsCredentialProvider},
    client::{HttpClient, HttpError, HttpErrorKind, HttpRequest},
};
use tokio::time::{Instant, sleep};

use crate::bucket_xml::{
    ListedObject, Listing, Position, RefusedRemoval, Removal, code_of, removal_request, removed,
};

/// Maximum number of objects in a removal request; the limit of S3.
pub const REMOVED_AT_ONCE: usize = 1000;

/// A bucket as the S3 protocol shows it. Every request goes through the client and needs the permit of
/// the client.
pub struct Bucket {
    /// Sends the requests.
    pub client: HttpClient,
    /// The URL of the bucket, without a slash at the end.
    pub url: String,
    /// The region in the signature of requests.
    pub region: String,
    /// The keys that sign the requests.
    pub credentials: AwsCredentialProvider,
    /// Repeats of a request that failed for the moment.
    pub retry: RetryConfig,
}

/// The objects that a listing is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// The current objects.
    Objects,
    /// Every version of each object, and the delete markers.
    Versions,
}

/// An answer that is not a success.
#[derive(Debug, thiserror::Error)]
#[error("Server returned non-2xx status code: {status}: {body}")]
struct Refused {
    status: StatusCode,
    body: String,
}

impl Refused {
    /// The store accepts the account and refuses this object.
    fn is_for_this_object(&self) -> bool {
        let is_account = [
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "ExpiredToken",
            "InvalidToken",
        ]
        .iter()
        .any(|code| self.body.contains(code));
        self.status.is_client_error()
            && !is_account
            && !matches!(
                self.status,
                StatusCode::UNAUTHORIZED | StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
            )
    }
}

enum Failure {
    Refused(Refused),
    Unanswered(HttpError),
}

impl Bucket {
    /// Every current object whose key begins with `prefix`.
    ///
    /// # Errors
    /// The errors of `object_store` for the same answers.
    pub async fn objects(&self, prefix: &str) -> Result<Vec<ListedObject>> {
        let (mut found, mut position) = (Vec::new(), None);
        loop {
            let (page, next) = self.page(Listed::Objects, prefix, position.as_ref()).await?;
            found.extend(page);
            match next {
                Some(_) if next == position => return Err(unreadable("the listing does not go on")),
                None => return Ok(found),
                next => position = next,
            }
        }
    }

    /// A single page of a listing, and the position of the next page.
    ///
    /// # Errors
    /// See [`Self::objects`].
    pub async fn page(
        &self,
        listed: Listed,
        prefix: &str,
        position: Option<&Position>,
    ) -> Result<(Vec<ListedObject>, Option<Position>)> {
        let kind = match listed {
            Listed::Objects => "list-type=2",
            Listed::Versions => "versions",
        };
        // Characters that XML cannot hold come back only in this encoding.
        let mut query = format!("{kind}&encoding-type=url&prefix={}", encoded(prefix, false));
        for (name, value) in position.into_iter().flat_map(|position| &position.0) {
            let _ = write!(query, "&{name}={}", encoded(value, false));
        }
        let text = self.ask(Method::GET, &format!("?{query}"), Bytes::new()).await?;
        Listing::parse(&text)
            .map(Listing::into_page)
            .map_err(|e| unreadable(&e))
    }

    /// Removes objects, or the versions named in the objects. Returns the removals that the store refused.
    ///
    /// # Errors
    /// Fails if a request as a whole fails.
    pub async fn remove(&self, objects: &[ListedObject]) -> Result<Vec<RefusedRemoval>> {
        let (in_xml, by_url): (Vec<_>, Vec<_>) = objects
            .iter()
            .partition(|object| !object.key.chars().any(char::is_control));
        let mut refused = Vec::new();
        for some in in_xml.chunks(REMOVED_AT_ONCE) {
            let body = removal_request(some).map_err(|e| unreadable(&e))?;
            let answer = self.ask(Method::POST, "?delete", Bytes::from(body)).await?;
            let Removal { errors } = removed(&answer).map_err(|e| unreadable(&e))?;
            refused.extend(errors);
        }
        for object in by_url {
            refused.extend(self.remove_one(object).await?);
        }
        Ok(refused)
    }

    /// Removes an object, or the version named in the object, by the request that every store supports.
    /// Returns the refusal of the store, such as for an object with a retention that has not ended.
    ///
    /// # Errors
    /// Fails if the store does not answer, or does not accept the account.
    pub async fn remove_one(&self, object: &ListedObject) -> Result<Option<RefusedRemoval>> {
        let version = object.version.as_ref();
        let version = version.map(|version| format!("?versionId={}", encoded(version, false)));
        let target = format!("/{}{}", encoded(&object.key, true), version.unwrap_or_default());
        match self.ask_often(Method::DELETE, &target, Bytes::new()).await {
            Ok(_) => Ok(None),
            Err(Failure::Refused(refused)) if refused.status == StatusCode::NOT_FOUND => Ok(None),
            Err(Failure::Refused(refused)) if refused.is_for_this_object() => Ok(Some(RefusedRemoval {
                key: object.key.clone(),
                code: code_of(&refused.body).unwrap_or_else(|| refused.status.to_string()),
            })),
            Err(failure) => Err(failure.into_error(&target)),
        }
    }

    async fn ask(&self, method: Method, target: &str, body: Bytes) -> Result<Bytes> {
        let asked = self.ask_often(method, target, body).await;
        asked.map_err(|failure| failure.into_error(target))
    }

    /// Sends a request, and repeats the request after temporary failures.
    async fn ask_often(&self, method: Method, target: &str, body: Bytes) -> Result<Bytes, Failure> {
        let begun = Instant::now();
        let mut pause = self.retry.backoff.init_backoff;
        let mut repeats = 0;
        loop {
            let failure = match self.send(method.clone(), target, body.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let is_over = repeats >= self.retry.max_retries || begun.elapsed() > self.retry.retry_timeout;
            if is_over || !failure.is_temporary() {
                return Err(failure);
            }
            sleep(pause).await;
            repeats += 1;
            pause = next_pause(pause, &self.retry);
        }
    }

    async fn send(&self, method: Method, target: &str, body: Bytes) -> Result<Bytes, Failure> {
        let invalid = |error| Failure::Unanswered(HttpError::new(HttpErrorKind::Unknown, error));
        let uri: Uri = format!("{}{target}", self.url).parse().map_err(invalid)?;
        let mut request = HttpRequest::new(body.clone().into());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        if !body.is_empty() {
            // S3 requires the checksum for this request.
            let checksum = base64_of(&Md5::digest(&body));
            let headers = request.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
            headers.insert("content-md5", checksum.parse().map_err(|_| Failure::invalid())?);
        }
        let unsigned = |error: Error| Failure::Unanswered(HttpError::new(HttpErrorKind::Unknown, error));
        let credential = self.credentials.get_credential().await.map_err(unsigned)?;
        AwsAuthorizer::new(&credential, "s3", &self.region)
            .try_authorize(&mut request, None)
            .map_err(unsigned)?;
        let answer = self.client.execute(request).await.map_err(Failure::Unanswered)?;
        let status = answer.status();
        let body = answer.into_body().bytes().await.map_err(Failure::Unanswered)?;
        if status.is_success() {
            return Ok(body);
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        Err(Failure::Refused(Refused { status, body }))
    }
}

impl Failure {
    fn invalid() -> Self {
        Self::Unanswered(HttpError::new(
            HttpErrorKind::Unknown,
            unreadable("a header is invalid"),
        ))
    }

    fn is_temporary(&self) -> bool {
        match self {
            Self::Refused(Refused { status, .. }) => is_temporary_status(*status),
            Self::Unanswered(error) => is_temporary_error(error),
        }
    }

    fn into_error(self, target: &str) -> Error {
        let path = target.to_owned();
        match self {
            Self::Unanswered(error) => generic(Box::new(error)),
            Self::Refused(refused) => match refused.status {
                StatusCode::NOT_FOUND => Error::NotFound {
                    path,
                    source: Box::new(refused),
                },
                StatusCode::FORBIDDEN => Error::PermissionDenied {
                    path,
                    source: Box::new(refused),
                },
                StatusCode::UNAUTHORIZED => Error::Unauthenticated {
                    path,
                    source: Box::new(refused),
                },
                StatusCode::NOT_IMPLEMENTED | StatusCode::METHOD_NOT_ALLOWED => Error::NotImplemented {
                    operation: path,
                    implementer: refused.to_string(),
                },
                _ => generic(Box::new(refused)),
            },
        }
    }
}

/// Whether a request with this answer is repeated; the same judgement as in `object_store`.
pub(crate) fn is_temporary_status(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
        || matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
        )
}

/// Whether a request without an answer is repeated; the same judgement as in `object_store`.
pub(crate) fn is_temporary_error(error: &HttpError) -> bool {
    matches!(
        error.kind(),
        HttpErrorKind::Connect | HttpErrorKind::Request | HttpErrorKind::Timeout | HttpErrorKind::Interrupted
    )
}

/// The pause before the repeat that follows the next repeat.
pub(crate) fn next_pause(pause: Duration, retry: &RetryConfig) -> Duration {
    pause.mul_f64(retry.backoff.base).min(retry.backoff.max_backoff)
}

fn generic(source: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::Generic { store: "S3", source }
}

fn unreadable(cause: &(impl ToString + ?Sized)) -> Error {
    generic(
        format!(
            "the answer of the object store cannot be read: {}",
            cause.to_string()
        )
        .into(),
    )
}

fn base64_of(bytes: &[u8]) -> String {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes)
}

/// Percent-encodes a text as signatures of S3 require: every byte except the unreserved characters. The path
/// keeps slashes.
fn encoded(text: &str, is_path: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            b'/' if is_path => encoded.push('/'),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}
