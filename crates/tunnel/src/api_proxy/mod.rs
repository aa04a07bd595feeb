//! From pods of a shoot to its API server, at the address of the Service `kubernetes`.
//!
//! ```text
//! pod --TLS--> Service kubernetes --kube-proxy--> proxy on the pod's node --head, then the same bytes--> seed's front --> kube-apiserver
//! ```
//!
//! A client that is given an address says no name in TLS, so the front would not know for which shoot it
//! comes: the proxy says it in a head of the PROXY protocol ([`front`]). What follows passes untouched. TLS
//! is between the pod and kube-apiserver; the proxy has neither a key nor a right.
//!
//! Where the seed is says the API's name ([`name`]): new connections go where it leads, and old ones end when
//! it has left them.

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
    bounds::{CONNECTIONS, DIAL, DIALS, FIRST_PAUSE, HALF_OPEN, IDLE},
    pipe,
};

use front::Front;
use name::Known;
use seats::Seats;

/// One proxy.
pub struct Proxy {
    /// Where pods come.
    pub listener: TcpListener,
    /// The API's name, and the port of the front behind it.
    pub way: Way,
    /// What it counts.
    pub numbers: Numbers,
}

/// The numbers of a proxy.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Connections that are open.
    pub open: Gauge,
    /// Those that were sent away because there were too many.
    pub refused: Counter,
    /// Those for which there was no way to the front.
    pub failed: Counter,
    /// To how many addresses the API's name leads, as far as it is known.
    pub addresses: Gauge,
}

impl Numbers {
    /// Lets them be read.
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

/// What all connections share.
struct Shared {
    host: String,
    dials: Semaphore,
    known: watch::Receiver<Known>,
    numbers: Numbers,
}

/// Listens at an address that the machine may not have yet, or lose and get again ([`address`]).
///
/// # Errors
/// Somebody else listens there.
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
    /// Carries connections until `shutdown`; then they are dropped, and whoever had one makes another.
    pub async fn run(self, shutdown: CancellationToken) {
        let (sender, known) = watch::channel(Known::default());
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
        // Closed at once: a client that hears of it tries again, and one that waits does not know why.
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

/// One connection, to its end.
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
