//! The allowed targets of an agent. The agent has the network of a pod. Addresses of the agent's own pod or
//! machine are never a target.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

use crate::limits::DIAL;

/// Ranges that are refused by default:
/// - the agent's own pod.
/// - link-local addresses, because a cloud serves machine credentials there.
/// - addresses that do not denote a single machine.
pub const REFUSED: &str =
    "0.0.0.0/8,127.0.0.0/8,169.254.0.0/16,224.0.0.0/3,::/128,::1/128,fe80::/10,ff00::/8";

/// Where connections may lead.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Ranges of addresses that are never dialled.
    pub refused: Vec<IpNet>,
}

/// Why there is no connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// As in HTTP.
    pub status: u16,
    /// A sentence with the reason.
    pub why: String,
}

impl Unreachable {
    pub(super) fn refused(why: &str) -> Self {
        Self {
            status: 403,
            why: why.to_owned(),
        }
    }
}

impl Reach {
    /// Connects to a target, at the first address of the target that accepts.
    ///
    /// # Errors
    /// The target is refused (403), does not exist or refuses the connection (502), or does not answer within
    /// [`DIAL`] (504).
    pub async fn dial(&self, host: &str, port: Option<u16>) -> Result<TcpStream, Unreachable> {
        let port = port.ok_or_else(|| Unreachable::refused("the target has no port"))?;
        let host = host.trim_matches(['[', ']']);
        let late = |_| Unreachable {
            status: 504,
            why: format!("{host}:{port} does not answer within {} s", DIAL.as_secs()),
        };
        timeout(DIAL, self.connect(host, port)).await.map_err(late)?
    }

    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Unreachable> {
        let failed = |error: &std::io::Error| Unreachable {
            status: 502,
            why: format!("{host}:{port} cannot be reached: {error}"),
        };
        let addresses: Vec<_> = lookup_host((host, port)).await.map_err(|e| failed(&e))?.collect();
        // All addresses are checked before the dial: the second address of a name must not lead to a refused
        // range.
        if let Some(address) = addresses.iter().find(|address| self.refuses(address)) {
            return Err(Unreachable::refused(&format!(
                "{host}:{port} is not reached through the tunnel: {} is no address of the shoot",
                address.ip()
            )));
        }
        let stream = TcpStream::connect(&addresses[..]).await.map_err(|e| failed(&e))?;
        stream.set_nodelay(true).map_err(|e| failed(&e))?;
        Ok(stream)
    }

    fn refuses(&self, address: &SocketAddr) -> bool {
        // An IPv6 address may contain an IPv4 address.
        let address: IpAddr = address.ip().to_canonical();
        self.refused.iter().any(|range| range.contains(&address))
    }
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
