//! Signs a call, sends it and reads the answer.
//!
//! HTTP client and signature are those of the crate `object_store`, whose every request asks the permit
//! (docs/decisions/0033-calls-of-ec2-are-written-out.md says why).

use std::time::Duration;

use api::meta::ErrorCode;
use backon::{ExponentialBuilder, Retryable};
use http::{HeaderValue, Request, Uri, header::CONTENT_TYPE};
use object_store::{
    aws::{AwsAuthorizer, AwsCredential},
    client::{HttpClient, HttpRequestBody},
};
use permit::{Permit, StoreConnector};
use runtime::{Credentials, Error, Result, error::refusal};
use serde::de::DeserializeOwned;
use tracing::debug;

use crate::{Answer, Call, Failed, refusal::Refusal};

/// Time for one call. Longer than EC2 takes for any.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Time for a connection; short, so that a region that does not answer occupies no worker.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The first pause after a call that was throttled; it doubles. All of them together are shorter than a heartbeat of the object that
/// waits: then the reconciler's own pauses follow, which grow further.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How often a throttled call is repeated.
const REPEATED: usize = 5;
/// The service in a signature.
const SERVICE: &str = "ec2";

/// EC2 in one region, with an account.
#[derive(Clone, Debug)]
pub struct Ec2 {
    client: HttpClient,
    // Its `Debug` shows no key.
    credential: Account,
    region: String,
    endpoint: Uri,
    origin: String,
}

/// The keys of an account.
#[derive(Clone)]
struct Account(std::sync::Arc<AwsCredential>);

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(keys)")
    }
}

impl Ec2 {
    /// `endpoint` is another place than the region's own, for tests. Nothing is asked yet.
    ///
    /// # Errors
    /// The Secret lacks a key, or region or endpoint are none.
    pub fn open(
        credentials: &Credentials,
        region: &str,
        endpoint: Option<&str>,
        permit: &Permit,
    ) -> Result<Self> {
        let origin = credentials.origin().to_owned();
        let place = match endpoint {
            Some(endpoint) => endpoint.to_owned(),
            None => endpoint_of(region)?,
        };
        let url = place.parse::<Uri>().ok().filter(|url| {
            matches!(url.scheme_str(), Some("http" | "https"))
                && url.host().is_some_and(|host| !host.is_empty())
        });
        let endpoint = url.ok_or_else(|| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!("{place:?} is no URL of EC2: correct the region, or the flag --ec2-endpoint"),
            )
        })?;
        let credential = AwsCredential {
            key_id: credentials.text("accessKeyID")?,
            secret_key: credentials.text("secretAccessKey")?,
            token: None,
        };
        Ok(Self {
            client: StoreConnector::new(permit, CONNECT_WITHIN, ANSWER_WITHIN).client(),
            credential: Account(std::sync::Arc::new(credential)),
            region: region.to_owned(),
            endpoint,
            origin,
        })
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Makes a call and reads its answer. One that is throttled is repeated after pauses that grow and differ at random, so that
    /// processes that were throttled together do not come back together.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn ask<T: DeserializeOwned>(&self, call: &Call) -> Answer<T> {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(FIRST_PAUSE)
            .with_max_times(REPEATED)
            .with_jitter();
        let text = (|| self.send(call))
            .retry(pauses)
            .when(Failed::is_throttled)
            .notify(|_, pause| debug!(action = call.action(), ?pause, "EC2 throttles"))
            .await?;
        quick_xml::de::from_str(&text).map_err(|error| {
            Failed::Unanswered(format!(
                "the answer of EC2 to {} cannot be understood: {error}",
                call.action()
            ))
        })
    }

    /// As [`Ec2::ask`], for an answer that says nothing but that it is done.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn tell(&self, call: &Call) -> Answer<()> {
        #[derive(serde::Deserialize)]
        struct Done {}
        self.ask::<Done>(call).await.map(|Done {}| ())
    }

    /// As [`Ec2::tell`], for a call that takes something away: what is gone already is success.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn remove(&self, call: &Call) -> Answer<()> {
        match self.tell(call).await {
            Err(failed) if failed.is_missing() => Ok(()),
            done => done,
        }
    }

    async fn send(&self, call: &Call) -> Answer<String> {
        let action = call.action();
        let unanswered = |error: &dyn std::fmt::Display| {
            Failed::Unanswered(self.without_keys(&format!(
                "EC2 in {} gives no answer to {action}: {error}",
                self.region
            )))
        };
        let mut request = Request::post(self.endpoint.clone())
            .body(HttpRequestBody::from(call.form()))
            .map_err(|error| unanswered(&error))?;
        let form = HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8");
        request.headers_mut().insert(CONTENT_TYPE, form);
        AwsAuthorizer::new(&self.credential.0, SERVICE, &self.region)
            .try_authorize(&mut request, None)
            .map_err(|error| unanswered(&error))?;
        let answered = async {
            let answer = self.client.execute(request).await?;
            let status = answer.status();
            Ok::<_, object_store::client::HttpError>((status, answer.into_body().bytes().await?))
        };
        let (status, body) = answered.await.map_err(|error| match refusal(&error) {
            Some(refused) => Failed::NotPermitted(refused.clone()),
            None => unanswered(&error),
        })?;
        let text = String::from_utf8_lossy(&body);
        if status.is_success() {
            return Ok(text.into_owned());
        }
        let refused = Refusal::read(action, &self.origin, &self.without_keys(&text));
        Err(refused.map_or_else(|| unanswered(&status), Failed::Refused))
    }

    /// What EC2 or the client says may quote the request.
    fn without_keys(&self, text: &str) -> String {
        text.replace(&self.credential.0.secret_key, "(secretAccessKey)")
            .replace(&self.credential.0.key_id, "(accessKeyID)")
    }
}

