//! Asks the landscape's DNS server itself, without any cache in between.

use std::{
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use anyhow::{Context, Result};
use hickory_proto::{
    op::{Message, Query},
    rr::{Name, RData, RecordType},
};
use tokio::net::UdpSocket;

/// Longer than a server on the same machine ever needs, shorter than a writer's patience.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The IPv4 addresses of a name; empty if it has none.
pub async fn addresses(server: SocketAddr, name: &str) -> Result<Vec<Ipv4Addr>> {
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_str(&format!("{name}."))?, RecordType::A));
    let socket = UdpSocket::bind("0.0.0.0:0").await?;
    socket.connect(server).await?;
    socket.send(&message.to_vec()?).await?;
    let mut buffer = [0; 1500];
    let length = tokio::time::timeout(ANSWER_WITHIN, socket.recv(&mut buffer))
        .await
        .with_context(|| format!("{server} did not answer for {name}"))??;
    let answer = Message::from_vec(&buffer[..length])?;
    Ok(answer
        .answers
        .iter()
        .filter_map(|record| {
            if let RData::A(a) = &record.data {
                Some(a.0)
            } else {
                None
            }
        })
        .collect())
}
