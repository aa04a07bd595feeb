//! Who is let in: a peer that shows a certificate of the authority that names the right one, within a bound.

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
    bounds::{FIRST_PAUSE, HANDSHAKE, HANDSHAKES},
    tls::common_name,
};

/// Where peers of one kind come in.
pub struct Door {
    /// Where they come.
    pub listener: TcpListener,
    /// What they have to show.
    pub acceptor: TlsAcceptor,
    /// Whom their certificate has to name.
    pub named: String,
    /// What they have to offer in TLS, if anything.
    pub protocol: Option<&'static [u8]>,
}

impl Door {
    /// Lets peers in until `shutdown`; then what they do is dropped.
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
                            // Anybody can come to the front and say anything: no reason for a warning each
                            // time.
                            Err(why) => debug!(%from, why, "sent away"),
                        }
                    });
                }
            }
        }
    }

    /// A peer, and its place among those that say who they are. `None`: there was none after all.
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
        // What is written is written at once: requests are small, and somebody waits for each.
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
