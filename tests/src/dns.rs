//! Queries the landscape's DNS server directly, without a cache.

use std::{
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use hickory_proto::{
    op::{Message, Query},
    rr::{Name, RData, RecordType},
};
use tokio::net::UdpSocket;

/// Timeout of an attempt. Longer than a server on the same machine needs, shorter than a writer's patience.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// Maximum attempts of a query: a datagram can be lost, and a server on a busy machine may not be scheduled
/// for seconds.
const TRIES: usize = 30;

/// The IPv4 addresses of a name; empty without an address.
pub async fn addresses(server: SocketAddr, name: &str) -> Result<Vec<Ipv4Addr>> {
    let address = |data: &RData| if let RData::A(a) = data { Some(a.0) } else { None };
    values(server, name, RecordType::A, address).await
}

/// The texts of a name; empty without a text.
pub async fn texts(server: SocketAddr, name: &str) -> Result<Vec<String>> {
    let text = |data: &RData| {
        if let RData::TXT(text) = data {
            Some(text.to_string())
        } else {
            None
        }
    };
    values(server, name, RecordType::TXT, text).await
}

async fn values<T>(
    server: SocketAddr,
    name: &str,
    type_: RecordType,
    value: impl Fn(&RData) -> Option<T>,
) -> Result<Vec<T>> {
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_str(&format!("{name}."))?, type_));
    let socket = UdpSocket::bind("0.0.0.0:0").await?;
    socket.connect(server).await?;
    let mut buffer = [0; 1500];
    let length = ask(&socket, &message.to_vec()?, &mut buffer)
        .await
        .with_context(|| format!("{server} did not answer for {name}"))?;
    let answer = Message::from_vec(&buffer[..length])?;
    Ok(answer
        .answers
        .iter()
        .filter_map(|record| value(&record.data))
        .collect())
}

/// Repeats the query until an answer arrives; returns the length of the answer.
async fn ask(socket: &UdpSocket, question: &[u8], buffer: &mut [u8]) -> Result<usize> {
    for _ in 0..TRIES {
        socket.send(question).await?;
        if let Ok(length) = tokio::time::timeout(ANSWER_WITHIN, socket.recv(buffer)).await {
            return Ok(length?);
        }
    }
    bail!("{TRIES} tries, {ANSWER_WITHIN:?} each")
}
