//! The gate as a proxy for HTTP/2. In contrast to the forwarder of bytes, the proxy terminates TLS and knows
//! requests: it can hold requests, count writes under way, end streams with a status, and route requests.
//!
//! Guarantees, beside those of the gate
//! - A client without a certificate of the client CA reaches no etcd. A client with the certificate of a
//!   preparation reaches etcd while the certificate is listed, by the methods and places of `prepared_share`.
//! - Headers, trailers, messages, and the reasons of reset streams pass unchanged.
//! - A body is read as fast as the receiver takes the content. `limits` bounds the buffers.
//! - A connection of a client has a connection to etcd. If the latter breaks, the former is closed.
//!
//! | file | content |
//! |---|---|
//! | `etcd_connection` | the connection to etcd of a client's connection |
//! | `forward` | a request on its path |
//! | `body` | bodies of requests and responses |
//! | `failure` | a failure at etcd, and the meaning for the client |
//! | `traffic` | hold, count, end and route requests |
//! | `open_streams` | reads and streams under way |
//! | `request_class` | reads, writes and streams |
//! | `prepared_clients` | certificates of preparations, which the gate admits while listed |
//! | `prepared_share` | the methods, connections and requests of such certificates |
//! | `limits` | connections, streams, headers, buffers |
//! | `socket` | the check of the permit before each write |
//! | `tasks` | the tasks of a connection |
//! | `client_verifier` | the certificates of clients |
//! | `tls`, `flags` | certificates, and the flags for them |

mod body;
mod client_verifier;
mod etcd_connection;
mod failure;
mod flags;
mod forward;
mod limits;
mod open_streams;
mod prepared_clients;
mod prepared_share;
mod request_class;
mod socket;
mod tasks;
mod tls;
mod traffic;

pub(super) use flags::GateForwarding;
pub use flags::{GateProtocol, Http2GateArgs};
pub use prepared_clients::PreparedClients;
pub use prepared_share::{PreparedLimits, PreparedRefusal};
pub use request_class::RequestClass;
pub use tls::GateTlsPaths;
pub use traffic::GateTraffic;

use super::peer::prepare;
use super::pipe::Abrupt;
use crate::error::Result;
use crate::metrics::GateMetrics;
use etcd_connection::EtcdConnection;
use failure::EtcdFailure;
use forward::ClientConnection;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use limits::HANDSHAKE;
use permit::Permit;
use prepared_share::PreparedShare;
use socket::{OrderlyEnd, PermittedSocket};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tasks::ConnectionTasks;
use tls::{GateTls, TlsConfigs};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

/// How long the gate waits for the writes of a client that is gone. Longer than etcd takes for a request: 5 s
/// and two elections of 1 s.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// The proxy of a gate.
pub struct Http2Proxy {
    tls: GateTls,
    prepared: Arc<PreparedClients>,
    traffic: Arc<GateTraffic>,
    metrics: GateMetrics,
}

impl Http2Proxy {
    /// A proxy in front of the etcd at `target`. Without `tls` neither side uses TLS. `limits` bounds the
    /// clients with certificates of preparations.
    ///
    /// # Errors
    /// A file of a certificate is missing or invalid.
    pub fn new(
        target: SocketAddr,
        tls: Option<GateTlsPaths>,
        limits: PreparedLimits,
        metrics: GateMetrics,
    ) -> Result<Self> {
        Ok(Self {
            prepared: Arc::new(PreparedClients::new(tls.is_some(), limits, metrics.clone())),
            tls: GateTls::new(tls)?,
            traffic: Arc::new(GateTraffic::new(target, metrics.clone())),
            metrics,
        })
    }

    /// Control of the requests of this gate.
    #[must_use]
    pub fn traffic(&self) -> Arc<GateTraffic> {
        self.traffic.clone()
    }

    /// The certificates of preparations that this gate admits.
    #[must_use]
    pub fn prepared_clients(&self) -> Arc<PreparedClients> {
        self.prepared.clone()
    }

    /// Number of open connections with certificates of preparations.
    pub(super) fn prepared_connections(&self) -> usize {
        self.prepared.open_connections()
    }

    /// Serves the connection of a client until a side ends.
    pub(super) async fn serve(&self, client: Abrupt, permit: &Permit) -> io::Result<()> {
        prepare(client.stream())?;
        let (configs, end) = (self.tls.current(), OrderlyEnd::default());
        let client = PermittedSocket::new(client, permit, &end);
        match &configs.clients {
            Some(acceptor) => {
                let accepted = timeout(HANDSHAKE, acceptor.accept(client)).await?;
                let client = accepted.inspect_err(|error| {
                    tracing::debug!(%error, "a TLS handshake of a client has failed");
                })?;
                let prepared = self.prepared.admit(client.get_ref().1.peer_certificates())?;
                let Some(prepared) = prepared else {
                    return self.serve_http2(client, configs, permit, &end, None).await;
                };
                // Each write towards etcd checks both rights, and the guard checks the list before each step.
                let (both, share) = (permit.and(prepared.permit()), Some(prepared.share().clone()));
                let serving = Box::pin(self.serve_http2(client, configs, &both, &end, share));
                prepared.permit().guard(serving).await.map_err(io::Error::other)?
            }
            None => self.serve_http2(client, configs, permit, &end, None).await,
        }
    }

    async fn serve_http2<S>(
        &self,
        client: S,
        tls: Arc<TlsConfigs>,
        permit: &Permit,
        end: &OrderlyEnd,
        share: Option<Arc<PreparedShare>>,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let limits = if share.is_some() {
            &limits::PREPARED
        } else {
            &limits::OWN
        };
        let (adder, mut tasks) = ConnectionTasks::new();
        let failure = EtcdFailure::default();
        let mut broken = pin!(failure.recorded());
        let connection = Arc::new(ClientConnection {
            etcd: EtcdConnection {
                traffic: self.traffic.clone(),
                tls,
                permit: permit.clone(),
                tasks: adder.clone(),
                failure,
                end: end.clone(),
                limits,
                current: None.into(),
            },
            traffic: self.traffic.clone(),
            tasks: adder.clone(),
            share,
            metrics: self.metrics.clone(),
        });
        // A client is cut where etcd does not listen, as without a gate.
        connection.etcd.open().await?;
        let forward = service_fn(move |request| connection.clone().forward(request));
        let mut serving =
            Box::pin(limits::of_client(adder, limits).serve_connection(TokioIo::new(client), forward));
        let (leaving, mut is_leaving) = (self.traffic.leaving(), false);
        let served = loop {
            tokio::select! {
                biased;
                served = &mut serving => break served,
                // The tasks end after the connection.
                () = &mut tasks => return Err(io::ErrorKind::BrokenPipe.into()),
                () = &mut broken => return Err(io::ErrorKind::BrokenPipe.into()),
                () = leaving.cancelled(), if !is_leaving => {
                    serving.as_mut().graceful_shutdown();
                    is_leaving = true;
                }
            }
        };
        if served.is_ok() {
            end.record();
        }
        drop(serving);
        // Reads and streams of the client end now. The tasks end when etcd has answered the writes.
        if timeout(ANSWERED_WITHIN, tasks).await.is_err() {
            tracing::warn!("etcd has not answered a write of a client that is gone");
        }
        served.map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests;
