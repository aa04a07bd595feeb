//! A proxy in front of EC2. The proxy counts calls by action, throttles, loses answers of completed calls,
//! refuses, and ends a permit after a number of calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use bytes::Bytes;
use futures::future::join;
use http::{HeaderValue, Request, Response, StatusCode, header::DATE};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use permit::Issuer;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::answers;

/// The fault that the proxy injects into calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// The first attempt of each call is throttled.
    ThrottleFirst,
    /// EC2 fails for the first attempt of each call, without an effect.
    FailFirst,
    /// Each call is carried out, and the first answer does not arrive: the proxy closes the connection.
    LoseFirst,
    /// All are throttled.
    ThrottleAll,
    /// The keys are no good.
    Refuse,
}

/// The treatment of a call.
enum Verdict {
    Pass,
    Lose,
    Answer(StatusCode, &'static str),
    Replay(Bytes),
    /// The objects are not listed yet.
    Unlisted,
}

/// Actions with the filter for the ids of the listed objects.
const LOOKUPS: [(&str, &str); 7] = [
    ("DescribeVpcs", "vpc-id"),
    ("DescribeInternetGateways", "internet-gateway-id"),
    ("DescribeSubnets", "subnet-id"),
    ("DescribeSecurityGroups", "group-id"),
    ("DescribeRouteTables", "route-table-id"),
    ("DescribeNatGateways", "nat-gateway-id"),
    ("DescribeAddresses", "allocation-id"),
];

/// A replaced text in answers to an action, in the items with an id.
struct Replacement {
    action: &'static str,
    id: String,
    former: &'static str,
    new: &'static str,
}

#[derive(Default)]
struct ProxyState {
    fault: Fault,
    met: BTreeSet<String>,
    calls: Vec<String>,
    ends: Option<(usize, Arc<Issuer>)>,
    /// Answers to calls that only read, by form.
    answers: BTreeMap<String, Bytes>,
    /// The action with delayed answers.
    delayed: Option<&'static str>,
    /// How long after the last change calls that only read show the former state.
    lag: Duration,
    stale_until: Option<Instant>,
    changed: BTreeSet<String>,
    /// Actions, and ids that the answers to the action do not list.
    hidden: BTreeSet<(&'static str, String)>,
    replacements: Vec<Replacement>,
    is_paged: bool,
    clock: Option<&'static str>,
    /// Answers by action and client token, where tokens are kept.
    by_token: Option<BTreeMap<String, Bytes>>,
    session_tokens: BTreeSet<String>,
}

/// A proxy in front of an EC2.
pub struct Proxy {
    /// The URL of the proxy.
    pub endpoint: String,
    seen: Arc<Mutex<ProxyState>>,
    _server: JoinSet<()>,
}

impl Proxy {
    /// Before the server on this port of loopback.
    pub async fn start(port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let seen = Arc::new(Mutex::new(ProxyState::default()));
        let mut server = JoinSet::new();
        server.spawn(serve(listener, port, Arc::clone(&seen)));
        Ok(Self {
            endpoint,
            seen,
            _server: server,
        })
    }

    /// Injects this fault from now on. All calls count as new.
    pub fn set(&self, fault: Fault) {
        let mut seen = lock(&self.seen);
        seen.fault = fault;
        seen.met.clear();
    }

    /// Delays lists of this action from now on, while lookups by id show the current state: EC2 does not list
    /// a new object yet.
    pub fn delay(&self, action: Option<&'static str>) {
        lock(&self.seen).delayed = action;
    }

    /// From now on EC2 is eventually consistent: a change is shown only after this time.
    pub fn lag(&self, lag: Duration) {
        lock(&self.seen).lag = lag;
    }

    /// EC2 lists now all that was changed until now.
    pub fn list_all(&self) {
        lock(&self.seen).stale_until = None;
    }

    /// Calls of this action do not list this id.
    pub fn hide(&self, action: &'static str, id: &str) {
        lock(&self.seen).hidden.insert((action, id.to_owned()));
    }

    /// Replaces a text in the answers to this action, in the items with this id.
    pub fn replace(&self, action: &'static str, id: &str, former: &'static str, new: &'static str) {
        lock(&self.seen).replacements.push(Replacement {
            action,
            id: id.to_owned(),
            former,
            new,
        });
    }

