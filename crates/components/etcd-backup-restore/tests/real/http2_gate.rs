//! Clients of a real etcd at a gate that forwards HTTP/2: etcdctl, kube-apiserver, and the client of this
//! process.

use crate::lab::{
    ETCDCTL_TIMEOUTS, EtcdServer, Lab, Stay, eventually, free_port, op_put, program, set_tls_provider,
};
use crate::tls::write_certificates;
use etcd_backup_restore::etcd::{Etcd, EtcdConfig};
use etcd_backup_restore::metrics::Metrics;
use etcd_backup_restore::owner::{Gate, GateTarget, GateTlsPaths, Http2Proxy, PreparedLimits};
use futures::future::ready;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use permit::Permit;
use rcgen::{Issuer, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use testkit::ControlPlane;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::task::JoinSet;

const VALUE: usize = 1 << 20;
const VALUES: u64 = 100;

pub fn etcdctl(endpoint: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program("etcdctl"));
    command
        .args(["--endpoints", endpoint])
        .args(ETCDCTL_TIMEOUTS)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs etcdctl to its end; returns standard output.
async fn run(endpoint: &str, args: &[&str], input: &str) -> String {
    let mut child = etcdctl(endpoint, args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn etcdctl_does_all_through_the_gate() {
    let stay = Stay::patient_with_http2().await;
    let gate = stay.gate.clone();
    let call = async |args: &[&str]| run(&gate, args, "").await;
    let mut watch = etcdctl(&gate, &["watch", "/a", "--rev=1"]).spawn().unwrap();
    let mut events = BufReader::new(watch.stdout.take().unwrap()).lines();
    assert_eq!(call(&["put", "/a", "1"]).await.trim(), "OK");
    assert_eq!(call(&["get", "/a", "--print-value-only"]).await.trim(), "1");
    let txn = "mod(\"/a\") > \"0\"\n\nput /a 2\n\nput /b 1\n\n";
    assert!(run(&gate, &["txn"], txn).await.contains("SUCCESS"));
    for line in ["PUT", "/a", "1", "PUT", "/a", "2"] {
        let seen = tokio::time::timeout(Duration::from_secs(30), events.next_line()).await;
        assert_eq!(seen.unwrap().unwrap().unwrap(), line);
    }
    let granted = call(&["lease", "grant", "600"]).await;
    let lease = granted.split_whitespace().nth(1).unwrap();
    call(&["put", "/leased", "x", "--lease", lease]).await;
    let alive = call(&["lease", "keep-alive", lease, "--once"]).await;
    assert!(alive.contains("keepalived with TTL(600)"), "{alive}");
    call(&["lease", "revoke", lease]).await;
    assert!(call(&["get", "/leased"]).await.is_empty());
    let held = call(&["lock", "/lock", "echo", "held"]).await;
    assert!(held.contains("held"), "{held}");
    let status: Value = serde_json::from_str(&call(&["endpoint", "status", "-w", "json"]).await).unwrap();
    let revision = status[0]["Status"]["header"]["revision"].as_i64().unwrap();
    call(&["compact", &revision.to_string()]).await;
    let mut old = etcdctl(&gate, &["get", "/a", "--rev=1"]).spawn().unwrap();
    assert!(!old.wait().await.unwrap().success());
    for args in [
        &["endpoint", "health"][..],
        &["endpoint", "hashkv"],
        &["member", "list"],
        &["alarm", "list"],
        &["defrag"],
    ] {
        call(args).await;
    }
    let file = stay.lab.path("saved.db");
    call(&["snapshot", "save", &file.display().to_string()]).await;
    assert!(std::fs::metadata(&file).unwrap().len() > 0);
    let metrics = stay.server().text("/metrics").await.1;
    for class in ["read", "write", "stream"] {
        let line = format!("etcdbr_gate_requests_total{{class=\"{class}\"}}");
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
}

/// The number of bytes of a snapshot, and whether etcd's hash at the end is that of the bytes before.
async fn snapshot(etcd: &Etcd) -> (usize, bool) {
    let (mut pieces, mut content) = (etcd.snapshot().await.unwrap(), Vec::new());
    while let Some(piece) = pieces.message().await.unwrap() {
        content.extend(piece.blob);
    }
    let (database, hash) = content.split_last_chunk::<32>().unwrap();
    (content.len(), Sha256::digest(database)[..] == hash[..])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_range_and_a_snapshot_pass_byte_by_byte() {
    let stay = Stay::patient_with_http2().await;
    let config = EtcdConfig::plain(
        stay.gate.clone(),
        Duration::from_secs(120),
        Permit::sole("a test"),
    );
    let client = config.connect().await.unwrap();
    let mut watch = client.watch(1).await.unwrap();
    for number in 0..VALUES {
        let value = crate::lab::noise(number + 1, VALUE);
        client
            .txn(vec![op_put(&format!("/large/{number:03}"), value, 0)])
            .await
            .unwrap();
    }
    let (direct, _) = stay.etcd.page(b"/large/", 1000).await.unwrap();
    let (passed, _) = client.page(b"/large/", 1000).await.unwrap();
    assert_eq!(passed.len(), usize::try_from(VALUES).unwrap());
    assert!(passed == direct);
    // The watch was slow until here.
    let mut seen = 0;
    while seen < VALUES {
        let answer = watch.next().await.unwrap();
        for event in answer.events {
            let value = crate::lab::noise(seen + 1, VALUE);
            assert!(event.kv.is_some_and(|kv| kv.value == value), "event {seen}");
            seen += 1;
        }
    }
    let (size, is_whole) = snapshot(&client).await;
    assert!(
        is_whole && size > usize::try_from(VALUES).unwrap() * VALUE,
        "{size}"
    );
}

/// ConfigMaps of a real kube-apiserver pass the gate.
#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_writes_lists_and_watches_through_the_gate() {
    const MAPS: usize = 50;
    let stay = Stay::patient_with_http2().await;
    let overrides = format!("--etcd-servers-overrides=/configmaps#{}", stay.gate);
    let plane = ControlPlane::start_with("configmaps", vec![overrides])
        .await
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(plane.admin(), "default");
    let watch = maps.watch(&WatchParams::default(), "0").await.unwrap();
    let mut added = watch.boxed().try_filter_map(|event| {
        ready(Ok(match event {
            WatchEvent::Added(map) if map.name_any().starts_with("map-") => Some(map.name_any()),
            _ => None,
        }))
    });
    for number in 0..MAPS {
        let map = json!({"metadata": {"name": format!("map-{number:02}")}, "data": {"a": "x".repeat(2000)}});
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
        let seen = tokio::time::timeout(Duration::from_secs(30), added.try_next()).await;
        assert_eq!(seen.unwrap().unwrap(), Some(map.name_any()));
    }
    let listed = maps.list(&ListParams::default().limit(7)).await.unwrap();
    assert!(listed.metadata.continue_.is_some());
    maps.delete("map-07", &DeleteParams::default()).await.unwrap();
    let stored = EtcdServer::keys(stay.endpoint()).await;
    let has = |name: &str| stored.contains(format!("/registry/configmaps/default/{name}").as_bytes());
    assert!(has("map-08") && !has("map-07"));
}

/// An etcd with TLS that wants client certificates, with all certificates of one authority.
pub struct SecureEtcd {
    pub etcd: EtcdServer,
    pub port: u16,
    /// For clients, but for the endpoint.
    pub config: EtcdConfig,
    pub paths: GateTlsPaths,
    /// Of all certificates.
    pub authority: Issuer<'static, KeyPair>,
}

impl SecureEtcd {
    pub async fn start(lab: &Lab) -> Self {
        let folder = lab.path("tls");
        let authority = write_certificates(&folder);
        let file = |name: &str| folder.join(name);
        let port = free_port();
        let config = EtcdConfig {
            endpoints: vec![format!("https://localhost:{port}")],
            cacert: Some(file("ca.crt")),
            cert: Some(file("tls.crt")),
            key: Some(file("tls.key")),
            server_name: None,
            timeout: Duration::from_secs(30),
            permit: Permit::sole("a test"),
        };
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let flags = [
            flag("trusted-ca-file", &file("ca.crt")),
            "--client-cert-auth".to_owned(),
            flag("cert-file", &file("tls.crt")),
            flag("key-file", &file("tls.key")),
        ];
        let etcd = EtcdServer::start_with(&lab.path("etcd"), port, &config, &flags).await;
        let paths = GateTlsPaths {
            cert: file("tls.crt"),
            key: file("tls.key"),
            client_ca: file("ca.crt"),
            etcd_ca: file("ca.crt"),
            etcd_client: Some((file("tls.crt"), file("tls.key"))),
            etcd_name: "localhost".to_owned(),
        };
        Self {
            etcd,
            port,
            config,
            paths,
            authority,
        }
    }

    /// A gate in front of this etcd.
    pub fn gate(&self, is_http2: bool) -> Gate {
        self.measured_gate(is_http2, &Metrics::default())
    }

    /// As [`Self::gate`], with measurements that the test reads.
    pub fn measured_gate(&self, is_http2: bool, metrics: &Metrics) -> Gate {
        let metrics = metrics.gate();
        let target = ([127, 0, 0, 1], self.port).into();
        let (paths, limits) = (self.paths.clone(), PreparedLimits::default());
        let proxy = || Http2Proxy::new(target, Some(paths), limits, metrics.clone()).unwrap();
        Gate {
            listen: ([127, 0, 0, 1], 0).into(),
            target: GateTarget::Etcd(target),
            most: 16,
            http2: is_http2.then(|| Arc::new(proxy())),
            metrics: metrics.clone(),
        }
    }

    /// Runs a gate for HTTP/2 until the task is dropped. Returns the configuration of a client of the gate.
    pub async fn serve_gate(&self) -> (EtcdConfig, JoinSet<()>) {
        let gate = self.gate(true);
        let listener = gate.bind().await.unwrap();
        let config = self.client_of(listener.local_addr().unwrap());
        let mut running = JoinSet::new();
        running.spawn(async move { gate.forward(listener, &Permit::sole("a test")).await });
        (config, running)
    }

    /// The configuration of a client of a gate.
    pub fn client_of(&self, gate: std::net::SocketAddr) -> EtcdConfig {
        EtcdConfig {
            endpoints: vec![format!("https://localhost:{}", gate.port())],
            ..self.config.clone()
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_verifies_clients_in_place_of_etcd() {
    set_tls_provider();
    let lab = Lab::new();
    let secure = SecureEtcd::start(&lab).await;
    let (config, _running) = secure.serve_gate().await;
    let client = config.connect().await.unwrap();
    let revision = client.txn(vec![op_put("/a", "1", 0)]).await.unwrap();
    assert_eq!(secure.etcd.client.revision().await.unwrap(), revision);
    // The same client without a certificate.
    let anonymous = EtcdConfig {
        cert: None,
        key: None,
        timeout: Duration::from_secs(2),
        ..config
    };
    let refused = async {
        let client = anonymous.connect().await?;
        client.txn(vec![op_put("/b", "1", 0)]).await
    };
    refused.await.unwrap_err();
    assert_eq!(secure.etcd.client.revision().await.unwrap(), revision);
    eventually("the client with a certificate is served", async || {
        client.revision().await.ok()
    })
    .await;
}
