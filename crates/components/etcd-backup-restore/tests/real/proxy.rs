//! A bucket that only a proxy reaches: the name of the server is known to the proxy, and the server's
//! certificate to the system.

use std::fs;

use testkit::Authority;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::lab::{Lab, binary, set_tls_provider};

const NAME: &str = "store.test";

/// Ends TLS before the store. The certificate of the authority is written to a file.
async fn serve_tls(lab: &Lab, tasks: &mut JoinSet<()>) -> u16 {
    set_tls_provider();
    let authority = Authority::new("system").unwrap();
    fs::write(lab.path("system.crt"), authority.certificate()).unwrap();
    let tls = authority.server(&[NAME]).unwrap().acceptor().unwrap();
    let store = lab.s3.endpoint.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((tcp, _)) = listener.accept().await {
            let (tls, store) = (tls.clone(), store.clone());
            connections.spawn(async move {
                // A client that does not trust the certificate goes away.
                let Ok(mut stream) = tls.accept(tcp).await else {
                    return;
                };
                let mut store = TcpStream::connect(store).await.unwrap();
                let _ = copy_bidirectional(&mut stream, &mut store).await;
            });
        }
    });
    port
}

/// Leads a single name to this host, for a single user. Each connection must begin with CONNECT.
async fn serve_proxy(server: u16, tasks: &mut JoinSet<()>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            connections.spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                let head = String::from_utf8(head).unwrap();
                let asked = format!("CONNECT {NAME}:{server} HTTP/1.1\r\n");
                // user:p@ss
                if !head.starts_with(&asked) || !head.contains("Basic dXNlcjpwQHNz\r\n") {
                    let _ = client.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await;
                    return;
                }
                let mut to = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut to).await;
            });
        }
    });
    port
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_is_reached_through_the_proxy_of_the_environment() {
    let lab = Lab::new();
    let mut tasks = JoinSet::new();
    let server = serve_tls(&lab, &mut tasks).await;
    let proxy = serve_proxy(server, &mut tasks).await;
    let endpoint = format!("https://{NAME}:{server}");
    fs::write(lab.credentials().join("endpoint"), &endpoint).unwrap();
    let copy = async |environment: &[(&str, String)]| {
        let mut process = binary("copy", &lab.copy_flags("p", "q", &["--allow-empty-source"]));
        process
            .env("RUST_LOG", "warn")
            .env_remove("NO_PROXY")
            .env_remove("no_proxy");
        process.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut process = tokio::process::Command::from(process);
        let output = process.kill_on_drop(true).output().await.unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), errors)
    };
    let to = ("HTTPS_PROXY", format!("http://user:p%40ss@127.0.0.1:{proxy}"));
    let trust = ("SSL_CERT_FILE", lab.path("system.crt").display().to_string());
    let (success, log) = copy(&[to.clone(), trust.clone()]).await;
    assert!(success, "{log}");
    assert_eq!(log.matches("may deliver bytes").count(), 1, "{log}");

    // The password is wrong.
    let wrong = ("HTTPS_PROXY", format!("http://user:guess@127.0.0.1:{proxy}"));
    let (success, log) = copy(&[wrong, trust]).await;
    assert!(!success && log.contains("the proxy http://127.0.0.1"), "{log}");
    assert!(!log.contains("guess"), "{log}");
}