    /// All is listed again.
    pub fn show(&self) {
        lock(&self.seen).hidden.clear();
    }

    /// Lists come in pages of a single item.
    pub fn page(&self) {
        lock(&self.seen).is_paged = true;
    }

    /// The date that refusals have.
    pub fn set_clock(&self, date: &'static str) {
        lock(&self.seen).clock = Some(date);
    }

    /// A client token gets the first answer again, as from EC2. moto ignores client tokens.
    pub fn keep_tokens(&self) {
        lock(&self.seen).by_token = Some(BTreeMap::new());
    }

    /// The session tokens of all calls.
    pub fn session_tokens(&self) -> BTreeSet<String> {
        lock(&self.seen).session_tokens.clone()
    }

    /// Ends the permit after this number of further calls, before the answer to the last call.
    pub fn end_after(&self, calls: usize, issuer: Arc<Issuer>) {
        let mut seen = lock(&self.seen);
        seen.ends = Some((seen.calls.len() + calls, issuer));
    }

    /// The calls so far, by action, in order.
    pub fn calls(&self) -> Vec<String> {
        lock(&self.seen).calls.clone()
    }

    /// The calls that change an object, without the first `from` calls.
    pub fn writes_since(&self, from: usize) -> Vec<String> {
        let calls = self.calls();
        let later = calls.into_iter().skip(from);
        let is_read = |action: &str| action.starts_with("Describe") || action.starts_with("Get");
        later.filter(|action| !is_read(action)).collect()
    }

    /// How many calls of each kind there were.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for action in self.calls() {
            *counts.entry(action).or_default() += 1;
        }
        counts
    }
}

fn lock(seen: &Mutex<ProxyState>) -> MutexGuard<'_, ProxyState> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, port: u16, seen: Arc<Mutex<ProxyState>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let seen = Arc::clone(&seen);
        connections.spawn(async move {
            let service = service_fn(move |request| answer(request, port, Arc::clone(&seen)));
            // An error of the service closes the connection without an answer. So an answer is lost.
            let _ended = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    port: u16,
    seen: Arc<Mutex<ProxyState>>,
) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let form = String::from_utf8_lossy(&body).into_owned();
    let session = head.headers.get("x-amz-security-token");
    let session = session.and_then(|value| value.to_str().ok());
    lock(&seen).session_tokens.extend(session.map(str::to_owned));
    let verdict = judge(&mut lock(&seen), &form);
    match verdict {
        Verdict::Answer(status, code) => Ok(refusal(status, code, lock(&seen).clock)),
        Verdict::Replay(answer) => Ok(lock(&seen).shown(&form, &answer)),
        Verdict::Unlisted => {
            let (_, read) = forward(Request::from_parts(head, Full::new(body)), port).await?;
            let text = answers::empty(&String::from_utf8_lossy(&read));
            Ok(Response::new(Full::new(Bytes::from(text))))
        }
        verdict => {
            let (answer, read) = forward(Request::from_parts(head, Full::new(body)), port).await?;
            let mut seen = lock(&seen);
            let answer = match answer.status().is_success() {
                true if form.contains("Action=Describe") => seen.shown(&form, &read),
                is_done => {
                    seen.changes(is_done, &form, &read);
                    answer
                }
            };
            if answer.status().is_success() && form.contains("Action=Describe") {
                seen.answers.insert(form, read);
            }
            if seen.ends.as_ref().is_some_and(|(at, _)| seen.calls.len() >= *at)
                && let Some((_, issuer)) = seen.ends.take()
            {
                issuer.end("the test ends it");
            }
            match verdict {
                Verdict::Lose => Err(io::Error::other("the answer is lost")),
                _ => Ok(answer),
            }
        }
    }
}

