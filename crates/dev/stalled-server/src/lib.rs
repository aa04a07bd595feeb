//! Development only: servers that hold a client up. A server reads no bytes at first, so that the bytes of a
//! request stay in the kernels of both sides. A second server answers byte by byte.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, clippy::must_use_candidate)] // only tests use this crate

use std::io;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Upper bound of the bytes that the peer's kernel accepts before the process reads, including bytes on the
/// way. Much less than a request.
pub const TAKEN: usize = 512 << 10;

/// A server that accepts few bytes before the process reads.
pub fn listener() -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    socket
        .bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into())
        .unwrap();
    socket.listen(8).unwrap();
    socket.set_nonblocking(true).unwrap();
    TcpListener::from_std(socket.into()).unwrap()
}

/// Number of bytes that arrive after this moment, and the end of the connection.
pub async fn rest(stream: &mut TcpStream) -> (usize, io::Result<()>) {
    let (mut bytes, mut chunk) = (0, vec![0; 64 << 10]);
    loop {
        match stream.read(&mut chunk).await {
            Ok(0) => return (bytes, Ok(())),
            Ok(read) => bytes += read,
            Err(error) => return (bytes, Err(error)),
        }
    }
}

/// Waits until the number of bytes in the peer's kernel stays the same.
pub async fn until_full(stream: &TcpStream) {
    let mut before = 0;
    loop {
        let mut taken = vec![0; TAKEN];
        let now = stream.peek(&mut taken).await.unwrap();
        if now == before && now > 0 {
            return;
        }
        before = now;
        sleep(Duration::from_millis(100)).await;
    }
}

/// Reads the head of a request, answers with `head`, and then sends a byte after each `interval` until the
/// peer closes the connection. Returns the number of single bytes.
pub async fn drip(stream: &mut TcpStream, head: &str, interval: Duration) -> usize {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.unwrap());
    }
    let mut sent = 0;
    if stream.write_all(head.as_bytes()).await.is_err() {
        return sent;
    }
    // The write after the end of the connection fails.
    while stream.write_all(b"x").await.is_ok() {
        sent += 1;
        sleep(interval).await;
    }
    sent
}
