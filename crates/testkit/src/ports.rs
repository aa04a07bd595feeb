//! Ports on loopback that nobody uses.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};

/// Below the range from which outgoing connections take their ports, so that none takes a port between the look and
/// the server's own bind.
const FIRST: u16 = 15_000;
const COUNT: u16 = 15_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port that is free for TCP and UDP. Each call returns another one; each test process starts elsewhere.
///
/// # Errors
/// None is free.
pub fn free() -> Result<u16> {
    let start = u16::try_from(u64::from(std::process::id()) * 61 % u64::from(COUNT))?;
    for _ in 0..COUNT {
        let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = FIRST + offset;
        let tcp = TcpListener::bind(("127.0.0.1", port));
        let udp = UdpSocket::bind(("127.0.0.1", port));
        if tcp.is_ok() && udp.is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port on 127.0.0.1 between {FIRST} and {}", FIRST + COUNT)
}
