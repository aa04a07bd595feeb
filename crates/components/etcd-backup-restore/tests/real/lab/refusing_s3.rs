use super::{Lab, S3Server, set_tls_provider};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use axum::http::{Method, Response, StatusCode, Uri};
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

/// Larger than a part of an upload.
const LARGEST: usize = 16 << 20;

/// The S3 server of a lab behind a proxy that answers requests for single keys with an error of S3.
pub struct RefusingS3 {
    rules: Arc<Mutex<Vec<Rule>>>,
    _proxy: JoinSet<()>,
}

struct Rule {
    method: Method,
    key: String,
    status: StatusCode,
    code: &'static str,
    /// Requests that are still to be refused.
    left: usize,
    refused: usize,
}

impl Rule {
    fn matches(&self, uri: &Uri) -> bool {
        match self.key.strip_prefix('?') {
            Some(start) => uri.query().is_some_and(|query| query.starts_with(start)),
            None => uri.path().ends_with(&self.key),
        }
    }
}

#[derive(Clone)]
struct Proxy {
    rules: Arc<Mutex<Vec<Rule>>>,
    server: String,
    client: reqwest::Client,
}

impl RefusingS3 {
    /// Starts the proxy and makes it the store of the lab.
    pub async fn start(lab: &Lab) -> Self {
        Self::start_before(lab, &lab.s3.endpoint).await
    }

    /// Starts the proxy before a different server and makes it the store of the lab.
    pub async fn start_before(lab: &Lab, upstream: &str) -> Self {
        set_tls_provider();
        let rules = Arc::<Mutex<Vec<Rule>>>::default();
        let proxy = Proxy {
            rules: rules.clone(),
            server: upstream.to_owned(),
            client: reqwest::Client::new(),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        S3Server::write_credentials_of(&endpoint, &lab.credentials());
        let routes = Router::new().fallback(answer).with_state(proxy);
        let mut serves = JoinSet::new();
        serves.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            rules,
            _proxy: serves,
        }
    }

    /// Refuses the next `times` requests with this method whose path ends with `key`, or whose query begins
    /// with `key` if `key` begins with a question mark.
    pub fn refuse(
        &self,
        method: Method,
        key: &str,
        (status, code): (StatusCode, &'static str),
        times: usize,
    ) {
        self.rules.lock().unwrap().push(Rule {
            method,
            key: key.to_owned(),
            status,
            code,
            left: times,
            refused: 0,
        });
    }

    /// Requests that were refused so far.
    pub fn refused(&self) -> usize {
        self.rules.lock().unwrap().iter().map(|rule| rule.refused).sum()
    }
}

async fn answer(State(proxy): State<Proxy>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, LARGEST).await.unwrap();
    if let Some((status, code)) = proxy.refusal(&head.method, &head.uri) {
        let text = format!("<Error><Code>{code}</Code><Message>refused by the test</Message></Error>");
        let answer = Response::builder().status(status);
        return answer.body(Body::from(text)).unwrap();
    }
    // The signature covers the address that the client used, which stays in the headers.
    let sent = proxy
        .client
        .request(head.method.clone(), format!("{}{}", proxy.server, head.uri))
        .headers(head.headers)
        .body(body)
        .send()
        .await
        .unwrap();
    let mut answer = Response::builder().status(sent.status());
    for (name, value) in sent.headers() {
        // The length of an answer to HEAD is that of the object.
        let is_framing =
            *name == TRANSFER_ENCODING || (*name == CONTENT_LENGTH && head.method != Method::HEAD);
        if !is_framing {
            answer = answer.header(name, value);
        }
    }
    answer.body(Body::from(sent.bytes().await.unwrap())).unwrap()
}

impl Proxy {
    fn refusal(&self, method: &Method, uri: &Uri) -> Option<(StatusCode, &'static str)> {
        let mut rules = self.rules.lock().unwrap();
        let rule = rules
            .iter_mut()
            .find(|rule| rule.left > 0 && rule.method == *method && rule.matches(uri))?;
        rule.left -= 1;
        rule.refused += 1;
        Some((rule.status, rule.code))
    }
}
