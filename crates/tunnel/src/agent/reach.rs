//! Where an agent goes and where not. It has the network of a pod; what is the agent's own or the machine's
//! own is nobody's target.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

use crate::bounds::DIAL;

/// What is refused unless it is said otherwise: the agent itself, what only one link knows (there are the
/// cloud's credentials for its machines), and what is no single machine.
pub const REFUSED: &str =
    "0.0.0.0/8,127.0.0.0/8,169.254.0.0/16,224.0.0.0/3,::/128,::1/128,fe80::/10,ff00::/8";

/// Where connections may lead.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Addresses to which none leads.
    pub refused: Vec<IpNet>,
}

/// Why there is no connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// As in HTTP.
    pub status: u16,
    /// A sentence.
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
    /// Connects to a target, at the first of its addresses that takes it.
    ///
    /// # Errors
    /// It is refused (403), there is none or it refuses (502), or it does not answer within [`DIAL`] (504).
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
        // All of them are looked at first: a name must not lead somewhere by its second address.
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
        // An IPv4 address may be written as one of IPv6.
        let address: IpAddr = address.ip().to_canonical();
        self.refused.iter().any(|range| range.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn usual() -> Reach {
        Reach {
            refused: REFUSED.split(',').map(|range| range.parse().unwrap()).collect(),
        }
    }

    #[tokio::test]
    async fn what_is_the_machines_own_is_refused() {
        for (host, port) in [
            ("127.0.0.1", Some(8134)),
            ("[::1]", Some(8134)),
            ("[::ffff:127.0.0.1]", Some(8134)),
            ("169.254.169.254", Some(80)),
            ("0.0.0.0", Some(8134)),
            ("localhost", Some(8134)),
            ("10.1.2.3", None),
        ] {
            let refused = usual().dial(host, port).await.unwrap_err();
            assert_eq!(refused.status, 403, "{host}: {}", refused.why);
        }
    }

    #[test]
    fn what_is_of_the_shoot_is_not() {
        for address in [
            "10.1.2.3:10250",
            "100.64.0.1:443",
            "192.168.3.4:80",
            "[fd00::1]:443",
        ] {
            assert!(!usual().refuses(&address.parse().unwrap()), "{address}");
        }
    }

    #[tokio::test]
    async fn a_target_that_refuses_is_named() {
        let nobody = testkit::free_port().unwrap();
        let reach = Reach { refused: Vec::new() };
        let error = reach.dial("127.0.0.1", Some(nobody)).await.unwrap_err();
        assert_eq!(error.status, 502);
        assert!(
            error
                .why
                .starts_with(&format!("127.0.0.1:{nobody} cannot be reached")),
            "{}",
            error.why
        );
    }
}
