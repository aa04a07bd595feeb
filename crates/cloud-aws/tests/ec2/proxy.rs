//! Stands before EC2: counts calls by what they ask for, throttles, loses answers of calls that were carried out, refuses, and ends a
//! right after some call.
#![allow(dead_code)] // each test program uses its own part of it

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::Result;
use bytes::Bytes;
use futures::future::join;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use permit::Issuer;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// What is done to calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Each is throttled when it comes for the first time.
    ThrottleFirst,
    /// Each is carried out, and its first answer does not arrive: the connection is closed.
    LoseFirst,
    /// All are throttled.
    ThrottleAll,
    /// The keys are no good.
    Refuse,
}

/// What a call meets.
enum Verdict {
    Pass,
    Lose,
    Answer(StatusCode, &'static str),
}

#[derive(Default)]
struct Seen {
    fault: Fault,
    met: BTreeSet<String>,
    calls: Vec<String>,
    ends: Option<(usize, Arc<Issuer>)>,
}

/// Before one EC2.
pub struct Proxy {
    /// Where it is.
    pub endpoint: String,
    seen: Arc<Mutex<Seen>>,
    _server: JoinSet<()>,
}

impl Proxy {
    /// Before the server on this port of loopback.
    pub async fn start(port: u16) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut server = JoinSet::new();
        server.spawn(serve(listener, port, Arc::clone(&seen)));
        Ok(Self {
            endpoint,
            seen,
            _server: server,
        })
    }

    /// From now on, with nothing met.
    pub fn set(&self, fault: Fault) {
        let mut seen = lock(&self.seen);
        seen.fault = fault;
        seen.met.clear();
    }

    /// The right ends when so many more calls were carried out, before the last one is answered.
    pub fn end_after(&self, calls: usize, issuer: Arc<Issuer>) {
        let mut seen = lock(&self.seen);
        seen.ends = Some((seen.calls.len() + calls, issuer));
    }

    /// The calls so far, by what they ask for, in order.
    pub fn calls(&self) -> Vec<String> {
        lock(&self.seen).calls.clone()
    }

    /// Of them those that change something, since the first `from`.
    pub fn writes_since(&self, from: usize) -> Vec<String> {
        let calls = self.calls();
        let later = calls.into_iter().skip(from);
        later.filter(|action| !action.starts_with("Describe")).collect()
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

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, port: u16, seen: Arc<Mutex<Seen>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let seen = Arc::clone(&seen);
        connections.spawn(async move {
            let service = service_fn(move |request| answer(request, port, Arc::clone(&seen)));
            // An error of the service closes the connection without an answer: that is how one is lost.
            let _ended = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    port: u16,
    seen: Arc<Mutex<Seen>>,
) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let verdict = judge(&mut lock(&seen), &String::from_utf8_lossy(&body));
    match verdict {
        Verdict::Answer(status, code) => Ok(refusal(status, code)),
        verdict => {
            let answer = forward(Request::from_parts(head, Full::new(body)), port).await?;
            let mut seen = lock(&seen);
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

fn judge(seen: &mut Seen, form: &str) -> Verdict {
    let pairs: Vec<&str> = form.split('&').collect();
    let action = pairs.iter().find_map(|pair| pair.strip_prefix("Action="));
    seen.calls.push(action.unwrap_or_default().to_owned());
    let known: Vec<&str> = pairs
        .into_iter()
        .filter(|pair| !pair.starts_with("ClientToken="))
        .collect();
    let first = match seen.fault {
        Fault::None | Fault::ThrottleAll | Fault::Refuse => false,
        Fault::ThrottleFirst | Fault::LoseFirst => seen.met.insert(known.join("&")),
    };
    let throttled = Verdict::Answer(StatusCode::SERVICE_UNAVAILABLE, "RequestLimitExceeded");
    match seen.fault {
        Fault::ThrottleFirst if first => throttled,
        Fault::ThrottleAll => throttled,
        Fault::LoseFirst if first => Verdict::Lose,
        Fault::Refuse => Verdict::Answer(StatusCode::UNAUTHORIZED, "AuthFailure"),
        _ => Verdict::Pass,
    }
}

fn refusal(status: StatusCode, code: &str) -> Response<Full<Bytes>> {
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code><Message>It is a test.</Message>\
         </Error></Errors><RequestID>0</RequestID></Response>"
    );
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}

async fn forward(request: Request<Full<Bytes>>, port: u16) -> io::Result<Response<Full<Bytes>>> {
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
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    Ok(response)
}
