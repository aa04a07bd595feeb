//! A store behind a proxy: only the proxy can resolve the name of the server.

#![allow(clippy::unwrap_used)]

// Shared with the tests of connections without a proxy.

use hyper_util::client::proxy::matcher::{Builder as Rules, Matcher};
use permit::{Clock, Issuer};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::*;

const WITHIN: Duration = Duration::from_secs(5);
const LOGIN: &str = "Proxy-Authorization: Basic dXNlcjpwQHNz";

/// Reads up to the end of a head.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin)) {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nkept";
    stream.write_all(answer).await.unwrap();
}

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A certificate authority, and a server with TLS for a single request. The request's head is the task's
/// result.
async fn store(name: &str, server: &mut JoinSet<String>) -> (RootCertStore, u16) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new([name.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![leaf.der().clone()], key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let (listener, port) = listener().await;
    let tls = TlsAcceptor::from(Arc::new(config));
    server.spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        let mut stream = tls.accept(tcp).await.unwrap();
        let asked = head(&mut stream).await;
        answer(&mut stream).await;
        asked
    });
    (roots, port)
}

/// A proxy for a single connection, leading all names to this host. The request's head is the task's result.
async fn proxy(tasks: &mut JoinSet<String>) -> u16 {
    let (listener, port) = listener().await;
    tasks.spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let asked = head(&mut client).await;
        let target = asked.split([' ', ':']).nth(2).unwrap();
        let mut server = TcpStream::connect(format!("127.0.0.1:{target}")).await.unwrap();
        let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
        client.write_all(established).await.unwrap();
        let _ = copy_bidirectional(&mut client, &mut server).await;
        asked
    });
    port
}

fn connector(rules: Rules, permit: &Permit) -> StoreConnector {
    let _ = rustls::crypto::ring::default_provider().install_default();
    StoreConnector {
        proxies: Proxies::new(rules.build()),
        ..StoreConnector::new(permit, WITHIN, 2 * WITHIN)
    }
}

fn put_request(url: String, body: Vec<u8>) -> HttpRequest {
    http::Request::put(url).body(body.into()).unwrap()
}

fn sole() -> Permit {
    Permit::sole("a test")
}

#[tokio::test]
async fn a_store_with_tls_is_reached_through_the_proxy_of_the_environment() {
    let mut tasks = JoinSet::new();
    let (roots, server) = store("store.test", &mut tasks).await;
    let proxy = proxy(&mut tasks).await;
    let rules = Matcher::builder().https(format!("http://user:p%40ss@127.0.0.1:{proxy}"));
    let client = connector(rules, &sole()).trusting(roots).client();
    let request = put_request(
        format!("https://store.test:{server}/bucket/key"),
        b"value".to_vec(),
    );
    let answer = client.execute(request).await.unwrap();
    assert_eq!(answer.into_body().bytes().await.unwrap(), "kept");
    drop(client);
    let mut heads = tasks.join_all().await;
    heads.sort();
    assert!(
        heads[0].starts_with(&format!("CONNECT store.test:{server} HTTP/1.1\r\n"))
            && heads[0].contains(LOGIN),
        "{heads:?}"
    );
    // Only the proxy receives the login.
    let asked = heads[1].to_lowercase();
    assert!(
        asked.starts_with("put /bucket/key ") && !asked.contains("proxy-authorization"),
        "{heads:?}"
    );
}

/// Squid and similar proxies allow CONNECT to port 443 alone.
#[tokio::test]
async fn a_request_to_a_store_without_tls_is_forwarded_by_the_proxy() {
    let (listener, port) = listener().await;
    let rules = Matcher::builder().http(format!("http://user:p%40ss@127.0.0.1:{port}"));
    let client = connector(rules, &sole()).client();
    let request = client.execute(put_request(
        "http://store.test:9000/bucket/key".to_owned(),
        Vec::new(),
    ));
    let (answered, asked) = tokio::join!(request, async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let asked = head(&mut stream).await;
        answer(&mut stream).await;
        asked.to_lowercase()
    });
    assert_eq!(answered.unwrap().into_body().bytes().await.unwrap(), "kept");
    assert!(
        asked.starts_with("put http://store.test:9000/bucket/key http/1.1\r\n"),
        "{asked}"
    );
    assert!(asked.contains(&LOGIN.to_lowercase()), "{asked}");
    assert!(asked.contains("host: store.test:9000\r\n"), "{asked}");
}

