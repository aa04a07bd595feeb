#![allow(clippy::unwrap_used, clippy::panic)]
//! The gate over real sockets.

use super::*;
use crate::metrics::Metrics;
use nix::sys::socket::sockopt;
use permit::{Clock, Issuer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const HOUR: Duration = Duration::from_secs(3600);
/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A gate before a server of the test.
struct World {
    issuer: Issuer,
    /// Seconds for which the machine was suspended.
    suspended: Arc<AtomicU64>,
    server: TcpListener,
    address: SocketAddr,
    metrics: Arc<Metrics>,
    gate: JoinSet<()>,
}

impl World {
    async fn begin(most: usize) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let metrics = Arc::<Metrics>::default();
        let gate = Gate {
            listen: "127.0.0.1:0".parse().unwrap(),
            target: GateTarget::Etcd(server.local_addr().unwrap()),
            most,
            http2: None,
            metrics: metrics.gate(),
        };
        let suspended = Arc::<AtomicU64>::default();
        let seconds = suspended.clone();
        let clock = Clock::with_suspension(move || Duration::from_secs(seconds.load(Ordering::SeqCst)));
        let until = clock.now() + HOUR;
        let issuer = Issuer::new("a test", clock, until);
        let listener = gate.bind().await.unwrap();
        let address = listener.local_addr().unwrap();
        let permit = issuer.permit();
        let mut running = JoinSet::new();
        running.spawn(async move { gate.forward(listener, &permit).await });
        Self {
            issuer,
            suspended,
            server,
            address,
            metrics,
            gate: running,
        }
    }

    /// A client and the server's end of the connection.
    async fn pair(&self) -> (TcpStream, TcpStream) {
        let (client, server) = tokio::join!(TcpStream::connect(self.address), self.server.accept());
        (client.unwrap(), server.unwrap().0)
    }

    async fn shows(&self, line: &str) {
        let seen = async {
            while !self.metrics.text().lines().any(|shown| shown == line) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let seen = timeout(PATIENCE, seen).await;
        assert!(seen.is_ok(), "{line} is not in\n{}", self.metrics.text());
    }
}

async fn is_cut(stream: &mut TcpStream) {
    let read = timeout(PATIENCE, stream.read(&mut [0])).await.unwrap();
    assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn bytes_pass_both_ways_and_one_direction_may_end_before_the_other() {
    let world = World::begin(16).await;
    let (mut client, mut server) = world.pair().await;
    // More than sockets hold, so that writing has to wait.
    let question = vec![7; 9 << 20];
    let ask = async {
        client.write_all(&question).await.unwrap();
        client.shutdown().await.unwrap();
    };
    let mut heard = Vec::new();
    let ((), read) = tokio::join!(ask, server.read_to_end(&mut heard));
    read.unwrap();
    assert!(heard == question);
    world.shows("etcdbr_gate_open_connections 1").await;
    server.write_all(b"answer").await.unwrap();
    drop(server);
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "answer");
    world
        .shows("etcdbr_gate_connections_total{result=\"ended\"} 1")
        .await;
    world.shows("etcdbr_gate_open_connections 0").await;
}

#[tokio::test]
async fn when_the_right_ends_all_is_cut_and_nobody_listens() {
    let mut world = World::begin(16).await;
    let (mut idle, _idle) = world.pair().await;
    let (mut busy, mut server) = world.pair().await;
    busy.write_all(b"x").await.unwrap();
    assert_eq!(server.read_u8().await.unwrap(), b'x');
    world.issuer.end("epoch 2 has begun");
    timeout(PATIENCE, world.gate.join_next()).await.unwrap();
    for stream in [&mut idle, &mut busy, &mut server] {
        is_cut(stream).await;
    }
    let refused = TcpStream::connect(world.address).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    world.shows("etcdbr_gate_open_connections 0").await;
}

/// Timers do not run during a suspension; the check of the clock before each write detects the suspension.
#[tokio::test]
async fn after_a_suspension_no_byte_passes() {
    let world = World::begin(16).await;
    let (mut client, mut server) = world.pair().await;
    client.write_all(b"x").await.unwrap();
    assert_eq!(server.read_u8().await.unwrap(), b'x');
    world.suspended.store(3600, Ordering::SeqCst);
    client.write_all(b"late").await.unwrap();
    is_cut(&mut server).await;
    is_cut(&mut client).await;
}

/// Bytes that the gate has written and the client has not read, once the gate waits for the client.
pub(in crate::owner) async fn written_and_unread(gate: SocketAddr, client: SocketAddr) -> usize {
    let mut before = usize::MAX;
    loop {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let queue = |local: SocketAddr, remote: SocketAddr, index: usize| {
            let ends = |line: &&str| {
                let mut fields = line.split_whitespace().skip(1);
                let mut has = |end: SocketAddr| {
                    let port = format!(":{:04X}", end.port());
                    fields.next().is_some_and(|field| field.ends_with(&port))
                };
                has(local) && has(remote)
            };
            let line = table.lines().find(ends).unwrap();
            let queues = line.split_whitespace().nth(4).unwrap();
            usize::from_str_radix(queues.split(':').nth(index).unwrap(), 16).unwrap()
        };
        let now = queue(gate, client, 0) + queue(client, gate, 1);
        if now > 0 && now == before {
            return now;
        }
        before = now;
        sleep(Duration::from_millis(200)).await;
    }
}

/// etcd has replied while the seed owned the shoot, and the client is slow: the gate still holds a part of
/// the reply when the permit ends. The timers do not know of the end, as the machine was suspended.
#[tokio::test]
async fn a_reply_that_etcd_gave_in_time_is_not_released_after_the_permit() {
    let world = World::begin(16).await;
    let (mut client, mut server) = world.pair().await;
    let address = client.local_addr().unwrap();
    let mut replying = JoinSet::new();
    // More than all sockets on the path buffer together.
    replying.spawn(async move { server.write_all(&vec![7; 256 << 20]).await });
    written_and_unread(world.address, address).await;
    world.suspended.store(3600, Ordering::SeqCst);
    let written = written_and_unread(world.address, address).await;
    let (mut chunk, mut received) = (vec![0; 1 << 20], 0);
    let broken = loop {
        match timeout(PATIENCE, client.read(&mut chunk)).await.unwrap() {
            Ok(0) => panic!("the reply ended in order after {received} bytes"),
            Ok(read) => received += read,
            Err(broken) => break broken,
        }
    };
    assert_eq!(broken.kind(), io::ErrorKind::ConnectionReset);
    assert!(
        received <= written,
        "{} bytes were released after the permit had ended",
        received - written
    );
}

#[test]
fn a_gate_that_checks_the_permit_at_the_beginning_alone_is_noticed() {
    for (test, failure) in [
        (after_a_suspension_no_byte_passes as fn(), "unwrap_err"),
        (
            a_reply_that_etcd_gave_in_time_is_not_released_after_the_permit,
            "the reply ended in order",
        ),
    ] {
        Mutation::BytesWithoutPermit.assert_killed_by(test, failure);
    }
}

#[tokio::test]
async fn too_many_are_refused_and_a_place_that_is_free_is_given_again() {
    let world = World::begin(2).await;
    let first = world.pair().await;
    let (mut second, mut other) = world.pair().await;
    for _ in 0..20 {
        let mut more = TcpStream::connect(world.address).await.unwrap();
        // The connection may be cut before the first byte is written.
        let _ = more.write_all(b"x").await;
        is_cut(&mut more).await;
    }
    world
        .shows("etcdbr_gate_connections_total{result=\"refused\"} 20")
        .await;
    second.write_all(b"y").await.unwrap();
    assert_eq!(other.read_u8().await.unwrap(), b'y');
    drop(first);
    world.shows("etcdbr_gate_open_connections 1").await;
    let (mut third, mut other) = world.pair().await;
    third.write_all(b"z").await.unwrap();
    assert_eq!(other.read_u8().await.unwrap(), b'z');
}

#[tokio::test]
async fn a_client_is_cut_where_etcd_does_not_listen() {
    let World {
        address,
        server,
        gate: _gate,
        issuer: _issuer,
        ..
    } = World::begin(16).await;
    drop(server);
    let mut client = TcpStream::connect(address).await.unwrap();
    is_cut(&mut client).await;
}

/// A killed process closes no connection itself: the kernel must know in advance that the waiting bytes must
/// not be delivered.
#[tokio::test]
async fn what_waits_in_the_kernel_is_discarded_also_when_the_process_is_killed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connect = async || {
        let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        (client.unwrap(), Abrupt::new(accepted.unwrap().0))
    };
    let (mut client, mut abrupt) = connect().await;
    prepare(abrupt.stream()).unwrap();
    assert_eq!(abrupt.stream().linger().unwrap(), Some(Duration::ZERO));
    let timeout = nix::sys::socket::getsockopt(abrupt.stream(), sockopt::TcpUserTimeout).unwrap();
    assert_eq!(u128::from(timeout), permit::UNACKNOWLEDGED_FOR.as_millis());
    drop(abrupt);
    is_cut(&mut client).await;
    // Both sides have finished: the last bytes arrive.
    let (mut client, finished) = connect().await;
    abrupt = finished;
    abrupt.stream().try_write(b"last").unwrap();
    abrupt.finish();
    drop(abrupt);
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"last");
}
