//! The gate: etcd listens on loopback, and clients connect to the gate. The gate forwards connections while
//! the seed owns the shoot. Clients of the etcd with the Events pass a second gate under the same permit.
//!
//! The gate forwards bytes, so that TLS passes untouched, or requests (`http2`). Each connection has its own
//! guard with the permit, and each write checks the clock. When the permit ends, the listener and all
//! connections are closed, and the kernel refuses clients.

use super::events::EventsTarget;
use super::http2::Http2Proxy;
use super::peer::{connect, prepare};
use super::pipe::{Abrupt, join};
use crate::error::{Class, Error, Result};
use crate::metrics::{GateMetrics, Passage};
use mutation::Mutation;
use permit::Permit;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Pause after the kernel refused an accept (no file descriptors left): without the pause the accept loop
/// would spin.
const NO_MORE: Duration = Duration::from_millis(100);

/// The target of a gate.
#[derive(Clone, Debug)]
pub enum GateTarget {
    /// etcd in the same pod, on loopback.
    Etcd(SocketAddr),
    /// The etcd with the Events, in another pod.
    Events(EventsTarget),
}

impl GateTarget {
    async fn connect(&self) -> io::Result<TcpStream> {
        match self {
            Self::Etcd(address) => connect(*address).await,
            Self::Events(target) => {
                let connecting = async { TcpStream::connect(target.resolve().await?.as_slice()).await };
                target.within_bound(connecting).await
            }
        }
    }
}

/// Listen address and target of a gate.
#[derive(Clone)]
pub struct Gate {
    /// Address to which clients connect.
    pub listen: SocketAddr,
    /// Target of the forwarded connections.
    pub target: GateTarget,
    /// Connections at a time; more are refused. The proxy adds the share of preparations.
    pub most: usize,
    /// The proxy that forwards the requests of connections; `None`: the gate forwards bytes.
    pub http2: Option<Arc<Http2Proxy>>,
    /// Measurements.
    pub metrics: GateMetrics,
}

impl Gate {
    /// Binds the listen address. No connection is forwarded yet.
    pub async fn bind(&self) -> Result<TcpListener> {
        TcpListener::bind(self.listen).await.map_err(|e| {
            let what = match &self.target {
                GateTarget::Etcd(target) => format!(
                    "the gate cannot listen on {} ({e}); etcd must listen on {target} alone",
                    self.listen
                ),
                GateTarget::Events(_) => format!(
                    "the gate for Events cannot listen on {} ({e}); choose a free port for --gate-events-listen-address",
                    self.listen
                ),
            };
            Error::new(Class::Configuration, what)
        })
    }

    /// Lets clients pass until the permit ends.
    pub async fn forward(&self, listener: TcpListener, permit: &Permit) {
        let mut connections = JoinSet::new();
        let accepting = self.accept(listener, &mut connections, permit);
        if let Err(refused) = permit.guard(accepting).await {
            tracing::info!(%refused, connections = connections.len(), "the gate is shut");
        }
        connections.shutdown().await;
    }

    async fn carry_bytes(&self, mut client: Abrupt, permit: &Permit) -> io::Result<()> {
        let server = self.target.connect().await?;
        prepare(&server)?;
        prepare(client.stream())?;
        join(&mut client, &mut Abrupt::new(server), permit).await
    }

    /// Connections with certificates of preparations do not count in `most`. The certificate is known after
    /// the handshake, so a connection counts until then.
    fn present_limit(&self) -> usize {
        let prepared = self.http2.as_ref().map(|proxy| proxy.prepared_connections());
        self.most.saturating_add(prepared.unwrap_or_default())
    }

    async fn accept(&self, listener: TcpListener, connections: &mut JoinSet<()>, permit: &Permit) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            // An ended connection counts until the join, and the place of a preparation is free before.
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((client, _)) if connections.len() < self.present_limit() => {
                    connections.spawn(carry(Abrupt::new(client), self.clone(), permit.clone()));
                }
                Ok((client, _)) => {
                    drop(Abrupt::new(client));
                    self.metrics.passed(Passage::Refused);
                }
                Err(error) => {
                    tracing::debug!(%error, "no connection could be taken");
                    sleep(NO_MORE).await;
                }
            }
        }
    }
}

/// Forwards a connection, counted while open.
async fn carry(client: Abrupt, gate: Gate, permit: Permit) {
    let open = Open::new(gate.metrics.clone());
    let carrying = async {
        match &gate.http2 {
            Some(proxy) => Box::pin(proxy.serve(client, &permit)).await,
            None => gate.carry_bytes(client, &permit).await,
        }
    };
    let carried = if Mutation::BytesWithoutPermit.is_active() {
        Ok(carrying.await)
    } else {
        permit.guard(carrying).await
    };
    drop(open);
    gate.metrics.passed(match carried {
        Ok(Ok(())) => Passage::Ended,
        Ok(Err(_)) => Passage::Broken,
        Err(_) => Passage::Cut,
    });
}

/// Counts a connection while it is open.
struct Open(GateMetrics);

impl Open {
    fn new(metrics: GateMetrics) -> Self {
        metrics.connections(1);
        Self(metrics)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections(-1);
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
pub(super) mod tests;
