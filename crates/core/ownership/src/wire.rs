//! The network path to a DNS server.
//!
//! Questions need no permit: a question changes no state, and permits come from the answers.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::question::{Question, ServerResponse};

/// The longest datagram that is read. Answers without EDNS have at most 512 bytes; longer datagrams of some
/// servers are accepted.
const LONGEST_DATAGRAM: usize = 4096;

/// The transport of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams from a single port.
    Udp,
    /// A single connection.
    Tcp,
}

/// The path to servers.
pub trait Wire: Send + Sync {
    /// A new flow to this server. May wait for ever; the caller sets the bound.
    fn connect(&self, server: SocketAddr, transport: Transport) -> BoxFuture<'_, io::Result<Box<dyn Flow>>>;
}

/// A network flow: the same two addresses and ports for all questions of the flow. Routers and load balancers
/// lead the whole flow to the same server behind an anycast address. So a single copy of the zone answers
/// both names of an owner record.
pub trait Flow: Send {
    /// Sends the question once, and returns the message that answers the question. May wait for ever; the
    /// caller sets the bound. Messages that do not answer this question are dropped.
    fn ask<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, io::Result<ServerResponse>>;
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

/// A socket on a port that the kernel draws, and connected: only the server's own datagrams arrive.
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
    fn ask<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, io::Result<ServerResponse>> {
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
    fn ask<'a>(&'a mut self, question: &'a Question) -> BoxFuture<'a, io::Result<ServerResponse>> {
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
