//! Keys of a role of AWS, issued for a token (`AssumeRoleWithWebIdentity`), for clients of the crate
//! `object_store`.
//!
//! The library has such a source of keys, too. That source puts the token into the URL, where proxies log the
//! token. The source needs a file for the token, knows a single domain of AWS, and reports no cause to the
//! caller. So the request is written out here:
//! - The request leaves through the client of the caller, and so only while the permit is valid.
//! - The environment of the process and the metadata of an instance are not read.
//! - The token is read again for each request, so that a renewed token counts without a restart.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderValue, Method, Uri, header::CONTENT_TYPE};
use object_store::{
    CredentialProvider, Error, Result, RetryConfig,
    aws::AwsCredential,
    client::{HttpClient, HttpError, HttpRequest},
};
use permit::{Clock, Moment};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use crate::bucket::next_pause;
use crate::web_identity_answer::{WebIdentityCause, WebIdentityError, read_keys, read_refusal};
use crate::web_identity_secret::{WebIdentityRole, check_token};

/// New keys are asked for at this time before the end of the keys. Longer than a request to the store takes
/// with all repeats.
const RENEW_BEFORE_END: Duration = Duration::from_secs(5 * 60);
/// Time until the next attempt, while the former keys are still valid. Much shorter than
/// [`RENEW_BEFORE_END`].
const RENEW_AGAIN: Duration = Duration::from_secs(30);
/// Timeout of a request to the token service. Shorter than the time for repeats of a request to the store.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Name of the session in the audit log of the account.
const SESSION_NAME: &str = "repot-backups";

type ReadToken = Box<dyn Fn() -> Result<String, String> + Send + Sync>;

/// The keys of a role. A single request for keys is under way at a time, and keys are kept until five minutes
/// before the end of the keys.
pub struct WebIdentity {
    role: WebIdentityRole,
    read_token: ReadToken,
    client: HttpClient,
    retry: RetryConfig,
    clock: Clock,
    issued: Mutex<Option<IssuedKeys>>,
}

/// The type has no `Debug`, because the keys are secret.
struct IssuedKeys {
    keys: Arc<AwsCredential>,
    renew_at: Moment,
    end: Moment,
}

impl WebIdentity {
    /// Sends no request yet. `client` needs the permit for each request. `read_token` returns the present
    /// token of the Secret, or the reason why the token cannot be read.
    #[must_use]
    pub fn new(
        role: WebIdentityRole,
        client: HttpClient,
        retry: RetryConfig,
        read_token: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            role,
            read_token: Box::new(read_token),
            client,
            retry,
            clock: Clock::default(),
            issued: Mutex::new(None),
        }
    }

    /// Asks for keys, and repeats the request after temporary failures.
    async fn ask_often(&self, repeats: usize) -> Result<IssuedKeys, WebIdentityError> {
        let begun = Instant::now();
        let mut pause = self.retry.backoff.init_backoff;
        let mut left = repeats;
        loop {
            let error = match self.ask().await {
                Ok(issued) => return Ok(issued),
                Err(error) => error,
            };
            if left == 0 || !error.is_temporary() || begun.elapsed() > self.retry.retry_timeout {
                return Err(error);
            }
            sleep(pause).await;
            left -= 1;
            pause = next_pause(pause, &self.retry);
        }
    }

    async fn ask(&self) -> Result<IssuedKeys, WebIdentityError> {
        let arn = &self.role.arn;
        let wrong = |why: String| WebIdentityError::new(WebIdentityCause::Secret, arn, &why);
        let token = (self.read_token)().map_err(wrong)?;
        check_token(&token).map_err(wrong)?;
        let request = self.request(&token).map_err(wrong)?;
        // The lifetime counts from here, because the answer may be delayed.
        let asked = self.clock.now();
        let answered = timeout(ANSWER_WITHIN, async {
            let (head, body) = self.client.execute(request).await?.into_parts();
            Ok::<_, HttpError>((head, body.bytes().await?))
        });
        let Ok(answered) = answered.await else {
            let what = format!(
                "the token service {} did not answer within {} s",
                self.role.sts,
                ANSWER_WITHIN.as_secs()
            );
            return Err(WebIdentityError::new(WebIdentityCause::Unavailable, arn, &what));
        };
        let (head, body) = answered.map_err(|error| WebIdentityError::unanswered(arn, error))?;
        if !head.status.is_success() {
            return Err(read_refusal(arn, &token, head.status, &body));
        }
        let Some((keys, lifetime)) = read_keys(&head.headers, &body) else {
            let what = format!(
                "the answer of {} has no valid keys; correct region or stsEndpoint of the backup Secret",
                self.role.sts
            );
            return Err(WebIdentityError::new(WebIdentityCause::Secret, arn, &what));
        };
        // Short-lived keys are used for half of the lifetime at least.
        let margin = RENEW_BEFORE_END.min(lifetime / 2);
        Ok(IssuedKeys {
            keys: Arc::new(keys),
            renew_at: asked + lifetime.saturating_sub(margin),
            end: asked + lifetime,
        })
    }

    /// The token is in the body: proxies and servers log URLs.
    fn request(&self, token: &str) -> Result<HttpRequest, String> {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("Action", "AssumeRoleWithWebIdentity")
            .append_pair("Version", "2011-06-15")
            .append_pair("RoleArn", &self.role.arn)
            .append_pair("RoleSessionName", SESSION_NAME)
            .append_pair("WebIdentityToken", token)
            .finish();
        let uri: Uri = self.role.sts.parse().map_err(|error| {
            format!(
                "the URL {} of the token service is invalid: {error}",
                self.role.sts
            )
        })?;
        let mut request = HttpRequest::new(form.into());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(CONTENT_TYPE, form);
        Ok(request)
    }
}

#[async_trait]
impl CredentialProvider for WebIdentity {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> Result<Arc<AwsCredential>> {
        // Held during the request: further callers wait for the same keys.
        let mut issued = self.issued.lock().await;
        let now = self.clock.now();
        if let Some(current) = issued.as_ref().filter(|current| now < current.renew_at) {
            return Ok(Arc::clone(&current.keys));
        }
        // Requests with valid keys do not wait for repeats.
        let is_valid = issued.as_ref().is_some_and(|former| now < former.end);
        let repeats = if is_valid { 0 } else { self.retry.max_retries };
        let error = match self.ask_often(repeats).await {
            Ok(new) => {
                let keys = Arc::clone(&new.keys);
                *issued = Some(new);
                return Ok(keys);
            }
            Err(error) => error,
        };
        let now = self.clock.now();
        if let Some(former) = issued.as_mut().filter(|former| now < former.end) {
            warn!(%error, "the former keys of the role are used until they end");
            former.renew_at = (now + RENEW_AGAIN).min(former.end);
            return Ok(Arc::clone(&former.keys));
        }
        Err(Error::Generic {
            store: "S3",
            source: Box::new(error),
        })
    }
}

impl fmt::Debug for WebIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebIdentity")
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests/web_identity.rs"]
mod tests;
