//! The connection to etcd that belongs to a connection of a client. etcd's limits for a connection hold for a
//! client, as without a gate.

use super::body::RequestBody;
use super::failure::EtcdFailure;
use super::limits::{self, ConnectionLimits, HANDSHAKE};
use super::socket::{OrderlyEnd, PermittedSocket};
use super::tasks::TaskAdder;
use super::tls::TlsConfigs;
use super::traffic::GateTraffic;
use crate::owner::peer::{connect, prepare};
use crate::owner::pipe::Abrupt;
use h2::Reason;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use permit::Permit;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::either::Either;
use tower::BoxError;

/// Connections for a request. An etcd that stops ends a connection in order before the request is sent; more
/// than a second attempt would be in vain.
const ATTEMPTS: usize = 3;

/// Sends requests of a client to etcd. After etcd's GOAWAY, and after a change of the target, the next
/// request opens a new connection. Requests under way stay on the former connection.
pub(super) struct EtcdConnection {
    pub(super) traffic: Arc<GateTraffic>,
    pub(super) tls: Arc<TlsConfigs>,
    pub(super) permit: Permit,
    pub(super) tasks: TaskAdder,
    pub(super) failure: EtcdFailure,
    pub(super) end: OrderlyEnd,
    pub(super) limits: &'static ConnectionLimits,
    pub(super) current: Mutex<Option<Current>>,
}

/// An open connection.
pub(super) struct Current {
    target: SocketAddr,
    sender: SendRequest<RequestBody>,
}

impl EtcdConnection {
    /// Opens the connection if none is open.
    pub(super) async fn open(&self) -> io::Result<()> {
        self.sender().await.map(drop)
    }

    /// Sends a request and waits for the head of the response.
    ///
    /// # Errors
    /// The stream was reset, with etcd's reason. Where the connection is broken, [`EtcdFailure`] is recorded.
    pub(super) async fn send(
        &self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, BoxError> {
        for _ in 0..ATTEMPTS {
            let mut sender = self.sender().await.inspect_err(|error| {
                tracing::debug!(%error, "etcd cannot be reached");
                self.failure.record();
            })?;
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(mut failed) => match failed.take_message() {
                    // The connection has ended in order before the request was sent.
                    Some(unsent) if sender.is_closed() => request = unsent,
                    _ => return Err(self.failure.judge(failed.into_error())),
                },
            }
        }
        Err(h2::Error::from(Reason::REFUSED_STREAM).into())
    }

    async fn sender(&self) -> io::Result<SendRequest<RequestBody>> {
        let target = self.traffic.target();
        let mut current = self.current.lock().await;
        if let Some(open) = &*current
            && open.target == target
            && !open.sender.is_closed()
        {
            return Ok(open.sender.clone());
        }
        let sender = self.connect(target).await?;
        *current = Some(Current {
            target,
            sender: sender.clone(),
        });
        Ok(sender)
    }

    async fn connect(&self, target: SocketAddr) -> io::Result<SendRequest<RequestBody>> {
        let stream = connect(target).await?;
        let stream = Abrupt::new(stream);
        prepare(stream.stream())?;
        let socket = PermittedSocket::new(stream, &self.permit, &self.end);
        let socket = match &self.tls.etcd {
            Some((connector, name)) => {
                let connecting = connector.connect(name.clone(), socket);
                Either::Left(timeout(HANDSHAKE, connecting).await??)
            }
            None => Either::Right(socket),
        };
        let opening = limits::of_etcd(self.tasks.clone(), self.limits).handshake(TokioIo::new(socket));
        let (sender, connection) = opening.await.map_err(io::Error::other)?;
        let failure = self.failure.clone();
        self.tasks.execute(async move {
            // In order: etcd has sent GOAWAY, or the gate needs this connection no more.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to etcd has ended");
                failure.record();
            }
        });
        Ok(sender)
    }
}
