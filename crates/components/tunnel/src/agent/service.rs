//! The requests of the server to an agent: the address of the agent's node, and connections.

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::{body::Incoming, upgrade};
use hyper_util::rt::TokioIo;
use prometheus_client::metrics::gauge::Gauge;
use tokio::{net::TcpStream, task::JoinSet};
use tracing::debug;

use super::reach::{Reach, Unreachable};
use crate::{
    headers::{NODE, WHY},
    limits::IDLE,
    pipe,
};

/// The state behind the answers, for the lifetime of the process.
pub(super) struct Carrier {
    /// Where connections may lead.
    pub reach: Reach,
    /// Address of the node.
    pub node: Option<IpAddr>,
    /// Connections that are open.
    pub open: Gauge,
}

/// The target connections of a single server connection. Dropping the value ends all of these connections.
#[derive(Default)]
pub(super) struct Carried(Mutex<JoinSet<()>>);

impl Carried {
    fn add(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Ended connections take no memory.
        while all.try_join_next().is_some() {}
        all.spawn(connection);
    }
}

/// Answers a request.
pub(super) async fn answer(
    carrier: Arc<Carrier>,
    streams: Arc<Carried>,
    request: Request<Incoming>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    if request.method() != Method::CONNECT {
        return Ok(about(&carrier));
    }
    let target = request.uri().authority().cloned();
    let dialled = match target {
        Some(target) => carrier.reach.dial(target.host(), target.port_u16()).await,
        None => Err(Unreachable::refused("there is no target")),
    };
    Ok(match dialled {
        Ok(stream) => {
            streams.add(carry(carrier.open.clone(), request, stream));
            Response::new(Empty::new())
        }
        Err(unreachable) => refused(&unreachable),
    })
}

/// An open connection in the gauge of open connections.
struct Counted(Gauge);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Copies bytes until an end closes the connection.
async fn carry(open: Gauge, request: Request<Incoming>, stream: TcpStream) {
    open.inc();
    let _open = Counted(open);
    let Ok(asked) = upgrade::on(request).await else {
        return;
    };
    if let Err(error) = pipe::join(TokioIo::new(asked), stream, IDLE).await {
        debug!(%error, "a connection broke off");
    }
}

/// Reports the address of the agent's node.
fn about(carrier: &Carrier) -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    let node = carrier.node.map(|node| node.to_string()).unwrap_or_default();
    if let Ok(node) = HeaderValue::try_from(node) {
        response.headers_mut().insert(NODE, node);
    }
    response
}

fn refused(unreachable: &Unreachable) -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = StatusCode::from_u16(unreachable.status).unwrap_or(StatusCode::BAD_GATEWAY);
    if let Ok(why) = HeaderValue::try_from(&unreachable.why) {
        response.headers_mut().insert(WHY, why);
    }
    response
}
