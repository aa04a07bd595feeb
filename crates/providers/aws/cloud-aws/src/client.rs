//! Signs a call, sends the call and reads the answer.
//!
//! The HTTP client and the signature come from the crate `object_store`. Each request of this client asks the
//! permit first (docs/understand/decisions/0033-calls-of-ec2-are-written-out.md has the reason).

use std::{sync::Arc, time::Duration};

use api::meta::ErrorCode;
use backon::{BackoffBuilder, ExponentialBuilder};
use http::{HeaderValue, Request, Uri, header::CONTENT_TYPE};
use object_store::{
    aws::AwsAuthorizer,
    client::{HttpClient, HttpRequestBody},
};
use permit_object_store::aws_domain;
use runtime::{
    Error, Result, clock,
    error::refusal,
    process::external_requests::{UNANSWERED, count_request},
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::{Instant, sleep};
use tracing::debug;

use crate::{Answer, Call, Failed, Items, account::Account, pace::Pace, refusal::ServiceError, skew};

/// The first pause after a throttled call. Each pause doubles the former pause. All pauses together are
/// shorter than the heartbeat interval of the waiting object. After these pauses the reconciler's own, longer
/// pauses follow.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// How often a throttled call is repeated.
const REPEATED: usize = 5;
/// A call that only reads is repeated after a fault of EC2 or of the connection, until this time after the
/// first attempt.
const READ_AGAIN_WITHIN: Duration = Duration::from_secs(10);

/// EC2 in a region, with an account. [`crate::Ec2Access::open`] creates this client.
#[derive(Clone, Debug)]
pub struct Ec2 {
    pub(crate) client: HttpClient,
    pub(crate) account: Account,
    pub(crate) pace: Arc<Pace>,
    pub(crate) region: String,
    pub(crate) endpoint: Uri,
    pub(crate) listed_within: Duration,
}

/// A page of a list. EC2 has a different name for each list.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Page<T> {
    #[serde(
        default,
        rename = "vpcSet",
        alias = "internetGatewaySet",
        alias = "subnetSet",
        alias = "securityGroupInfo",
        alias = "routeTableSet",
        alias = "natGatewaySet",
        alias = "addressesSet",
        alias = "networkAclSet",
        alias = "availabilityZoneInfo",
        alias = "imagesSet",
        alias = "reservationSet"
    )]
    items: Items<T>,
    #[serde(default, rename = "nextToken")]
    next_token: Option<String>,
}

impl Ec2 {
    /// The region.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// How long EC2 may not list a part of a network that was just made.
    #[must_use]
    pub fn listed_within(&self) -> Duration {
        self.listed_within
    }

    /// Makes a call and reads the answer. A throttled call is repeated after growing pauses with a random
    /// part. So processes that were throttled together do not repeat their calls at the same time. A call
    /// that only reads is also repeated after a fault of EC2 or of the connection.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn ask<T: DeserializeOwned>(&self, call: &Call) -> Answer<T> {
        let text = self.repeat(call).await?;
        quick_xml::de::from_str(&text).map_err(|error| {
            Failed::Unanswered(format!(
                "the answer of {} to {} cannot be understood: {error}",
                call.service().title(),
                call.action()
            ))
        })
    }

    /// All that a call lists, page by page.
    ///
    /// # Errors
    /// See [`Failed`]. Half a list is none.
    pub(crate) async fn list<T: DeserializeOwned>(&self, call: &Call) -> Answer<Vec<T>> {
        let (mut all, mut next) = (Vec::new(), None::<String>);
        loop {
            let page = match &next {
                Some(token) => call.clone().with("NextToken", token),
                None => call.clone(),
            };
            let page: Page<T> = self.ask(&page).await?;
            all.extend(Vec::from(page.items));
            let token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(all);
            }
            if token == next {
                return Err(Failed::Unanswered(format!(
                    "EC2 gives the same page of {} again and again",
                    call.action()
                )));
            }
            next = token;
        }
    }

    /// As [`Ec2::ask`], for an answer that only confirms the call.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn tell(&self, call: &Call) -> Answer<()> {
        #[derive(serde::Deserialize)]
        struct Done {}
        self.ask::<Done>(call).await.map(|Done {}| ())
    }

    /// As [`Ec2::tell`], for a call that removes an object. An object that is gone already is success.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn remove(&self, call: &Call) -> Answer<()> {
        match self.tell(call).await {
            Err(failed) if failed.is_missing() => Ok(()),
            done => done,
        }
    }

    async fn repeat(&self, call: &Call) -> Answer<String> {
        let started = Instant::now();
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(FIRST_PAUSE)
            .with_max_times(REPEATED)
            .with_jitter()
            .build();
        loop {
            sleep(self.pace.take_turn(Instant::now())).await;
            let failed = match self.send(call).await {
                Ok(text) => {
                    self.pace.speed_up();
                    return Ok(text);
                }
                Err(failed) => failed,
            };
            let is_repeated = if failed.is_throttled() {
                self.pace.slow_down();
                true
            } else {
                call.is_read() && failed.is_fault() && started.elapsed() < READ_AGAIN_WITHIN
            };
            let Some(pause) = pauses.next().filter(|_| is_repeated) else {
                return Err(failed);
            };
            debug!(action = call.action(), %failed, ?pause, "a call is repeated");
            sleep(pause).await;
        }
    }

    async fn send(&self, call: &Call) -> Answer<String> {
        let unanswered = |error: &dyn std::fmt::Display| {
            Failed::Unanswered(self.account.redact(&format!(
                "{} in {} gives no answer to {}: {error}",
                call.service().title(),
                self.region,
                call.action()
            )))
        };
        let mut request = Request::post(self.address(call.service()))
            .body(HttpRequestBody::from(call.form()))
            .map_err(|error| unanswered(&error))?;
        let form = HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8");
        request.headers_mut().insert(CONTENT_TYPE, form);
        AwsAuthorizer::new(self.account.credential(), call.service().name(), &self.region)
            .try_authorize(&mut request, None)
            .map_err(|error| unanswered(&error))?;
        let answered = async {
            let answer = self.client.execute(request).await?;
            let (head, body) = answer.into_parts();
            Ok::<_, object_store::client::HttpError>((head, body.bytes().await?))
        };
        let (service, action) = (call.service().title(), call.action());
        let (head, body) = answered.await.map_err(|error| {
            // The request has not left this process.
            if let Some(refused) = refusal(&error) {
                return Failed::NotPermitted(refused.clone());
            }
            count_request(service, action, UNANSWERED);
            unanswered(&error)
        })?;
        // The status, and not the code in the body: the codes of EC2 are many.
        count_request(service, action, head.status.as_str());
        let text = String::from_utf8_lossy(&body);
        if head.status.is_success() {
            return Ok(text.into_owned());
        }
        let refused = ServiceError::read(call, &self.account, &self.account.redact(&text));
        let refused = refused.ok_or_else(|| unanswered(&head.status))?;
        let ahead = skew::ahead(&head.headers, clock::now());
        let is_server_error = head.status.is_server_error();
        Err(Failed::Refused(ServiceError {
            ahead,
            is_server_error,
            ..refused
        }))
    }
}

