//! The way to a DNS server.
//!
//! Questions need no permit: they change nothing, and permits come from them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::question::{Heard, Question};

/// The longest datagram that is read. Answers without EDNS have at most 512 bytes; servers that send more are understood.
const LONGEST_DATAGRAM: usize = 4096;

/// How a question travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One datagram there, one back.
    Udp,
    /// A connection of its own.
    Tcp,
}

/// Carries questions to servers.
pub trait Wire: Send + Sync {
    /// Sends the question once, and gives what answers it. It may wait for ever; whoever asks stops waiting. What does not
    /// answer this question is not given.
    fn ask<'a>(
        &'a self,
        server: SocketAddr,
        transport: Transport,
        question: &'a Question,
    ) -> BoxFuture<'a, io::Result<Heard>>;
}

/// The network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network;

impl Wire for Network {
    fn ask<'a>(
        &'a self,
        server: SocketAddr,
        transport: Transport,
        question: &'a Question,
    ) -> BoxFuture<'a, io::Result<Heard>> {
        match transport {
            Transport::Udp => Box::pin(over_udp(server, question)),
            Transport::Tcp => Box::pin(over_tcp(server, question)),
        }
    }
}

/// From a port that the kernel draws, and connected: only the server's own datagrams arrive.
async fn over_udp(server: SocketAddr, question: &Question) -> io::Result<Heard> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(question.bytes()).await?;
    let mut buffer = vec![0; LONGEST_DATAGRAM];
    loop {
        let length = socket.recv(&mut buffer).await?;
        if let Some(heard) = buffer.get(..length).and_then(|bytes| question.answer(bytes)) {
            return Ok(heard);
        }
    }
}

async fn over_tcp(server: SocketAddr, question: &Question) -> io::Result<Heard> {
    let length = u16::try_from(question.bytes().len()).map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(server).await?;
    let mut framed = length.to_be_bytes().to_vec();
    framed.extend_from_slice(question.bytes());
    stream.write_all(&framed).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    question
        .answer(&answer)
        .ok_or_else(|| io::Error::other("it answers another question"))
}