fn judge(seen: &mut ProxyState, form: &str) -> Verdict {
    let pairs: Vec<&str> = form.split('&').collect();
    let action = pairs.iter().find_map(|pair| pair.strip_prefix("Action="));
    seen.calls.push(action.unwrap_or_default().to_owned());
    let (listed, _) = page_of(form);
    let is_stale = seen.stale_until.is_some_and(|until| Instant::now() < until);
    let is_delayed = action == seen.delayed && form.contains("Filter.1.");
    let is_former = is_delayed || is_stale || listed != form;
    if let Some(former) = seen.answers.get(&listed).filter(|_| is_former) {
        return Verdict::Replay(former.clone());
    }
    if is_stale && is_lookup(form) {
        return Verdict::Unlisted;
    }
    let by_token = seen.by_token.as_ref().zip(token_of(form));
    if let Some(first) = by_token.and_then(|(answers, token)| answers.get(&token)) {
        return Verdict::Replay(first.clone());
    }
    let known: Vec<&str> = pairs
        .into_iter()
        .filter(|pair| !pair.starts_with("ClientToken="))
        .collect();
    let first = match seen.fault {
        Fault::None | Fault::ThrottleAll | Fault::Refuse => false,
        Fault::ThrottleFirst | Fault::FailFirst | Fault::LoseFirst => seen.met.insert(known.join("&")),
    };
    let throttled = Verdict::Answer(StatusCode::SERVICE_UNAVAILABLE, "RequestLimitExceeded");
    match seen.fault {
        Fault::ThrottleFirst if first => throttled,
        Fault::ThrottleAll => throttled,
        // A code that EC2's documentation does not have.
        Fault::FailFirst if first => {
            Verdict::Answer(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError")
        }
        Fault::LoseFirst if first => Verdict::Lose,
        Fault::Refuse => Verdict::Answer(StatusCode::UNAUTHORIZED, "AuthFailure"),
        _ => Verdict::Pass,
    }
}

impl ProxyState {
    /// Records a change.
    fn changes(&mut self, is_done: bool, form: &str, answer: &Bytes) {
        let now = Instant::now();
        if let (true, Some(answers), Some(token)) = (is_done, &mut self.by_token, token_of(form)) {
            answers.insert(token, answer.clone());
        }
        // A repeated call changes no object again.
        if is_done && !self.lag.is_zero() && self.changed.insert(form.to_owned()) {
            self.stale_until = Some(now + self.lag);
        }
    }

    /// The answer to a call that only reads, with hidden and replaced items.
    fn shown(&self, form: &str, answer: &Bytes) -> Response<Full<Bytes>> {
        let mut text = String::from_utf8_lossy(answer).into_owned();
        for (action, id) in &self.hidden {
            if form.contains(&format!("Action={action}&")) {
                text = answers::without(&text, id);
            }
        }
        for each in &self.replacements {
            if form.contains(&format!("Action={}&", each.action)) {
                text = answers::replaced(&text, &each.id, each.former, each.new);
            }
        }
        if self.is_paged {
            text = answers::page(&text, page_of(form).1);
        }
        Response::new(Full::new(Bytes::from(text)))
    }
}

/// Whether a call looks up objects by id.
fn is_lookup(form: &str) -> bool {
    LOOKUPS.iter().any(|(action, filter)| {
        form.starts_with(&format!("Action={action}&")) && form.contains(&format!("Filter.1.Name={filter}&"))
    })
}

/// The action of a form with the client token.
fn token_of(form: &str) -> Option<String> {
    let of = |name: &str| form.split('&').find_map(|pair| pair.strip_prefix(name));
    Some(format!("{}/{}", of("Action=")?, of("ClientToken=")?))
}

/// The form without a page, and the number of the page.
fn page_of(form: &str) -> (String, usize) {
    let mark = format!("&NextToken={}", answers::PAGE);
    match form.split_once(&mark) {
        Some((listed, number)) => (listed.to_owned(), number.parse().unwrap_or_default()),
        None => (form.to_owned(), 0),
    }
}

fn refusal(status: StatusCode, code: &str, clock: Option<&'static str>) -> Response<Full<Bytes>> {
    let message = match code {
        "AuthFailure" => "AWS was not able to validate the provided access credentials",
        _ => "It is a test.",
    };
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message>\
         </Error></Errors><RequestID>0</RequestID></Response>"
    );
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    if let Some(date) = clock {
        response
            .headers_mut()
            .insert(DATE, HeaderValue::from_static(date));
    }
    response
}

async fn forward(request: Request<Full<Bytes>>, port: u16) -> io::Result<(Response<Full<Bytes>>, Bytes)> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(io::Error::other)?;
    let send = async move {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok::<_, hyper::Error>((head.status, body))
    };
    let (answer, _closed) = join(send, connection).await;
    let (status, body) = answer.map_err(io::Error::other)?;
    let mut response = Response::new(Full::new(body.clone()));
    *response.status_mut() = status;
    Ok((response, body))
}