/// Where EC2 is in a region.
fn endpoint_of(region: &str) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if region.is_empty() || !region.chars().all(is_plain) {
        return Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!("{region:?} is no region of AWS: correct spec.region of the Shoot"),
        ));
    }
    let domain = if region.starts_with("cn-") {
        "amazonaws.com.cn"
    } else {
        "amazonaws.com"
    };
    Ok(format!("https://ec2.{region}.{domain}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use super::*;

    fn account(keys: &[(&str, &str)]) -> Credentials {
        // As a process does at its start; another test may have done it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let data = keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        Credentials::new("garden/aws", data.collect::<BTreeMap<_, _>>())
    }

    fn opened(region: &str, endpoint: Option<&str>) -> Result<Ec2> {
        let keys = account(&[("accessKeyID", "AKIA-ONE"), ("secretAccessKey", "s3cret")]);
        Ec2::open(&keys, region, endpoint, &Permit::sole("a test"))
    }

    #[test]
    fn a_region_is_a_place() {
        assert_eq!(
            endpoint_of("eu-west-1").unwrap(),
            "https://ec2.eu-west-1.amazonaws.com"
        );
        assert_eq!(
            endpoint_of("cn-north-1").unwrap(),
            "https://ec2.cn-north-1.amazonaws.com.cn"
        );
        for wrong in ["", "eu west", "a.b", "EU", "x/y"] {
            let error = opened(wrong, None).unwrap_err();
            assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem], "{error}");
        }
        // The library that signs takes a URL for granted.
        for wrong in ["nonsense", "/a", "ftp://host", "http:"] {
            let error = opened("eu-west-1", Some(wrong)).unwrap_err();
            assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem], "{error}");
        }
    }

    #[test]
    fn a_missing_key_is_told() {
        let error = Ec2::open(
            &account(&[("accessKeyID", "a")]),
            "eu-west-1",
            Some("http://127.0.0.1:1"),
            &Permit::sole("a test"),
        );
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("secretAccessKey") && error.contains("garden/aws"),
            "{error}"
        );
    }

    #[test]
    fn no_key_is_shown() {
        let ec2 = opened("eu-west-1", Some("http://127.0.0.1:1")).unwrap();
        assert_eq!(
            ec2.without_keys("it is s3cret of AKIA-ONE"),
            "it is (secretAccessKey) of (accessKeyID)"
        );
        let shown = format!("{ec2:?}");
        assert!(!shown.contains("s3cret") && !shown.contains("AKIA"), "{shown}");
    }

    #[tokio::test]
    async fn who_does_not_answer_is_told_and_passes() {
        let ec2 = opened("eu-west-1", Some("http://127.0.0.1:1")).unwrap();
        let failed = ec2.tell(&Call::new("DescribeVpcs")).await.unwrap_err();
        let error = Error::from(failed);
        assert_eq!(error.class(), "Transient");
        assert!(error.to_string().contains("no answer to DescribeVpcs"), "{error}");
    }

    #[tokio::test]
    async fn nothing_leaves_without_the_right() {
        let clock = permit::Clock::default();
        let issuer = permit::Issuer::new("a test", clock.clone(), clock.now() + Duration::from_secs(60));
        let keys = account(&[("accessKeyID", "a"), ("secretAccessKey", "b")]);
        let ec2 = Ec2::open(&keys, "eu-west-1", Some("http://127.0.0.1:1"), &issuer.permit()).unwrap();
        issuer.end("it is over");
        let failed = ec2.tell(&Call::new("CreateVpc")).await.unwrap_err();
        assert_eq!(Error::from(failed).class(), "NotOwner");
    }
}
