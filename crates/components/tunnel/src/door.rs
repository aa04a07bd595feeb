//! Admission of peers: a peer needs a certificate of the authority with the expected name, within a time
//! limit.

use std::{future::Future, net::SocketAddr, sync::Arc};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    limits::{FIRST_PAUSE, HANDSHAKE, HANDSHAKES},
    tls::common_name,
};

/// A listener for peers of one kind.
pub struct Door {
    /// The listening socket.
    pub listener: TcpListener,
    /// Verifies the certificates of peers.
    pub acceptor: TlsAcceptor,
    /// The common name that a peer's certificate must have.
    pub named: String,
    /// The ALPN protocol that peers must offer, if any.
    pub protocol: Option<&'static [u8]>,
}

impl Door {
    /// Admits peers until `shutdown`; then the work of all peers is dropped.
    pub async fn serve<F, Fut>(self, shutdown: CancellationToken, handle: F)
    where
        F: Fn(TlsStream<TcpStream>, SocketAddr) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let seats = Arc::new(Semaphore::new(HANDSHAKES));
        let door = Arc::new(self);
        let mut peers = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some(_) = peers.join_next() => {}
                accepted = door.next(&seats) => {
                    let Some((stream, from, seat)) = accepted else { continue };
                    let (door, handle) = (Arc::clone(&door), handle.clone());
                    peers.spawn(async move {
                        let admitted = timeout(HANDSHAKE, door.admit(stream)).await;
                        drop(seat);
                        match admitted.unwrap_or_else(|_| Err("it took too long to say who it is".into())) {
                            Ok(stream) => handle(stream, from).await,
                            // The edge is reachable for everyone, so a rejected peer is not worth a warning.
                            Err(why) => debug!(%from, why, "sent away"),
                        }
                    });
                }
            }
        }
    }

    /// Accepts a peer and reserves a handshake. `None` after a failed accept.
    async fn next(
        &self,
        seats: &Arc<Semaphore>,
    ) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
        let seat = Arc::clone(seats).acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, from)) => Some((stream, from, seat)),
            Err(error) => {
                // Out of file descriptors, most likely: that passes as connections end.
                warn!(%error, "a connection could not be taken");
                sleep(FIRST_PAUSE).await;
                None
            }
        }
    }

    async fn admit(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        // Requests are small and the requester waits, so bytes are sent immediately.
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let stream = self
            .acceptor
            .accept(stream)
            .await
            .map_err(|error| error.to_string())?;
        let (_, session) = stream.get_ref();
        let name = common_name(session.peer_certificates()).unwrap_or_default();
        if name != self.named {
            return Err(format!("its certificate names {name:?}, not {:?}", self.named));
        }
        if self.protocol.is_some() && session.alpn_protocol() != self.protocol {
            return Err("it does not offer the tunnel's protocol".into());
        }
        Ok(stream)
    }
}
