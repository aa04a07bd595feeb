//! The etcd with the Events, in a separate pod. Clients pass a gate beside etcd-main, so that a fenced seed
//! acknowledges no Events (docs/understand/decisions/0036-events-need-the-gate.md).

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Bound for the lookup of the name and the connection together: a Service in the same cluster answers in
/// milliseconds.
const CONNECT: Duration = Duration::from_secs(5);

/// Lookups at a time. The resolver of the C library cannot be cancelled and blocks a thread for up to a
/// minute where DNS is silent; these threads are shared with the writer of the seal.
const LOOKUPS: usize = 4;

/// Host and port of the etcd with the Events.
#[derive(Clone, Debug)]
pub struct EventsTarget {
    host: String,
    port: u16,
    lookups: Arc<Semaphore>,
    /// Whether the last connection failed: only a change is logged.
    fails: Arc<AtomicBool>,
}

impl FromStr for EventsTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        let parsed =
            parts.and_then(|(host, port)| Some((host, port.parse().ok().filter(|port| *port != 0)?)));
        let (host, port) = parsed
            .ok_or("write host and port of the etcd with the Events, such as etcd-events-client:2379")?;
        Ok(Self {
            host: host.to_owned(),
            port,
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
            fails: Arc::default(),
        })
    }
}

impl EventsTarget {
    /// Bounds a connection to the addresses of [`Self::resolve`], and logs where connections begin or cease
    /// to fail.
    pub(super) async fn within_bound(
        &self,
        connecting: impl Future<Output = io::Result<TcpStream>>,
    ) -> io::Result<TcpStream> {
        let connected = timeout(CONNECT, connecting)
            .await
            .unwrap_or_else(|elapsed| Err(elapsed.into()));
        self.report(connected.as_ref().err());
        connected
    }

    /// The present addresses: the Service may have been recreated since the last connection.
    pub(super) async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let lookup = self.lookups.clone().acquire_owned().await;
        let lookup = lookup.map_err(io::Error::other)?;
        let (host, port) = (self.host.clone(), self.port);
        let resolving = spawn_blocking(move || {
            // Held until the resolver returns: perhaps long after the client has gone.
            let _lookup = lookup;
            (host.as_str(), port).to_socket_addrs().map(Iterator::collect)
        });
        resolving.await.map_err(io::Error::other)?
    }

    fn report(&self, error: Option<&io::Error>) {
        let failed_before = self.fails.swap(error.is_some(), Ordering::Relaxed);
        let Self { host, port, .. } = self;
        match error {
            Some(error) if !failed_before => {
                tracing::warn!(%error, "no connection to the etcd with the Events, {host}:{port}: the shoot gets no Events");
            }
            None if failed_before => {
                tracing::info!("the etcd with the Events, {host}:{port}, accepts connections again");
            }
            _ => {}
        }
    }
}
