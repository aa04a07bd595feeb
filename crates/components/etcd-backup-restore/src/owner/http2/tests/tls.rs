//! Certificates of clients.

use super::fixture::{Client, PUT, PlayedEtcd, World, in_time, read};
use crate::owner::GateTlsPaths;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Writes `ca.crt`, `tls.crt` and `tls.key` of an authority.
pub(super) fn write_certificates(folder: &Path) -> Issuer<'static, KeyPair> {
    fs::create_dir_all(folder).unwrap();
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::<String>::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(folder.join("ca.crt"), ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    write_leaf(folder, &leaf, &issuer);
    issuer
}

/// Writes `tls.crt` and `tls.key`.
pub(super) fn write_leaf(folder: &Path, leaf: &CertificateParams, issuer: &Issuer<'static, KeyPair>) {
    fs::create_dir_all(folder).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = leaf.signed_by(&key, issuer).unwrap();
    fs::write(folder.join("tls.crt"), leaf.pem()).unwrap();
    fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
}

fn chain(path: &Path) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_file_iter(path)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Ends TLS in front of the played etcd, and passes bytes on.
pub(super) async fn tls_before(etcd: SocketAddr, folder: &Path) -> (SocketAddr, JoinSet<()>) {
    let key = PrivateKeyDer::from_pem_file(folder.join("tls.key")).unwrap();
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain(&folder.join("tls.crt")), key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, acceptor) = (listener.accept().await.unwrap().0, acceptor.clone());
            connections.spawn(async move {
                let mut client = acceptor.accept(stream).await.unwrap();
                let mut server = TcpStream::connect(etcd).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, task)
}

pub(super) fn client_config(trusted: &Path, own: Option<&Path>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(chain(&trusted.join("ca.crt")).remove(0)).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots);
    let mut config = match own {
        Some(own) => {
            let key = PrivateKeyDer::from_pem_file(own.join("tls.key")).unwrap();
            config
                .with_client_auth_cert(chain(&own.join("tls.crt")), key)
                .unwrap()
        }
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

pub(super) async fn connect(
    address: SocketAddr,
    config: ClientConfig,
) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// A gate with the certificate of this folder, between clients and an etcd with the same CA.
pub(super) fn gate_paths(own: &Path) -> GateTlsPaths {
    GateTlsPaths {
        cert: own.join("tls.crt"),
        key: own.join("tls.key"),
        client_ca: own.join("ca.crt"),
        etcd_ca: own.join("ca.crt"),
        etcd_client: Some((own.join("tls.crt"), own.join("tls.key"))),
        etcd_name: "localhost".to_owned(),
    }
}

/// Whether the peer has ended the connection without a byte of HTTP/2.
pub(super) async fn is_refused<S: tokio::io::AsyncRead + Unpin>(mut stream: S) -> bool {
    let mut byte = [0];
    let read = tokio::io::AsyncReadExt::read(&mut stream, &mut byte);
    !matches!(in_time(read).await, Ok(1..))
}

#[tokio::test]
async fn a_client_without_a_certificate_of_the_ca_reaches_no_etcd() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let [own, foreign] = ["own", "foreign"].map(|name| folder.path().join(name));
    write_certificates(&own);
    write_certificates(&foreign);
    let etcd = PlayedEtcd::start().await;
    let (target, _tls) = tls_before(etcd.address, &own).await;
    let mut world = World::before(etcd, target, Some(gate_paths(&own))).await;
    for certificate in [None, Some(&*foreign)] {
        // With TLS 1.3 the client learns of the refusal after the handshake.
        if let Ok(stream) = connect(world.address, client_config(&own, certificate)).await {
            assert!(is_refused(stream).await, "{certificate:?}");
        }
    }
    let plain = TcpStream::connect(world.address).await.unwrap();
    plain.writable().await.unwrap();
    plain.try_write(super::raw::PREFACE).unwrap();
    // An alert of TLS, no frame of HTTP/2.
    let mut answer = [0; 9];
    let mut plain = plain;
    if let Ok(read @ 1..) = in_time(tokio::io::AsyncReadExt::read(&mut plain, &mut answer)).await {
        assert_eq!((read > 0, answer[0]), (true, 21));
    }
    assert!(!world.etcd.has_arrived());

    let stream = connect(world.address, client_config(&own, Some(&own)))
        .await
        .unwrap();
    let client = Client::over(stream).await;
    let asked = client.call(PUT).await;
    world.etcd.next().await.answer(b"answer");
    assert_eq!(read(in_time(asked.response).await.unwrap()).await.0, b"answer");
    // With the certificate of the gate every client would have the rights of the gate.
    let asked = client.call("/etcdserverpb.Auth/AuthEnable").await;
    assert_eq!(read(in_time(asked.response).await.unwrap()).await.1, "9");
    assert!(!world.etcd.has_arrived());
}
