//! The answers of AWS's token service, and the failures of a role with the remedies.

use std::error::Error;
use std::time::Duration;

use http::{HeaderMap, StatusCode, header::DATE};
use jiff::{Timestamp, fmt::rfc2822};
use object_store::aws::AwsCredential;
use object_store::client::HttpError;
use serde::Deserialize;

use crate::bucket::{is_temporary_error, is_temporary_status};

/// Lifetime of keys in an answer without a date. No role has a shorter session.
const SHORTEST_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// No role has a longer session.
const LONGEST_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// Characters of the service's own sentence in an error.
const LONGEST_QUOTE: usize = 300;

/// The party that has to act after a failure of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebIdentityCause {
    /// The issuer: the token has expired, or is not accepted.
    Token,
    /// The owner of the account: the trust policy of the role excludes the token.
    Denied,
    /// The operator: a key of the Secret is wrong.
    Secret,
    /// No party at first: the token service, or the issuer, did not answer. A retry may succeed.
    Unavailable,
}

/// The keys of a role were not issued. The text names the role, the cause and the remedy, and no secret.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct WebIdentityError {
    cause: WebIdentityCause,
    message: String,
    source: Option<HttpError>,
}

impl WebIdentityError {
    pub(crate) fn new(cause: WebIdentityCause, arn: &str, what: &str) -> Self {
        Self {
            cause,
            message: format!("no keys were issued for the role {arn}: {what}"),
            source: None,
        }
    }

    /// A request without an answer. The end of the permit may be the cause.
    pub(crate) fn unanswered(arn: &str, source: HttpError) -> Self {
        let what = format!("the token service did not answer ({source})");
        Self {
            source: Some(source),
            ..Self::new(WebIdentityCause::Unavailable, arn, &what)
        }
    }

    /// The party that has to act.
    #[must_use]
    pub fn cause(&self) -> WebIdentityCause {
        self.cause
    }

    /// Whether the same request may succeed a moment later.
    pub(crate) fn is_temporary(&self) -> bool {
        self.cause == WebIdentityCause::Unavailable && self.source.as_ref().is_none_or(is_temporary_error)
    }

    /// The failure of a role, at any depth in the error of a library.
    #[must_use]
    pub fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        std::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RoleAnswer {
    assume_role_with_web_identity_result: RoleResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RoleResult {
    credentials: RoleKeys,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RoleKeys {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

/// The keys of an answer, and the lifetime since the request was sent. `None` if the answer has no keys, or
/// keys that have ended.
pub(crate) fn read_keys(headers: &HeaderMap, body: &[u8]) -> Option<(AwsCredential, Duration)> {
    let answer: RoleAnswer = quick_xml::de::from_reader(body).ok()?;
    let keys = answer.assume_role_with_web_identity_result.credentials;
    let texts = [&keys.access_key_id, &keys.secret_access_key, &keys.session_token];
    // The library panics on a token that is not a header.
    let is_header = |text: &&String| !text.is_empty() && text.bytes().all(|c| c.is_ascii_graphic());
    if !texts.iter().all(is_header) {
        return None;
    }
    let lifetime = read_lifetime(headers, &keys.expiration)?;
    let credential = AwsCredential {
        key_id: keys.access_key_id,
        secret_key: keys.secret_access_key,
        token: Some(keys.session_token),
    };
    Some((credential, lifetime))
}

/// The time until `expiration` by the clock of the service. A wrong clock of this machine does not count.
fn read_lifetime(headers: &HeaderMap, expiration: &str) -> Option<Duration> {
    let end: Timestamp = expiration.parse().ok()?;
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| rfc2822::parse(date).ok());
    let Some(date) = date else {
        return Some(SHORTEST_LIFETIME);
    };
    let lifetime = Duration::try_from(end.duration_since(date.timestamp())).ok()?;
    Some(lifetime.min(LONGEST_LIFETIME)).filter(|lifetime| !lifetime.is_zero())
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RefusalAnswer {
    error: RefusalBody,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RefusalBody {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

/// The error of a refusal. The token is taken out of the service's own sentence.
pub(crate) fn read_refusal(arn: &str, token: &str, status: StatusCode, body: &[u8]) -> WebIdentityError {
    let answer: RefusalAnswer = quick_xml::de::from_reader(body).unwrap_or_default();
    let error = answer.error;
    let sentence = error.message.replace(token, "(token)");
    let readable = sentence.chars().filter(|c| !c.is_control());
    let sentence: String = readable.take(LONGEST_QUOTE).collect();
    let answer = format!("{} {} {sentence}", status.as_u16(), error.code);
    let (cause, what) = judge_code(&error.code, status);
    let what = format!("{what} (the service answered {})", answer.trim_end());
    WebIdentityError::new(cause, arn, &what)
}

fn judge_code(code: &str, status: StatusCode) -> (WebIdentityCause, &'static str) {
    match code.strip_suffix("Exception").unwrap_or(code) {
        "ExpiredToken" => (
            WebIdentityCause::Token,
            "the token has expired; let the issuer renew the key token of the backup Secret before the token ends",
        ),
        "InvalidIdentityToken" | "IDPRejectedClaim" => (
            WebIdentityCause::Token,
            "the token is not accepted; compare issuer, audience and signing key of the token with the identity provider in IAM",
        ),
        "AccessDenied" => (
            WebIdentityCause::Denied,
            "the role does not trust the token; allow sts:AssumeRoleWithWebIdentity for issuer, audience and subject of the token in \
             the trust policy of the role, or correct roleARN of the backup Secret",
        ),
        "IDPCommunicationError" => (
            WebIdentityCause::Unavailable,
            "the token service cannot reach the issuer of the token; make the discovery document and the keys of the issuer \
             reachable",
        ),
        code if is_temporary_status(status) || code.starts_with("Throttling") => (
            WebIdentityCause::Unavailable,
            "the token service failed; repeat the operation later",
        ),
        _ => (
            WebIdentityCause::Secret,
            "the token service refuses the request; correct roleARN, token, region or stsEndpoint of the backup Secret",
        ),
    }
}

#[cfg(test)]
#[path = "tests/web_identity_answer.rs"]
mod tests;
