//! etcd that wants client certificates, and the HTTPS interface.

use crate::lab::{EtcdServer, Lab, Server, eventually, free_port, set_tls_provider};
use etcd_backup_restore::etcd::EtcdConfig;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Writes `ca.crt`, `tls.crt` and `tls.key`. Returns the CA.
pub(super) fn write_certificates(folder: &Path) -> Issuer<'static, KeyPair> {
    fs::create_dir_all(folder).unwrap();
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::<String>::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(folder.join("ca.crt"), ca.self_signed(&ca_key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let leaf = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
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

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_speak_tls() {
    let lab = Lab::new();
    let folder = lab.path("tls");
    write_certificates(&folder);
    let [ca, cert, key] =
        ["ca.crt", "tls.crt", "tls.key"].map(|name| folder.join(name).display().to_string());
    let port = free_port();
    let config = EtcdConfig {
        endpoints: vec![format!("https://localhost:{port}")],
        cacert: Some(folder.join("ca.crt")),
        cert: Some(folder.join("tls.crt")),
        key: Some(folder.join("tls.key")),
        server_name: None,
        timeout: Duration::from_secs(10),
        permit: permit::Permit::sole("a test"),
    };
    let flags = [
        format!("--trusted-ca-file={ca}"),
        "--client-cert-auth".to_owned(),
        format!("--cert-file={cert}"),
        format!("--key-file={key}"),
    ];
    let etcd = EtcdServer::start_with(&lab.path("etcd"), port, &config, &flags).await;
    etcd.put_key("/a", "1").await;
    let mut flags = lab.store_flags("", "p");
    flags.extend([
        format!("--endpoints={}", etcd.endpoint),
        format!("--cacert={ca}"),
        format!("--cert={cert}"),
        format!("--key={key}"),
        format!("--server-cert={cert}"),
        format!("--server-key={key}"),
    ]);
    set_tls_provider();
    let root = reqwest::Certificate::from_pem(&fs::read(folder.join("ca.crt")).unwrap()).unwrap();
    let client = reqwest::Client::builder().tls_certs_only([root]).build().unwrap();
    let server = Server::with(&flags, "https", client).await;
    let name = eventually("a snapshot", async || {
        let (status, json) = server.get("/snapshot/full?final=true").await;
        (status == 200).then(|| json["snapName"].as_str().unwrap().to_owned())
    })
    .await;
    assert!(lab.objects("p").contains(&name));
}
