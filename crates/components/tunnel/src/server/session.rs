//! An agent's connection, from the handshake to the end.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::server::TlsStream;
use tracing::{info, warn};

use super::agents::Agents;
use crate::{
    headers::NODE,
    limits::{
        AGENTS, ALIVE_EVERY, ALIVE_WITHIN, HANDSHAKE, HEADERS, SEND_BUFFER, SHARED_WINDOW, STREAMS, WINDOW,
    },
};

/// Keeps an agent in the list while the agent's connection lasts. In HTTP/2 this process is the client: a
/// frame that is not an answer ends the connection, so the agent cannot open a stream.
pub(super) async fn keep(agents: Arc<Agents>, stream: TlsStream<TcpStream>, from: SocketAddr) {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(SHARED_WINDOW)
        .initial_max_send_streams(STREAMS as usize)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(u32::try_from(HEADERS).unwrap_or(u32::MAX))
        .keep_alive_interval(ALIVE_EVERY)
        .keep_alive_timeout(ALIVE_WITHIN)
        .keep_alive_while_idle(true);
    let (ask, connection) = match builder.handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await {
        Ok(both) => both,
        Err(error) => return warn!(%from, %error, "an agent does not speak as it should"),
    };
    let life = async {
        let node = match timeout(HANDSHAKE, node_of(ask.clone())).await {
            Ok(Ok(node)) => node,
            Ok(Err(why)) => return warn!(%from, why, "an agent does not answer as it should"),
            Err(_) => return warn!(%from, "an agent does not answer in time"),
        };
        let Some(id) = agents.add(ask, node) else {
            return warn!(%from, "an agent is sent away: there are {AGENTS} already");
        };
        let _known = AgentRegistration { agents: &agents, id };
        info!(%from, agent = id, ?node, "an agent is connected");
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = connection => match ended {
            Ok(()) => info!(%from, "an agent has left"),
            Err(error) => info!(%from, %error, "an agent is lost"),
        },
        () = life => {}
    }
}

/// Removes the agent from the list on every kind of end of the connection.
struct AgentRegistration<'a> {
    agents: &'a Agents,
    id: u64,
}

impl Drop for AgentRegistration<'_> {
    fn drop(&mut self) {
        self.agents.remove(self.id);
    }
}

/// Asks an agent for the address of the agent's node.
async fn node_of(mut ask: SendRequest<Empty<Bytes>>) -> Result<Option<IpAddr>, String> {
    let request = Request::get("http://agent/")
        .body(Empty::new())
        .map_err(|e| e.to_string())?;
    let answer = ask.send_request(request).await.map_err(|e| e.to_string())?;
    let node = answer.headers().get(NODE).and_then(|node| node.to_str().ok());
    Ok(node.and_then(|node| node.parse().ok()))
}
