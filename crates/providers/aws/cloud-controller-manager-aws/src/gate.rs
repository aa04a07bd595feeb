//! The HTTP proxy on loopback for all connections of the program. Each write towards the target checks the
//! permit, so a program that runs for a moment after the end of the permit reaches no target. TLS passes
//! unchanged.
//!
//! Go's clients use no proxy for loopback and for plain HTTP without `HTTP_PROXY`: such targets are of tests
//! alone.

use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use permit::{Permit, deliver_unsent, discard_unsent};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    task::JoinSet,
    time::{sleep, timeout},
};

/// Bound for the head of a request. The program sends the head at once.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Bound for a connection to the target, or to the proxy before the target.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Pause where the kernel gives no more connections.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// A request line with the longest host name and some headers.
const LONGEST_HEAD: usize = 8 * 1024;
/// Connections at a time. The program has some to the shoot's API and some to EC2.
const MOST_CONNECTIONS: usize = 64;
const CHUNK: usize = 16 * 1024;

const CONNECTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const NOT_ALLOWED: &[u8] =
    b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const NOT_REACHED: &[u8] = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The proxies between this process and the targets. An empty text names no proxy.
#[must_use]
pub fn proxies(https_proxy: &str, no_proxy: &str) -> Arc<Matcher> {
    let proxies = Matcher::builder()
        .https(https_proxy.to_owned())
        .no(no_proxy.to_owned());
    Arc::new(proxies.build())
}

/// The listener on loopback.
#[derive(Debug)]
pub struct Gate {
    listener: TcpListener,
    proxies: Arc<Matcher>,
}

impl Gate {
    /// Listens on a free port. The gate forwards no byte yet.
    ///
    /// # Errors
    /// The kernel gives no port.
    pub async fn bind(proxies: Arc<Matcher>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self { listener, proxies })
    }

    /// Address for the program.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Forwards connections while the permit lasts, until the caller drops the future.
    pub async fn forward(&self, permit: &Permit) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            match accepted {
                Ok((client, _)) if connections.len() < MOST_CONNECTIONS => {
                    connections.spawn(carry(client, Arc::clone(&self.proxies), permit.clone()));
                }
                Ok(_) => tracing::warn!(
                    most = MOST_CONNECTIONS,
                    "a connection is refused: too many are open"
                ),
                Err(error) => {
                    tracing::debug!(%error, "no connection could be accepted");
                    sleep(ACCEPT_AGAIN_AFTER).await;
                }
            }
        }
    }
}

async fn carry(client: TcpStream, proxies: Arc<Matcher>, permit: Permit) {
    match permit.guard(Box::pin(serve(client, &proxies, &permit))).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection has broken"),
        Err(refused) => tracing::info!(%refused, "a connection is closed with the permit"),
    }
}

async fn serve(mut client: TcpStream, proxies: &Matcher, permit: &Permit) -> io::Result<()> {
    let head = timeout(HEAD_WITHIN, read_head(&mut client)).await??;
    let Some(target) = target_of(&head) else {
        return client.write_all(NOT_ALLOWED).await;
    };
    let mut server = match timeout(CONNECT_WITHIN, open(&target, proxies)).await {
        Ok(Ok(Opened::Target(server))) => {
            client.write_all(CONNECTED).await?;
            server
        }
        // The proxy's answer to the program's own request goes back through the same connection.
        Ok(Ok(Opened::Proxy(mut server, request))) => {
            permit.check().map_err(io::Error::other)?;
            server.write_all(&request).await?;
            server
        }
        Ok(Err(error)) => {
            tracing::warn!(%target, %error, "the cloud-controller-manager cannot connect");
            return client.write_all(NOT_REACHED).await;
        }
        Err(_) => {
            tracing::warn!(%target, seconds = CONNECT_WITHIN.as_secs(), "the cloud-controller-manager has no connection");
            return client.write_all(NOT_REACHED).await;
        }
    };
    relay(&mut client, &mut server, permit).await?;
    deliver_unsent(&server)
}

/// Reads to the empty line. A client of CONNECT sends no byte after that line before the answer.
async fn read_head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") {
        let read = client.read(&mut chunk).await?;
        if read == 0 || head.len() > LONGEST_HEAD {
            return Err(ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(chunk.get(..read).unwrap_or_default());
    }
    Ok(head)
}

/// Host and port of a CONNECT.
fn target_of(head: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(head).ok()?.lines().next()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let uri: Uri = target.parse().ok()?;
    let is_valid = method == "CONNECT" && uri.host().is_some() && uri.port_u16().is_some();
    is_valid.then(|| target.to_owned())
}

enum Opened {
    Target(TcpStream),
    /// With the request that the proxy has to get first.
    Proxy(TcpStream, Vec<u8>),
}

async fn open(target: &str, proxies: &Matcher) -> io::Result<Opened> {
    let uri: Uri = format!("https://{target}/").parse().map_err(io::Error::other)?;
    // A name without a dot is a Service of the seed, such as the shoot's API.
    let is_of_cluster = uri.host().is_some_and(|host| !host.contains(['.', ':']));
    let Some(proxy) = proxies.intercept(&uri).filter(|_| !is_of_cluster) else {
        return connect(target).await.map(Opened::Target);
    };
    if proxy.uri().scheme_str() != Some("http") {
        return Err(io::Error::other(format!(
            "the proxy {} is not an HTTP proxy: give a URL that begins with http://",
            proxy.uri()
        )));
    }
    let host = proxy.uri().host().unwrap_or_default();
    let server = connect(&format!("{host}:{}", proxy.uri().port_u16().unwrap_or(80))).await?;
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
    if let Some(login) = proxy.basic_auth() {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(login.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    Ok(Opened::Proxy(server, request))
}

async fn connect(target: &str) -> io::Result<TcpStream> {
    let server = TcpStream::connect(target).await?;
    discard_unsent(&server)?;
    server.set_nodelay(true)?;
    Ok(server)
}

async fn relay(client: &mut TcpStream, server: &mut TcpStream, permit: &Permit) -> io::Result<()> {
    let (mut client_reader, mut client_writer) = client.split();
    let (mut server_reader, mut server_writer) = server.split();
    tokio::try_join!(
        pass_on(&mut client_reader, &mut server_writer, permit),
        pass_on(&mut server_reader, &mut client_writer, permit),
    )
    .map(drop)
}

async fn pass_on(from: &mut ReadHalf<'_>, to: &mut WriteHalf<'_>, permit: &Permit) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = from.read(&mut chunk).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        let mut left = chunk.get(..read).unwrap_or_default();
        while !left.is_empty() {
            to.writable().await?;
            // Right before the write: a process that was stopped wakes up here.
            permit.check().map_err(io::Error::other)?;
            match to.try_write(left) {
                Ok(written) => left = left.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
