//! The way to a DNS server.
//!
//! Questions need no permit: they change nothing, and permits come from them.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::question::{Heard, Question};

/// The longest datagram that is read. Answers without EDNS have at most 512 bytes; servers that send more are
/// understood.
const LONGEST_DATAGRAM: usize = 4096;

/// How questions travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams from one port.
    Udp,
    /// One connection.
    Tcp,
}

/// The path to servers.
pub trait Wire: Send + Sync {
    /// A new flow to this server. It may wait for ever; the caller stops waiting.
    fn connect(&self, server: SocketAddr, transport: Transport) -> BoxFuture<'_, io::Result<Box<dyn Flow>>>;
}

/// One network flow: the same two addresses and ports for all of its questions. Routers and load balancers
/// lead all of it to the same server behind an anycast address, so that both names of an owner record are
/// answered from one copy of the zone.
pub trait Flow: Send {
    /// Sends the question once, and gives the message that answers it. It may wait for ever; the caller stops
    /// waiting. Messages that do not answer this question are dropped.
    fn ask<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, io::Result<Heard>>;
}

/// The network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network;

impl Wire for Network {
    fn connect(&self, server: SocketAddr, transport: Transport) -> BoxFuture<'_, io::Result<Box<dyn Flow>>> {
        Box::pin(async move {
            let flow: Box<dyn Flow> = match transport {
                Transport::Udp => Box::new(Datagrams::to(server).await?),
                Transport::Tcp => Box::new(Stream(TcpStream::connect(server).await?)),
            };
            Ok(flow)
        })
    }
}

/// From a port that the kernel draws, and connected: only the server's own datagrams arrive.
struct Datagrams(UdpSocket);

impl Datagrams {
    async fn to(server: SocketAddr) -> io::Result<Self> {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await?;
        socket.connect(server).await?;
        Ok(Self(socket))
    }
}

impl Flow for Datagrams {
    fn ask<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, io::Result<Heard>> {
        Box::pin(async move {
            self.0.send(question.bytes()).await?;
            let mut buffer = vec![0; LONGEST_DATAGRAM];
            loop {
                let length = self.0.recv(&mut buffer).await?;
                if let Some(heard) = buffer.get(..length).and_then(|bytes| question.answer(bytes)) {
                    return Ok(heard);
                }
            }
        })
    }
}

struct Stream(TcpStream);

impl Flow for Stream {
    fn ask<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, io::Result<Heard>> {
        Box::pin(async move {
            let length = u16::try_from(question.bytes().len()).map_err(io::Error::other)?;
            let mut framed = length.to_be_bytes().to_vec();
            framed.extend_from_slice(question.bytes());
            self.0.write_all(&framed).await?;
            let mut answer = vec![0; usize::from(self.0.read_u16().await?)];
            self.0.read_exact(&mut answer).await?;
            question
                .answer(&answer)
                .ok_or_else(|| io::Error::other("it answers another question"))
        })
    }
}
