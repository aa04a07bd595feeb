//! Keys of a role on paused time, and a token service that gets no request without the permit.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::sync::Mutex as Shared;

use futures::future::join_all;
use http::header::DATE;
use object_store::client::{HttpResponse, HttpService};
use permit::{Issuer, NotPermitted, Permit};
use tokio::net::TcpListener;
use tokio::time::advance;

use super::*;
use crate::StoreConnector;

const ARN: &str = "arn:aws:iam::123456789012:role/backups";
const STS: &str = "https://sts.eu-west-1.amazonaws.com/";
const TOKEN: &str = "aGVhZA.Ym9keQ.c2ln";
const RENEWED: &str = "aGVhZA.bmV3.c2ln";
const MINUTE: Duration = Duration::from_secs(60);

/// A fake token service. Keys have the number of the request, and live for an hour.
#[derive(Clone, Debug, Default)]
struct FakeSts {
    forms: Arc<Shared<Vec<String>>>,
    /// Answers instead of keys, the next first.
    refusals: Arc<Shared<VecDeque<(u16, String)>>>,
}

impl FakeSts {
    fn refuse(&self, status: u16, code: &str, message: &str) {
        let body = format!(
            "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error></ErrorResponse>"
        );
        self.refusals.lock().unwrap().push_back((status, body));
    }

    fn requests(&self) -> usize {
        self.forms.lock().unwrap().len()
    }

    fn last_form(&self) -> String {
        self.forms.lock().unwrap().last().cloned().unwrap()
    }
}

#[async_trait]
impl HttpService for FakeSts {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        assert_eq!(
            (request.method(), request.uri().to_string()),
            (&Method::POST, STS.to_owned())
        );
        let form = request.body().as_bytes().unwrap().to_vec();
        let number = {
            let mut forms = self.forms.lock().unwrap();
            forms.push(String::from_utf8(form).unwrap());
            forms.len()
        };
        // Further callers run before the answer.
        tokio::task::yield_now().await;
        let refusal = self.refusals.lock().unwrap().pop_front();
        let (status, body) = refusal.unwrap_or_else(|| (200, keys(number)));
        let mut answer = HttpResponse::new(body.into());
        *answer.status_mut() = status.try_into().unwrap();
        let date = HeaderValue::from_static("Fri, 27 Nov 2026 10:00:00 GMT");
        answer.headers_mut().insert(DATE, date);
        Ok(answer)
    }
}

fn keys(number: usize) -> String {
    format!(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA{number}</AccessKeyId>\
         <SecretAccessKey>s3cret</SecretAccessKey><SessionToken>session{number}</SessionToken>\
         <Expiration>2026-11-27T11:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>\
         </AssumeRoleWithWebIdentityResponse>"
    )
}

fn role(sts: &str) -> WebIdentityRole {
    WebIdentityRole {
        arn: ARN.to_owned(),
        sts: sts.to_owned(),
    }
}

/// A role with the fake service, and the token in the Secret.
fn provider(sts: &FakeSts) -> (WebIdentity, Arc<Shared<String>>) {
    let token = Arc::new(Shared::new(TOKEN.to_owned()));
    let present = Arc::clone(&token);
    let read = move || Ok(present.lock().unwrap().clone());
    let client = HttpClient::new(sts.clone());
    let provider = WebIdentity::new(role(STS), client, RetryConfig::default(), read);
    (provider, token)
}

async fn key_id(provider: &WebIdentity) -> String {
    provider.get_credential().await.unwrap().key_id.clone()
}

async fn failure(provider: &WebIdentity) -> (WebIdentityCause, String) {
    let error = provider.get_credential().await.unwrap_err();
    let found = WebIdentityError::find(&error).unwrap();
    (found.cause(), format!("{error} {error:?}"))
}

#[tokio::test(start_paused = true)]
async fn keys_are_renewed_five_minutes_before_their_end_with_the_token_of_that_moment() {
    let sts = FakeSts::default();
    let (provider, token) = provider(&sts);
    let issued = provider.get_credential().await.unwrap();
    assert_eq!(
        (issued.key_id.as_str(), issued.token.as_deref()),
        ("ASIA1", Some("session1"))
    );
    let form = sts.last_form();
    for field in [
        "Action=AssumeRoleWithWebIdentity",
        "RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fbackups",
        &format!("WebIdentityToken={TOKEN}"),
    ] {
        assert!(form.split('&').any(|part| part == field), "{form}");
    }
    RENEWED.clone_into(&mut token.lock().unwrap());
    advance(54 * MINUTE).await;
    assert_eq!((key_id(&provider).await.as_str(), sts.requests()), ("ASIA1", 1));
    advance(2 * MINUTE).await;
    assert_eq!((key_id(&provider).await.as_str(), sts.requests()), ("ASIA2", 2));
    assert!(sts.last_form().contains(RENEWED));
}

