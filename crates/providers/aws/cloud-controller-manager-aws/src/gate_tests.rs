#![allow(clippy::unwrap_used)]
//! The gate over real sockets.

use permit::{Clock, Issuer};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

struct Fixture {
    issuer: Issuer,
    server: TcpListener,
    gate: SocketAddr,
    _running: JoinSet<()>,
}

impl Fixture {
    async fn begin(https_proxy: impl Fn(SocketAddr) -> String) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let clock = Clock::default();
        let until = clock.now() + HOUR;
        let issuer = Issuer::new("a test", clock, until);
        let proxy = https_proxy(server.local_addr().unwrap());
        let gate = Gate::bind(proxies(&proxy, "")).await.unwrap();
        let address = gate.address().unwrap();
        let permit = issuer.permit();
        let mut running = JoinSet::new();
        running.spawn(async move { gate.forward(&permit).await });
        Self {
            issuer,
            server,
            gate: address,
            _running: running,
        }
    }

    async fn ask(&self, request: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.gate).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        client
    }

    /// A client with the answer to the CONNECT, and the server's end.
    async fn connected(&self) -> (TcpStream, TcpStream) {
        let target = self.server.local_addr().unwrap();
        let mut client = self
            .ask(&format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"))
            .await;
        let (server, _) = self.server.accept().await.unwrap();
        let mut answer = vec![0; CONNECTED.len()];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, CONNECTED);
        (client, server)
    }
}

async fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // A connection that is reset has ended as well.
    let _ = stream.read_to_end(&mut text).await;
    String::from_utf8(text).unwrap()
}

fn direct(_: SocketAddr) -> String {
    String::new()
}

/// I3: the program may run for a moment longer than the permit, but the requests of the program may not
/// leave.
#[tokio::test]
async fn no_byte_of_the_program_leaves_after_the_permit() {
    let fixture = Fixture::begin(direct).await;
    let (mut client, mut server) = fixture.connected().await;
    client.write_all(b"before").await.unwrap();
    let mut arrived = [0; 6];
    server.read_exact(&mut arrived).await.unwrap();
    assert_eq!(&arrived, b"before");
    server.write_all(b"answer").await.unwrap();
    client.read_exact(&mut arrived).await.unwrap();
    assert_eq!(&arrived, b"answer");
    fixture.issuer.end("lost");
    let _ = client.write_all(b"after").await;
    assert_eq!(rest(server).await, "");
    assert_eq!(rest(client).await, "");
}

#[tokio::test]
async fn a_connection_after_the_permit_reaches_nothing() {
    let fixture = Fixture::begin(direct).await;
    fixture.issuer.end("lost");
    let target = fixture.server.local_addr().unwrap();
    let client = fixture.ask(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
    assert_eq!(rest(client).await, "");
    let accepted = timeout(Duration::ZERO, fixture.server.accept()).await;
    assert!(accepted.is_err(), "{accepted:?}");
}

#[tokio::test]
async fn the_end_of_one_direction_lets_the_other_go_on() {
    let fixture = Fixture::begin(direct).await;
    let (mut client, mut server) = fixture.connected().await;
    client.shutdown().await.unwrap();
    assert_eq!(server.read(&mut [0; 1]).await.unwrap(), 0);
    server.write_all(b"late").await.unwrap();
    drop(server);
    assert_eq!(rest(client).await, "late");
}

#[tokio::test]
async fn only_a_tunnel_is_given() {
    let fixture = Fixture::begin(direct).await;
    for request in [
        "GET http://a.example/ HTTP/1.1\r\n\r\n",
        "CONNECT a.example HTTP/1.1\r\n\r\n",
    ] {
        let answer = rest(fixture.ask(request).await).await;
        assert!(answer.starts_with("HTTP/1.1 405 "), "{request}: {answer}");
    }
}

#[tokio::test]
async fn the_operators_proxy_gets_the_request_and_its_login() {
    let fixture = Fixture::begin(|server| format!("http://user:word@{server}")).await;
    let client = fixture
        .ask("CONNECT ec2.eu-west-1.amazonaws.com:443 HTTP/1.1\r\n\r\n")
        .await;
    let (mut server, _) = fixture.server.accept().await.unwrap();
    let head = read_head(&mut server).await.unwrap();
    assert_eq!(
        String::from_utf8(head).unwrap(),
        "CONNECT ec2.eu-west-1.amazonaws.com:443 HTTP/1.1\r\nHost: ec2.eu-west-1.amazonaws.com:443\r\n\
         Proxy-Authorization: Basic dXNlcjp3b3Jk\r\n\r\n"
    );
    server.write_all(CONNECTED).await.unwrap();
    drop(server);
    assert_eq!(rest(client).await.as_bytes(), CONNECTED);
}

#[tokio::test]
async fn a_service_of_the_seed_is_reached_without_the_operators_proxy() {
    let opened = open("localhost:1", &proxies("http://192.0.2.1:1", "")).await;
    let error = opened.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}
