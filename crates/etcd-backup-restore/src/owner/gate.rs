//! The gate: etcd listens on loopback, and clients come here. What comes passes while the seed owns the
//! shoot. Clients of the etcd with the Events pass a second gate under the same permit.
//!
//! TLS goes through untouched. Each connection is guarded by the permit by itself, and each write looks at
//! the clock; when the permit ends, the listener and all connections are gone, and a client is refused by the
//! kernel.

use super::events::EventsTarget;
use super::pipe::{Abrupt, join};
use crate::error::{Class, Error, Result};
use crate::metrics::{GateMetrics, Passage};
use mutation::Mutation;
use nix::sys::socket::{setsockopt, sockopt};
use permit::Permit;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// etcd is on loopback: it answers at once or not at all.
const CONNECT: Duration = Duration::from_secs(2);

/// Pause where the kernel gives no more connections (file descriptors): without it this would run in a
/// circle.
const NO_MORE: Duration = Duration::from_millis(100);

/// A client that went without a word holds its place this long: much longer than a network hiccup.
const SILENT: u32 = 60;

/// Seconds between questions to a client that is silent for that long.
const QUESTIONS: u32 = 10;

/// Where a gate leads.
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
            Self::Etcd(address) => timeout(CONNECT, TcpStream::connect(address)).await?,
            Self::Events(target) => {
                let connecting = async { TcpStream::connect(target.resolve().await?.as_slice()).await };
                target.within_bound(connecting).await
            }
        }
    }
}

/// Where clients come, and where they are led.
#[derive(Clone)]
pub struct Gate {
    /// Where clients connect to.
    pub listen: SocketAddr,
    /// Where connections are forwarded to.
    pub target: GateTarget,
    /// Connections at a time; more are refused.
    pub most: usize,
    /// Measurements.
    pub metrics: GateMetrics,
}

impl Gate {
    /// Takes the address. Nothing passes yet.
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

    async fn accept(&self, listener: TcpListener, connections: &mut JoinSet<()>, permit: &Permit) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((client, _)) if connections.len() < self.most => {
                    let (target, permit, metrics) =
                        (self.target.clone(), permit.clone(), self.metrics.clone());
                    connections.spawn(carry(Abrupt::new(client), target, permit, metrics));
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

/// One connection, counted while it is there.
async fn carry(mut client: Abrupt, target: GateTarget, permit: Permit, metrics: GateMetrics) {
    let open = Open::new(metrics.clone());
    let carrying = async {
        let server = target.connect().await?;
        prepare(&server)?;
        prepare(client.stream())?;
        join(&mut client, &mut Abrupt::new(server), &permit).await
    };
    let carried = if Mutation::BytesWithoutPermit.is_active() {
        Ok(carrying.await)
    } else {
        permit.guard(carrying).await
    };
    drop(open);
    metrics.passed(match carried {
        Ok(Ok(())) => Passage::Ended,
        Ok(Err(_)) => Passage::Broken,
        Err(_) => Passage::Cut,
    });
}

/// No byte waits for others, and a peer that is gone is noticed.
fn prepare(peer: &TcpStream) -> io::Result<()> {
    peer.set_nodelay(true)?;
    setsockopt(peer, sockopt::KeepAlive, &true)?;
    setsockopt(peer, sockopt::TcpKeepIdle, &SILENT)?;
    setsockopt(peer, sockopt::TcpKeepInterval, &QUESTIONS)?;
    Ok(())
}

/// Counts a connection while it is there.
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
mod tests;
