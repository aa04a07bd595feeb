//! A client that sends all requests over one connection (HTTP/2). kube's client opens a connection for each
//! request under way, and a watch is always under way. A process with many watches in many clusters would pay
//! for each connection with memory on both sides (decision 14).

use std::{sync::Arc, time::Duration};

use http::{Request, Response};
use http_body_util::{BodyExt, combinators::MapFrame};
use hyper::body::{Bytes, Frame, Incoming};
use hyper_rustls::{DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName};
use hyper_util::{
    client::legacy::{Builder, Client, connect::Connect},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Config,
    client::{Body, ConfigExt},
};
use permit::{PermittedConnector, Unanswered};
use rustls::client::Resumption;
use tower::{BoxError, ServiceBuilder, retry::RetryLayer, util::BoxCloneSyncService};

use crate::client::unprocessed::RepeatUnprocessed;

/// Interval of HTTP/2 pings. A connection that carries only watches is silent for minutes.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Timeout for the answer to a ping. Longer than a busy API server takes.
const PONG_WITHIN: Duration = Duration::from_secs(20);
/// Flow-control window of a stream in bytes. Bounds the memory of a connection for data that the reader has
/// not taken yet.
const WINDOW: u32 = 64 << 10;

/// Size of the HPACK table in bytes. An API server adds a unique id to the headers of each answer. A table of
/// 4 KiB would fill with values that never repeat, in some hundred allocations.
const HEADS: u32 = 0;

/// Sends requests. A service of kube would add a second queue; the client for a permit already has a queue.
pub(crate) type Sender = BoxCloneSyncService<Request<Body>, Response<Loose>, BoxError>;
/// An answer whose pieces do not keep the read buffer alive.
pub(crate) type Loose = MapFrame<Incoming, fn(Frame<Bytes>) -> Frame<Bytes>>;

/// The HTTP client cuts pieces out of blocks of many KiB. A watch holds the last piece until the next piece
/// arrives, for minutes, and would keep a block for each watch.
pub(crate) fn loose(frame: Frame<Bytes>) -> Frame<Bytes> {
    frame.map_data(|piece| Bytes::copy_from_slice(&piece))
}

/// Opens no connection yet. The server must speak TLS.
pub(crate) fn sender(config: &Config) -> kube::Result<Sender> {
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    // A connection lasts long. The data for session resumption (tickets that contain certificates) would stay
    // in memory just as long.
    tls.resumption = Resumption::disabled();
    let server_name: Arc<dyn ResolveServerName + Send + Sync> = match &config.tls_server_name {
        Some(name) => {
            let name = name
                .clone()
                .try_into()
                .map_err(|wrong| kube::Error::Service(BoxError::from(wrong)))?;
            Arc::new(FixedServerNameResolver::new(name))
        }
        None => Arc::new(DefaultServerNameResolver::default()),
    };
    let tcp = PermittedConnector::new(config.connect_timeout);
    let connector = HttpsConnector::new(tcp, tls, true, server_name);
    let connections = Builder::new(TokioExecutor::new())
        .http2_only(true)
        .timer(TokioTimer::new())
        .http2_initial_stream_window_size(WINDOW)
        .http2_initial_connection_window_size(4 * WINDOW)
        .http2_header_table_size(HEADS)
        .http2_keep_alive_interval(PING_EVERY)
        .http2_keep_alive_timeout(PONG_WITHIN)
        .build::<_, Body>(connector);
    layered(config, connections, loose, Some(RepeatUnprocessed::new()))
}

/// Adds the layers that each request to the cluster needs. `frame` converts each piece of an answer.
/// `repeat`: for connections of HTTP/2.
pub(crate) fn layered<C>(
    config: &Config,
    connections: Client<C, Body>,
    frame: fn(Frame<Bytes>) -> Frame<Bytes>,
    repeat: Option<RepeatUnprocessed>,
) -> kube::Result<Sender>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let service = ServiceBuilder::new()
        .map_response(move |answer: Response<Incoming>| answer.map(|body| body.map_frame(frame)))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .option_layer(repeat.map(RetryLayer::new))
        .map_err(BoxError::from)
        .service(Unanswered(connections));
    Ok(BoxCloneSyncService::new(service))
}