#[tokio::test]
async fn a_store_that_no_proxy_names_is_reached_directly() {
    let (listener, port) = listener().await;
    // No process listens at this port.
    let rules = Matcher::builder().all("http://127.0.0.1:1").no("127.0.0.0/8");
    let client = connector(rules, &sole()).client();
    let request = client.execute(put_request(format!("http://127.0.0.1:{port}/key"), Vec::new()));
    let (answered, asked) = tokio::join!(request, async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let asked = head(&mut stream).await;
        answer(&mut stream).await;
        asked
    });
    assert!(answered.unwrap().status().is_success());
    assert!(asked.starts_with("PUT /key "), "{asked}");
}

#[tokio::test]
async fn a_proxy_that_opens_no_connection_is_named_without_its_password() {
    let (listener, port) = listener().await;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        head(&mut stream).await;
        let refused = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
        stream.write_all(refused).await.unwrap();
    });
    for (proxy, cause) in [
        (
            format!("http://user:secret@127.0.0.1:{port}"),
            "authorization required",
        ),
        ("socks5://user:secret@127.0.0.1:1".to_owned(), "is not supported"),
        ("http://user:secret@127.0.0.1:1".to_owned(), "refused"),
    ] {
        let client = connector(Matcher::builder().all(proxy), &sole()).client();
        let request = put_request("https://store.test/key".to_owned(), Vec::new());
        let error = client.execute(request).await.unwrap_err();
        assert_eq!(error.kind(), HttpErrorKind::Connect);
        let text = error.to_string();
        assert!(
            text.contains("127.0.0.1") && text.contains(cause) && text.contains("store.test"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
    }
}

#[tokio::test]
async fn a_proxy_that_does_not_answer_is_given_up_in_time() {
    let (listener, port) = listener().await;
    let rules = Matcher::builder().all(format!("http://127.0.0.1:{port}"));
    let connector = StoreConnector {
        connect_within: Duration::from_millis(200),
        ..connector(rules, &sole())
    };
    let client = connector.client();
    let request = client.execute(put_request("https://store.test/key".to_owned(), Vec::new()));
    let error = timeout(WITHIN, request).await.unwrap().unwrap_err();
    assert!(
        with_causes(&error).contains("no answer within 0.2 s"),
        "{error:?}"
    );
    drop(listener);
}

/// Bytes that the proxy has not acknowledged are never sent, as without a proxy.
#[tokio::test]
async fn a_connection_to_a_proxy_ends_with_the_permit() {
    let clock = Clock::default();
    let issuer = Issuer::new("a right", clock.clone(), clock.now() + Duration::from_secs(60));
    let listener = stalled_server::listener();
    let port = listener.local_addr().unwrap().port();
    let rules = Matcher::builder().all(format!("http://127.0.0.1:{port}"));
    let client = connector(rules, &issuer.permit()).client();
    let body = vec![b'x'; 64 << 20];
    let size = body.len();
    let request = client.execute(put_request("http://store.test/key".to_owned(), body));
    let (answered, (bytes, end)) = tokio::join!(request, async {
        let (mut stream, _) = listener.accept().await.unwrap();
        head(&mut stream).await;
        stalled_server::until_full(&stream).await;
        issuer.end("another seed has it");
        stalled_server::rest(&mut stream).await
    });
    answered.unwrap_err();
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(bytes < size / 2, "{bytes} bytes came after the end of the permit");
}
