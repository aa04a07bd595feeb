//! A client that sends everything over one connection (HTTP/2). kube's own opens one for each request that is
//! under way, and a watch is always under way: who watches many things in many clusters pays for each with
//! memory on both sides (decision 14).

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
use tower::{BoxError, ServiceBuilder, util::BoxCloneSyncService};

/// How often it is asked whether the other side is there. A connection that carries watches alone is silent
/// for minutes.
const PING_EVERY: Duration = Duration::from_secs(30);
/// For its answer. Longer than a busy API server takes.
const PONG_WITHIN: Duration = Duration::from_secs(20);
/// What may be under way of one answer before it is taken. Bounds what a connection keeps in memory.
const WINDOW: u32 = 64 << 10;

/// What is remembered of answers' heads so that the next ones are shorter. An API server gives each an
/// identity of its own, which fills 4 KiB with what never comes again, in some hundred pieces.
const HEADS: u32 = 0;

/// What sends requests. A client of kube would keep a queue of its own; there is one already in the client of
/// a permit.
pub(crate) type Sender = BoxCloneSyncService<Request<Body>, Response<Loose>, BoxError>;
/// An answer that is not held by what it was read into.
pub(crate) type Loose = MapFrame<Incoming, fn(Frame<Bytes>) -> Frame<Bytes>>;

/// What a connection reads is cut out of blocks of many KiB. A watch remembers the last piece that it was
/// given until there is another, for minutes, and would keep a block for each.
fn loose(frame: Frame<Bytes>) -> Frame<Bytes> {
    frame.map_data(|piece| Bytes::copy_from_slice(&piece))
}

/// Opens nothing yet. The server must speak TLS.
pub(crate) fn sender(config: &Config) -> kube::Result<Sender> {
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    // A connection lasts. What a session is resumed with (tickets, with certificates in them) would be kept
    // for as long.
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
    layered(config, connections, loose)
}

/// With what each request to the cluster has. `frame`: what becomes of each piece of an answer.
pub(crate) fn layered<C>(
    config: &Config,
    connections: Client<C, Body>,
    frame: fn(Frame<Bytes>) -> Frame<Bytes>,
) -> kube::Result<Sender>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    let service = ServiceBuilder::new()
        .map_response(move |answer: Response<Incoming>| answer.map(|body| body.map_frame(frame)))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Unanswered(connections));
    Ok(BoxCloneSyncService::new(service))
}
