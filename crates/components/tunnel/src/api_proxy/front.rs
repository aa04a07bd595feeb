//! A connection to the seed's edge, with the PROXY header that precedes the first byte of a pod.

use std::{io, net::SocketAddr};

use ppp::v2::{Builder, Command, Protocol, Type, Version};
use socket2::{SockRef, TcpKeepalive};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use crate::limits::{DIAL_ONE, PROBE_AFTER, PROBE_EVERY, PROBES, UNHEARD};

/// A connection to the edge of a seed.
#[derive(Debug)]
pub(super) struct Front {
    /// The stream after the PROXY header.
    pub stream: TcpStream,
    /// The address of the edge.
    pub address: SocketAddr,
}

/// Connects to the first address that accepts, starting at a random address. Sends the PROXY header with the
/// API's name and the addresses of the pod's connection.
pub(super) async fn dial(
    addresses: &[SocketAddr],
    host: &str,
    between: (SocketAddr, SocketAddr),
) -> Result<Front, String> {
    let head = head(host, between).map_err(|error| error.to_string())?;
    let mut why = format!("{host} leads nowhere");
    let first = fastrand::usize(..addresses.len().max(1));
    for address in addresses.iter().cycle().skip(first).take(addresses.len()) {
        match timeout(DIAL_ONE, connect(*address, &head)).await {
            Ok(Ok(stream)) => {
                let address = *address;
                return Ok(Front { stream, address });
            }
            Ok(Err(error)) => why = format!("{host} at {address}: {error}"),
            Err(_) => why = format!("{host} at {address} does not answer"),
        }
    }
    Err(why)
}

async fn connect(address: SocketAddr, head: &[u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    prepare(&SockRef::from(&stream))?;
    stream.write_all(head).await?;
    Ok(stream)
}

/// Disables Nagle's algorithm, and bounds the time until a dead peer is detected, with or without
/// unacknowledged data.
pub(super) fn prepare(socket: &SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    let probes = TcpKeepalive::new()
        .with_time(PROBE_AFTER)
        .with_interval(PROBE_EVERY)
        .with_retries(PROBES);
    socket.set_tcp_keepalive(&probes)?;
    socket.set_tcp_user_timeout(Some(UNHEARD))
}

/// A header of the PROXY protocol, version 2, with the API's name as the authority. The addresses are those
/// of the pod's connection: without addresses, the edge would ignore the TLVs.
fn head(host: &str, between: (SocketAddr, SocketAddr)) -> io::Result<Vec<u8>> {
    Builder::with_addresses(Version::Two | Command::Proxy, Protocol::Stream, between)
        .write_tlv(Type::Authority, host.as_bytes())?
        .build()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_head_is_what_the_protocol_says() {
        let between = ("10.1.2.3:4660".parse().unwrap(), "240.0.0.1:443".parse().unwrap());
        let mut expected = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
        // Version 2 of a connection by proxy, TCP over IPv4, and the length of the rest.
        expected.extend([0x21, 0x11, 0, 12 + 3 + 8]);
        expected.extend([10, 1, 2, 3, 240, 0, 0, 1, 0x12, 0x34, 1, 187]);
        expected.extend([2, 0, 8]);
        expected.extend(b"api.test");
        assert_eq!(head("api.test", between).unwrap(), expected);
    }

    #[tokio::test]
    async fn another_address_is_tried_where_one_refuses() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = listener.local_addr().unwrap();
        let nobody = SocketAddr::from(([127, 0, 0, 1], testkit::free_port().unwrap()));
        for _ in 0..8 {
            let front = dial(&[nobody, there], "api.test", (there, there)).await.unwrap();
            assert_eq!(front.address, there);
        }
        assert!(dial(&[nobody], "api.test", (there, there)).await.is_err());
        let nowhere = dial(&[], "api.test", (there, there)).await.unwrap_err();
        assert_eq!(nowhere, "api.test leads nowhere");
    }
}
