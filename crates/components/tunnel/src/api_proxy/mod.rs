//! Connections from pods of a shoot to the shoot's API server, at the address of the Service `kubernetes`.
//!
//! ```text
//! pod --TLS--> Service kubernetes --kube-proxy--> proxy on the pod's node
//!     --PROXY header, then the same bytes--> seed's edge --> kube-apiserver
//! ```
//!
//! A client that dials an IP address sends no name in TLS, so the seed's edge could not tell the shoot. The
//! proxy sends the name in a header of the PROXY protocol ([`front`]). The bytes of the pod follow unchanged.
//! TLS is between the pod and kube-apiserver; the proxy has neither a key nor a right.
//!
//! The API's name ([`name`]) leads to the seed's edge. New connections go to the current address, and old
//! connections end when the name has left their address.

pub mod address;
mod front;
mod name;
mod seats;

use std::{io, net::SocketAddr, sync::Arc};

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::Registry,
};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{
    agent::Way,
    limits::{CONNECTIONS, DIAL, DIALS, FIRST_PAUSE, HALF_OPEN, IDLE},
    pipe,
};

use front::Front;
use name::ResolvedAddresses;
use seats::Seats;

/// The proxy of a node.
pub struct Proxy {
    /// Where pods come.
    pub listener: TcpListener,
    /// The API's name, and the port of the edge.
    pub way: Way,
    /// The metrics of the proxy.
    pub numbers: Numbers,
}

/// The numbers of a proxy.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Connections that are open.
    pub open: Gauge,
    /// Connections that were closed because of a limit.
    pub refused: Counter,
    /// Connections that were closed because the edge was not reachable.
    pub failed: Counter,
    /// Number of addresses of the API's name at the last lookup.
    pub addresses: Gauge,
}

impl Numbers {
    /// Registers the metrics.
    pub fn register(&self, registry: &mut Registry) {
        let open = "Connections of pods to the API server that are open";
        registry.register("repot_api_proxy_connections", open, self.open.clone());
        let refused = "Connections that were closed because there were too many, of all pods or of one";
        registry.register("repot_api_proxy_refused", refused, self.refused.clone());
        let failed = "Connections that were closed because the seed's front was not reached";
        registry.register("repot_api_proxy_failed", failed, self.failed.clone());
        let addresses = "Addresses to which the API's name leads";
        registry.register("repot_api_proxy_addresses", addresses, self.addresses.clone());
    }
}

/// The state shared by all connections.
struct Shared {
    host: String,
    dials: Semaphore,
    known: watch::Receiver<ResolvedAddresses>,
    numbers: Numbers,
}

/// Listens at an address that the machine may get later, or lose and get again ([`address`]).
///
/// # Errors
/// A different process listens at the address.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv4() {
        socket.set_freebind_v4(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(CONNECTIONS).unwrap_or(i32::MAX))?;
    TcpListener::from_std(socket.into())
}

impl Proxy {
    /// Serves connections until `shutdown`. Then the connections are dropped, and clients have to reconnect.
    pub async fn run(self, shutdown: CancellationToken) {
        let (sender, known) = watch::channel(ResolvedAddresses::default());
        let shared = Arc::new(Shared {
            host: self.way.host.clone(),
            dials: Semaphore::new(DIALS),
            known,
            numbers: self.numbers,
        });
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = name::follow(&self.way, &sender, &shared.numbers.addresses) => {}
            () = serve(&self.listener, &shared) => {}
        }
    }
}

async fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    let seats = Seats::default();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most likely: that passes as connections end.
                warn!(%error, "a connection could not be taken");
                sleep(FIRST_PAUSE).await;
                continue;
            }
        };
        // Closed immediately: after a reset, a client tries again. A client that waits would not learn the
        // reason.
        let Some(seat) = seats.take(from.ip()) else {
            shared.numbers.refused.inc();
            continue;
        };
        let shared = Arc::clone(shared);
        connections.spawn(async move {
            let _seat = seat;
            shared.numbers.open.inc();
            if let Err(why) = carry(&shared, stream, from).await {
                debug!(%from, why, "a connection has ended");
            }
            shared.numbers.open.dec();
        });
    }
}

/// Serves a connection to the end.
async fn carry(shared: &Shared, stream: TcpStream, from: SocketAddr) -> Result<(), String> {
    front::prepare(&SockRef::from(&stream)).map_err(|error| error.to_string())?;
    let here = stream.local_addr().map_err(|error| error.to_string())?;
    let mut known = shared.known.clone();
    let dialled = timeout(DIAL, async {
        let _dial = shared.dials.acquire().await.map_err(|error| error.to_string())?;
        let addresses = name::addresses(&mut known).await?;
        front::dial(&addresses, &shared.host, (from, here)).await
    });
    let dialled = dialled
        .await
        .unwrap_or_else(|_| Err("the seed's front is not reached in time".into()));
    let Front {
        stream: front,
        address,
    } = dialled.inspect_err(|why| {
        shared.numbers.failed.inc();
        warn!(why, "a pod does not reach the API");
    })?;
    tokio::select! {
        done = pipe::join_bounded(stream, front, IDLE, HALF_OPEN) => done.map_err(|error| error.to_string()),
        () = name::led_elsewhere(known, address) => Err(format!("{} does not lead to {address} any more", shared.host)),
    }
}
