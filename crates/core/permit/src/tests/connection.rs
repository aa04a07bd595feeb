//! Bytes that wait in the kernel when a permit ends. The peer reads no bytes at first, as behind a network
//! that drops packets: so the bytes of a request stay in the sender's kernel.

#![allow(clippy::unwrap_used)]

use std::future::pending;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tower::{Layer, ServiceExt};

use super::*;
use crate::{Clock, Issuer, NotPermitted};
use stalled_server::{TAKEN, listener, rest, until_full};

/// More than the kernels of both sides hold.
const REQUEST: usize = 64 << 20;

type Sender = Unanswered<Client<PermittedConnector, Full<Bytes>>>;

fn sender(http2: bool) -> Sender {
    let connector = PermittedConnector::new(Some(Duration::from_secs(5)));
    Unanswered(
        Builder::new(TokioExecutor::new())
            .http2_only(http2)
            .build(connector),
    )
}

fn issuer() -> Issuer {
    let clock = Clock::default();
    let until = clock.now() + Duration::from_secs(60);
    Issuer::new("a right", clock, until)
}

fn request(listener: &TcpListener, method: &str, size: usize) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method);
    let target = format!("http://{}/", listener.local_addr().unwrap());
    request.uri(target).body(Full::from(vec![b'x'; size])).unwrap()
}

#[tokio::test]
async fn what_the_kernel_has_not_sent_when_the_permit_ends_is_never_sent() {
    let (listener, issuer) = (listener(), issuer());
    let client = issuer.permit().layer().layer(sender(false));
    let asking = client.oneshot(request(&listener, "PUT", REQUEST));
    let cut = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        until_full(&stream).await;
        issuer.end("another seed has it");
        // The network recovers.
        let read = timeout(Duration::from_secs(10), rest(&mut stream));
        read.await.unwrap()
    };
    let (asked, (bytes, end)) = tokio::join!(asking, cut);
    assert!(asked.unwrap_err().is::<NotPermitted>());
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(bytes < TAKEN, "{bytes} bytes came after the end of the permit");
}

/// The process was stopped while the request waited. The process wakes after the end of the permit, and only
/// the connection runs.
#[tokio::test]
async fn a_connection_writes_nothing_without_the_permit_though_nobody_drops_the_request() {
    let (listener, issuer) = (listener(), issuer());
    let mut sender = sender(false);
    let mut asked = request(&listener, "PUT", REQUEST);
    asked.extensions_mut().insert(issuer.permit());
    let mut asking = sender.call(asked);
    let reading = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        until_full(&stream).await;
        issuer.end("another seed has it");
        timeout(Duration::from_secs(10), rest(&mut stream)).await.unwrap()
    };
    let ((bytes, end), ()) = tokio::join!(reading, async {
        (&mut asking).await.unwrap_err();
    });
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(
        bytes < REQUEST / 4,
        "{bytes} bytes came after the end of the permit"
    );
}

/// Reads the client's side of a connection with HTTP/2 until this number of requests has arrived.
async fn until_asked(stream: &mut TcpStream, mut requests: usize) {
    const PREFACE: usize = 24;
    const HEADERS: u8 = 1;
    stream.read_exact(&mut [0; PREFACE]).await.unwrap();
    while requests > 0 {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let size = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut content = vec![0; usize::try_from(size).unwrap()];
        stream.read_exact(&mut content).await.unwrap();
        if head[3] == HEADERS {
            requests -= 1;
        }
    }
}

#[tokio::test]
async fn a_connection_for_many_requests_ends_with_the_permit_of_the_one_that_is_not_answered() {
    let (listener, issuer, other) = (listener(), issuer(), issuer());
    let shared = sender(true);
    let lost = issuer.permit().layer().layer(shared.clone());
    let kept = other.permit().layer().layer(shared);
    let mut server = JoinSet::new();
    let (arrived, arrival) = oneshot::channel();
    let (mut asking, mut watching) = (
        Box::pin(lost.oneshot(request(&listener, "PUT", 10))),
        Box::pin(kept.oneshot(request(&listener, "GET", 0))),
    );
    server.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // The server's settings; the server sends no further answer.
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        until_asked(&mut stream, 2).await;
        arrived.send(()).unwrap();
        rest(&mut stream).await
    });
    let both = async { tokio::join!(&mut asking, &mut watching) };
    let have_arrived = tokio::select! {
        _ = both => false,
        arrival = timeout(Duration::from_secs(10), arrival) => arrival.is_ok_and(|arrival| arrival.is_ok()),
    };
    assert!(have_arrived);
    issuer.end("another seed has it");
    assert!(asking.await.unwrap_err().is::<NotPermitted>());
    let closed = timeout(Duration::from_secs(10), watching).await;
    assert!(!closed.unwrap().unwrap_err().is::<NotPermitted>());
    let (_, end) = server.join_next().await.unwrap().unwrap();
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// A watch is silent for minutes, and the end of a pure read changes no state.
#[tokio::test]
async fn an_answered_request_and_one_that_reads_keep_their_connection() {
    let (listener, issuer) = (listener(), issuer());
    let sender = sender(false);
    let mut server = JoinSet::new();
    let (put, get) = (request(&listener, "PUT", 10), request(&listener, "GET", 0));
    server.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            let mut head = vec![0; 4096];
            assert!(stream.read(&mut head).await.unwrap() > 0);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .await
                .unwrap();
        }
        // A second connection would be refused.
        drop(listener);
        pending::<()>().await;
    });
    let client = issuer.permit().layer().layer(sender.clone());
    assert_eq!(client.oneshot(put).await.unwrap().status(), 200);
    issuer.end("another seed has it");
    assert_eq!(sender.oneshot(get).await.unwrap().status(), 200);
}

/// The case of a stopped process that cannot check its permit: the kernel alone ends the connection.
#[tokio::test]
async fn the_kernel_gives_up_what_the_other_side_does_not_take() {
    let (listener, issuer) = (listener(), issuer());
    let client = issuer.permit().layer().layer(sender(false));
    let asking = client.oneshot(request(&listener, "PUT", REQUEST));
    let (begun, stopped) = (Instant::now(), listener.accept());
    let (asked, accepted) = tokio::join!(timeout(4 * UNACKNOWLEDGED_FOR, asking), stopped);
    let (mut stream, _) = accepted.unwrap();
    let failed = asked.unwrap().unwrap_err();
    assert!(begun.elapsed() >= UNACKNOWLEDGED_FOR / 2, "{:?}", begun.elapsed());
    assert!(!failed.is::<NotPermitted>(), "{failed}");
    let (bytes, _) = timeout(Duration::from_secs(10), rest(&mut stream)).await.unwrap();
    assert!(bytes < TAKEN, "{bytes} bytes came after the kernel had given up");
}

#[tokio::test]
async fn each_connection_gives_up_what_is_not_acknowledged_in_time() {
    let listener = listener();
    let target = format!("http://{}/", listener.local_addr().unwrap());
    let stream = PermittedConnector::new(None)
        .oneshot(target.parse().unwrap())
        .await
        .unwrap();
    let socket = SockRef::from(&stream.inner().stream);
    assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNACKNOWLEDGED_FOR));
    assert_eq!(socket.linger().unwrap(), Some(Duration::ZERO));
    assert!(socket.keepalive().unwrap() && socket.tcp_nodelay().unwrap());
}
