//! A DNS server with scripted answers, over UDP and TCP at a single port.

use std::net::SocketAddr;
use std::sync::Arc;

use hickory_proto::op::{Message, OpCode};
use hickory_proto::rr::rdata::TXT;
use hickory_proto::rr::{RData, Record};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Udp,
    Tcp,
}

/// All messages sent for a question, in this order, unchanged.
type Behaviour = dyn Fn(&Message, Over, SocketAddr) -> Vec<Vec<u8>> + Send + Sync;

/// The server ends when this value is dropped.
pub struct Server {
    pub address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Server {
    pub async fn start(behaviour: impl Fn(&Message, Over) -> Vec<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self::telling(move |question, over, _| behaviour(question, over)).await
    }

    /// The same, for tests that need the flow of a question: the last argument is the address of the client.
    pub async fn telling(
        behaviour: impl Fn(&Message, Over, SocketAddr) -> Vec<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        // A port that is free for both transports.
        let (udp, tcp) = loop {
            let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
            if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()).await {
                break (udp, tcp);
            }
        };
        let address = tcp.local_addr().unwrap();
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        let mut tasks = JoinSet::new();
        tasks.spawn(over_udp(udp, Arc::clone(&behaviour)));
        tasks.spawn(over_tcp(tcp, behaviour));
        Self {
            address,
            _tasks: tasks,
        }
    }
}

async fn over_udp(socket: UdpSocket, behaviour: Arc<Behaviour>) {
    let mut buffer = vec![0; 4096];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let question = Message::from_vec(buffer.get(..length).unwrap()).unwrap();
        for datagram in behaviour(&question, Over::Udp, from) {
            let _ = socket.send_to(&datagram, from).await;
        }
    }
}

async fn over_tcp(listener: TcpListener, behaviour: Arc<Behaviour>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, from)) = listener.accept().await {
        connections.spawn(over_connection(stream, from, Arc::clone(&behaviour)));
    }
}

async fn over_connection(mut stream: TcpStream, from: SocketAddr, behaviour: Arc<Behaviour>) {
    while let Ok(length) = stream.read_u16().await {
        let mut question = vec![0; usize::from(length)];
        if stream.read_exact(&mut question).await.is_err() {
            return;
        }
        for message in behaviour(&Message::from_vec(&question).unwrap(), Over::Tcp, from) {
            let length = u16::try_from(message.len()).unwrap();
            let _ = stream.write_u16(length).await;
            let _ = stream.write_all(&message).await;
        }
    }
}

/// The right answer to a question about seed-a in epoch 3, changed by `change`.
pub fn answer(question: &Message, change: impl FnOnce(&mut Message)) -> Vec<u8> {
    let query = question.queries.first().unwrap().clone();
    let text = if query.name().to_ascii().starts_with("epoch.") {
        "3"
    } else {
        "seed-a"
    };
    let mut message = Message::response(question.metadata.id, OpCode::Query);
    message.metadata.authoritative = true;
    let text = RData::TXT(TXT::new(vec![text.to_owned()]));
    message.add_answer(Record::from_rdata(query.name().clone(), 10, text));
    message.add_query(query);
    change(&mut message);
    message.to_vec().unwrap()
}

pub fn right(question: &Message) -> Vec<u8> {
    answer(question, |_| {})
}