/// The endpoint of EC2 in a region, or the configured replacement.
pub(crate) fn endpoint(region: &str, replaced_by: Option<&str>) -> Result<Uri> {
    let place = match replaced_by {
        Some(endpoint) => endpoint.to_owned(),
        None => endpoint_of(region)?,
    };
    let url = place.parse::<Uri>().ok().filter(|url| {
        matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some_and(|host| !host.is_empty())
    });
    url.ok_or_else(|| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!("{place:?} is no URL of EC2: correct the region, or the flag --ec2-endpoint"),
        )
    })
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
    Ok(format!("https://ec2.{region}.{}", aws_domain(region)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use permit::Permit;
    use runtime::client::Credentials;

    use super::*;
    use crate::Ec2Access;

    fn open(keys: &Credentials, region: &str, endpoint: Option<&str>, permit: &Permit) -> Result<Ec2> {
        Ec2Access::new(endpoint.map(str::to_owned)).open(keys, region, permit)
    }

    fn account(keys: &[(&str, &str)]) -> Credentials {
        // As a process does at its start. A different test may have installed the provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let data = keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()));
        Credentials::new("garden/aws", data.collect::<BTreeMap<_, _>>())
    }

    fn opened(region: &str, endpoint: Option<&str>) -> Result<Ec2> {
        let keys = account(&[("accessKeyID", "AKIA-ONE"), ("secretAccessKey", "s3cret")]);
        open(&keys, region, endpoint, &Permit::sole("a test"))
    }

    #[test]
    fn a_region_is_a_place() {
        for (region, domain) in [
            ("eu-west-1", "amazonaws.com"),
            ("cn-north-1", "amazonaws.com.cn"),
            ("eusc-de-east-1", "amazonaws.eu"),
        ] {
            assert_eq!(
                endpoint_of(region).unwrap(),
                format!("https://ec2.{region}.{domain}")
            );
        }
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
        let error = open(
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
        let keys = account(&[
            ("accessKeyID", "AKIA-ONE"),
            ("secretAccessKey", "s3cret"),
            ("sessionToken", "t0ken"),
        ]);
        let permit = Permit::sole("a test");
        let ec2 = open(&keys, "eu-west-1", Some("http://127.0.0.1:1"), &permit).unwrap();
        assert_eq!(
            ec2.account.redact("it is s3cret of AKIA-ONE, with t0ken"),
            "it is (secretAccessKey) of (accessKeyID), with (sessionToken)"
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
        let text = runtime::process::metrics::Metrics::default().encode();
        let line = "external_requests_total{service=\"EC2\",operation=\"DescribeVpcs\",code=\"none\"} ";
        assert!(text.contains(line), "{line} is not in\n{text}");
    }

    #[tokio::test]
    async fn nothing_leaves_without_the_right() {
        let clock = permit::Clock::default();
        let issuer = permit::Issuer::new("a test", clock.clone(), clock.now() + Duration::from_secs(60));
        let keys = account(&[("accessKeyID", "a"), ("secretAccessKey", "b")]);
        let ec2 = open(&keys, "eu-west-1", Some("http://127.0.0.1:1"), &issuer.permit()).unwrap();
        issuer.end("it is over");
        let failed = ec2.tell(&Call::new("CreateVpc")).await.unwrap_err();
        assert_eq!(Error::from(failed).class(), "NotOwner");
    }
}
