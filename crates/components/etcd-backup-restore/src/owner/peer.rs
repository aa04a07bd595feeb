//! Connections of a gate to clients and to etcd. A connection carries bytes only under the permit, which its
//! user checks before each write.

use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// etcd is on loopback: etcd accepts the connection at once or not at all.
const CONNECT: Duration = Duration::from_secs(2);

/// Seconds until a silent client is probed: much longer than a network hiccup.
const SILENT: u32 = 60;

/// Seconds between two keep-alive probes of a silent client.
const QUESTIONS: u32 = 10;

/// Connects to etcd.
pub(super) async fn connect(etcd: SocketAddr) -> io::Result<TcpStream> {
    timeout(CONNECT, TcpStream::connect(etcd)).await?
}

/// Disables Nagle's algorithm, and detects a vanished peer.
pub(super) fn prepare(peer: &TcpStream) -> io::Result<()> {
    peer.set_nodelay(true)?;
    setsockopt(peer, sockopt::KeepAlive, &true)?;
    setsockopt(peer, sockopt::TcpKeepIdle, &SILENT)?;
    setsockopt(peer, sockopt::TcpKeepInterval, &QUESTIONS)?;
    Ok(())
}
