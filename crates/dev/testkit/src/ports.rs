//! Free ports on loopback, reserved across test processes.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

/// Below the range of outgoing connections, so that no outgoing connection takes a port between the check and
/// the server's bind.
const FIRST: u16 = 15_000;
/// Ports that a test process reserves at a time. Between the check and the bind, and while a server is down,
/// only this reservation keeps a different process from the port.
const BLOCK: u16 = 500;
const BLOCKS: u16 = 30;

/// The blocks of this process; the last block is in use.
static BLOCKS_OF_THIS: Mutex<Vec<Block>> = Mutex::new(Vec::new());

struct Block {
    /// An abstract socket name that only one process can hold. The kernel releases the name at any end of the
    /// process.
    _claim: UnixListener,
    ports: std::ops::Range<u16>,
}

impl Block {
    /// A block that no process holds.
    fn claim() -> Result<Self> {
        let start = u16::try_from(std::process::id() % u32::from(BLOCKS))?;
        for number in (0..BLOCKS).map(|more| (start + more) % BLOCKS) {
            let name = SocketAddr::from_abstract_name(format!("repot-test-ports-{number}"))?;
            if let Ok(claim) = UnixListener::bind_addr(&name) {
                let first = FIRST + number * BLOCK;
                return Ok(Self {
                    _claim: claim,
                    ports: first..first + BLOCK,
                });
            }
        }
        bail!("other test processes have all {BLOCKS} blocks of ports on 127.0.0.1 from {FIRST} on")
    }
}

/// A port that is free for TCP and UDP. Each call returns a different port, and no two processes get the same
/// port.
///
/// # Errors
/// No port is free.
pub fn free() -> Result<u16> {
    let mut blocks = BLOCKS_OF_THIS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        while let Some(port) = blocks.last_mut().and_then(|block| block.ports.next()) {
            let tcp = TcpListener::bind(("127.0.0.1", port));
            let udp = UdpSocket::bind(("127.0.0.1", port));
            if tcp.is_ok() && udp.is_ok() {
                return Ok(port);
            }
        }
        let block = Block::claim()?;
        blocks.push(block);
    }
}
