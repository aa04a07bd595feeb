//! The connected agents, and connections through an agent.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, uri::Authority};
use http_body_util::Empty;
use hyper::{client::conn::http2::SendRequest, upgrade::Upgraded};
use tokio::{sync::watch, time::timeout};
use tracing::info;

use super::{
    choose::{Candidate, choose},
    metrics::Numbers,
};
use crate::{
    headers::WHY,
    limits::{AGENTS, ANSWER, WAIT_FOR_AGENT},
};

/// Sends requests to an agent.
pub(super) type Ask = SendRequest<Empty<Bytes>>;

/// An agent that is connected.
struct Agent {
    id: u64,
    node: Option<IpAddr>,
    ask: Ask,
    streams: AtomicUsize,
}

/// Why there is no connection: a status of HTTP and a sentence.
#[derive(Debug, PartialEq, Eq)]
pub struct DialError {
    /// 503 without a connected agent, 504 without an answer, else the status of the agent.
    pub status: StatusCode,
    /// The fault.
    pub why: String,
}

/// The agents of a shoot.
pub struct Agents {
    known: watch::Sender<Vec<Arc<Agent>>>,
    next: AtomicU64,
    numbers: Numbers,
}

/// A connection through an agent.
pub struct Opened {
    /// The bytes of the connection.
    pub stream: Upgraded,
    /// Must be held while the connection is open.
    pub place: StreamGuard,
}

/// Counts a connection of an agent.
pub struct StreamGuard {
    agent: Arc<Agent>,
    numbers: Numbers,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.agent.streams.fetch_sub(1, Ordering::Relaxed);
        self.numbers.streams.dec();
    }
}

impl Agents {
    /// None yet.
    #[must_use]
    pub fn new(numbers: Numbers) -> Self {
        Self {
            known: watch::Sender::default(),
            next: AtomicU64::new(1),
            numbers,
        }
    }

    /// Adds a connected agent and returns the agent's number; `None` at the limit of agents.
    pub(super) fn add(&self, ask: Ask, node: Option<IpAddr>) -> Option<u64> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let agent = Arc::new(Agent {
            id,
            node,
            ask,
            streams: AtomicUsize::new(0),
        });
        let mut added = false;
        self.known.send_modify(|known| {
            if known.len() < AGENTS {
                known.push(agent);
                added = true;
            }
            self.numbers
                .agents
                .set(i64::try_from(known.len()).unwrap_or(i64::MAX));
        });
        added.then_some(id)
    }

    /// Forgets an agent.
    pub(super) fn remove(&self, id: u64) {
        self.known.send_modify(|known| {
            known.retain(|agent| agent.id != id);
            self.numbers
                .agents
                .set(i64::try_from(known.len()).unwrap_or(i64::MAX));
        });
    }

    /// Opens a connection to this target. If an agent fails, the next agent is tried. If the target is not
    /// reachable, no further agent is tried, because all agents have the same network.
    ///
    /// # Errors
    /// The reason without a connection, within [`WAIT_FOR_AGENT`] and [`ANSWER`] for each agent.
    pub async fn open(&self, target: &Authority) -> Result<Opened, DialError> {
        let opened = self.open_by_one(target).await;
        let count = if opened.is_ok() {
            &self.numbers.opened
        } else {
            &self.numbers.failed
        };
        count.inc();
        opened
    }

    async fn open_by_one(&self, target: &Authority) -> Result<Opened, DialError> {
        let mut tried = Vec::new();
        let mut last = None;
        loop {
            let Some(place) = self.reserve_stream(target, &tried).await else {
                return Err(last.unwrap_or_else(|| self.nobody()));
            };
            let id = place.agent.id;
            match timeout(ANSWER, ask(place, target)).await {
                Ok(Answer::Opened(opened)) => return Ok(opened),
                Ok(Answer::Refused(refusal)) => return Err(refusal),
                Ok(Answer::Lost(why)) => {
                    info!(agent = id, why, "an agent failed; the next one is asked");
                    last = Some(DialError {
                        status: StatusCode::BAD_GATEWAY,
                        why: format!("the connection to the agent of the shoot was lost: {why}"),
                    });
                }
                Err(_) => {
                    info!(agent = id, "an agent does not answer; the next one is asked");
                    last = Some(DialError {
                        status: StatusCode::GATEWAY_TIMEOUT,
                        why: format!("no agent of the shoot answered within {} s", ANSWER.as_secs()),
                    });
                }
            }
            tried.push(id);
        }
    }

    /// Reserves a connection at an agent that was not tried yet. Before the first try, waits for an agent.
    async fn reserve_stream(&self, target: &Authority, tried: &[u64]) -> Option<StreamGuard> {
        let target = target.host().trim_matches(['[', ']']).parse().ok();
        let mut known = self.known.subscribe();
        let mut found = None;
        let look = |known: &Vec<Arc<Agent>>| {
            found = self.take(known, target, tried);
            found.is_some() || !tried.is_empty()
        };
        // A timeout has the same result as no agent.
        let _ = timeout(WAIT_FOR_AGENT, known.wait_for(look)).await;
        found
    }

    fn take(&self, known: &[Arc<Agent>], target: Option<IpAddr>, tried: &[u64]) -> Option<StreamGuard> {
        let candidates: Vec<_> = known
            .iter()
            .filter(|agent| !agent.ask.is_closed())
            .map(|agent| Candidate {
                id: agent.id,
                node: agent.node,
                streams: agent.streams.load(Ordering::Relaxed),
            })
            .collect();
        let id = choose(&candidates, target, tried)?;
        let agent = Arc::clone(known.iter().find(|agent| agent.id == id)?);
        agent.streams.fetch_add(1, Ordering::Relaxed);
        self.numbers.streams.inc();
        Some(StreamGuard {
            agent,
            numbers: self.numbers.clone(),
        })
    }

    fn nobody(&self) -> DialError {
        let connected = self.known.borrow().len();
        let why = if connected == 0 {
            "no agent of the shoot is connected to the tunnel: its nodes cannot be reached".to_owned()
        } else {
            format!("all {connected} agents of the shoot carry as many connections as they may")
        };
        DialError {
            status: StatusCode::SERVICE_UNAVAILABLE,
            why,
        }
    }
}

enum Answer {
    Opened(Opened),
    Refused(DialError),
    Lost(String),
}

/// Sends the request to an agent. Before the answer no bytes were sent, so a second agent may be tried.
async fn ask(place: StreamGuard, target: &Authority) -> Answer {
    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = Uri::from(target.clone());
    let mut ask = place.agent.ask.clone();
    let response = match async {
        ask.ready().await?;
        ask.send_request(request).await
    }
    .await
    {
        Ok(response) => response,
        Err(error) => return Answer::Lost(error.to_string()),
    };
    let status = response.status();
    if status != StatusCode::OK {
        let why = response.headers().get(WHY).and_then(|why| why.to_str().ok());
        let why = why
            .unwrap_or("the agent of the shoot does not say why")
            .to_owned();
        return Answer::Refused(DialError { status, why });
    }
    match hyper::upgrade::on(response).await {
        Ok(stream) => Answer::Opened(Opened { stream, place }),
        Err(error) => Answer::Lost(error.to_string()),
    }
}