#[tokio::test(start_paused = true)]
async fn requests_at_the_same_time_share_a_single_request_for_keys() {
    let sts = FakeSts::default();
    let (provider, _) = provider(&sts);
    let issued = join_all((0..5).map(|_| key_id(&provider))).await;
    assert_eq!((issued, sts.requests()), (vec!["ASIA1".to_owned(); 5], 1));
}

#[tokio::test(start_paused = true)]
async fn valid_keys_are_used_until_their_end_while_no_new_keys_are_issued() {
    let sts = FakeSts::default();
    let (provider, _) = provider(&sts);
    assert_eq!(key_id(&provider).await, "ASIA1");
    sts.refuse(503, "", "");
    advance(56 * MINUTE).await;
    assert_eq!((key_id(&provider).await.as_str(), sts.requests()), ("ASIA1", 2));
    // Not at each request of the store.
    assert_eq!((key_id(&provider).await.as_str(), sts.requests()), ("ASIA1", 2));
    sts.refuse(400, "ExpiredTokenException", "");
    advance(MINUTE).await;
    assert_eq!((key_id(&provider).await.as_str(), sts.requests()), ("ASIA1", 3));
    sts.refuse(400, "ExpiredTokenException", "");
    advance(4 * MINUTE).await;
    assert_eq!(failure(&provider).await.0, WebIdentityCause::Token);
    assert_eq!(key_id(&provider).await, "ASIA5");
}

#[tokio::test(start_paused = true)]
async fn temporary_failures_of_the_token_service_are_repeated() {
    let sts = FakeSts::default();
    let (provider, _) = provider(&sts);
    sts.refuse(500, "", "");
    sts.refuse(400, "IDPCommunicationError", "");
    assert_eq!(key_id(&provider).await, "ASIA3");
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_reported_with_its_remedy_and_without_the_token() {
    let sts = FakeSts::default();
    let (provider, token) = provider(&sts);
    sts.refuse(400, "ExpiredTokenException", &format!("Token {TOKEN} expired"));
    let (cause, text) = failure(&provider).await;
    assert_eq!((cause, sts.requests()), (WebIdentityCause::Token, 1), "{text}");
    for part in [ARN, "has expired", "renew the key token", "Token (token) expired"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(TOKEN), "{text}");
    // A failure is not kept.
    RENEWED.clone_into(&mut token.lock().unwrap());
    assert_eq!(key_id(&provider).await, "ASIA2");
    let shown = format!("{provider:?}");
    assert!(
        shown.contains(ARN) && !shown.contains(RENEWED) && !shown.contains("s3cret"),
        "{shown}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_that_became_invalid_is_not_sent() {
    let sts = FakeSts::default();
    let (provider, token) = provider(&sts);
    "half a token".clone_into(&mut token.lock().unwrap());
    let (cause, text) = failure(&provider).await;
    assert_eq!((cause, sts.requests()), (WebIdentityCause::Secret, 0));
    assert!(text.contains("not a JWT") && !text.contains("half"), "{text}");
}

/// A role with requests that need this permit, and the listener in the place of the token service.
async fn listened(permit: &Permit) -> (WebIdentity, TcpListener) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let role = role(&format!("http://{}/", listener.local_addr().unwrap()));
    let client = StoreConnector::new(permit, MINUTE, MINUTE).client();
    let retry = RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    };
    let provider = WebIdentity::new(role, client, retry, || Ok(TOKEN.to_owned()));
    (provider, listener)
}

#[tokio::test]
async fn no_request_for_keys_leaves_without_the_permit() {
    let clock = Clock::default();
    let issuer = Issuer::new("a right", clock.clone(), clock.now() + MINUTE);
    let (provider, listener) = listened(&issuer.permit()).await;
    let (answered, ()) = tokio::join!(provider.get_credential(), async {
        drop(listener.accept().await.unwrap());
    });
    answered.unwrap_err();

    let (provider, listener) = listened(&issuer.permit()).await;
    issuer.end("another seed has it");
    let error = provider.get_credential().await.unwrap_err();
    let error: &(dyn StdError + 'static) = &error;
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    assert!(causes.any(<dyn StdError>::is::<NotPermitted>), "{error:?}");
    let listener = listener.into_std().unwrap();
    let accepted = listener.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(accepted, Err(std::io::ErrorKind::WouldBlock));
}
