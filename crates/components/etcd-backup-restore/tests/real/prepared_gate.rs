//! Clients with the certificate of a preparation at a gate in front of a real etcd: etcdctl, a follower, and
//! kube-apiserver.

use crate::http2_gate::{SecureEtcd, etcdctl};
use crate::lab::{EtcdServer, Follower, Lab, eventually, op_put, set_tls_provider};
use crate::tls::write_leaf;
use etcd_backup_restore::clock;
use etcd_backup_restore::etcd::EtcdConfig;
use etcd_backup_restore::metrics::Metrics;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use permit::Permit;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, SerialNumber};
use serde_json::json;
use sidecar_protocol::{PREPARED_CLIENT_UNIT, PreparedClient, PreparedClientList};
use std::path::Path;
use testkit::ControlPlane;
use tokio::task::JoinSet;

const REFUSED: &str = "refuses this method for the certificate of a preparation";

/// A gate in front of an etcd, and a client with a listed certificate.
struct Prepared {
    secure: SecureEtcd,
    config: EtcdConfig,
    metrics: Metrics,
    _running: JoinSet<()>,
}

impl Prepared {
    async fn start(lab: &Lab) -> Self {
        set_tls_provider();
        let secure = SecureEtcd::start(lab).await;
        let metrics = Metrics::default();
        let gate = secure.measured_gate(true, &metrics);
        let clients = gate.http2.as_ref().unwrap().prepared_clients();
        let listener = gate.bind().await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut running = JoinSet::new();
        running.spawn(async move { gate.forward(listener, &Permit::sole("a test")).await });

        let folder = lab.path("prepared");
        let mut leaf = CertificateParams::new(Vec::<String>::new()).unwrap();
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.serial_number = Some(SerialNumber::from_slice(&[0x4a, 0x0f]));
        leaf.distinguished_name
            .push(DnType::OrganizationalUnitName, PREPARED_CLIENT_UNIT);
        write_leaf(&folder, &leaf, &secure.authority);
        let listed = PreparedClient {
            serial: "4a0f".to_owned(),
            expiry: clock::now() + SignedDuration::from_hours(1),
        };
        let list = PreparedClientList {
            epoch: 1,
            valid_for_milliseconds: 300_000,
            clients: vec![listed],
        };
        assert_eq!(clients.replace(&list, clock::now()).unwrap(), 1);
        let config = EtcdConfig {
            cert: Some(folder.join("tls.crt")),
            key: Some(folder.join("tls.key")),
            ..secure.client_of(address)
        };
        Self {
            secure,
            config,
            metrics,
            _running: running,
        }
    }

    fn files(&self) -> [&Path; 3] {
        [&self.config.cacert, &self.config.cert, &self.config.key].map(|path| path.as_deref().unwrap())
    }

    /// Runs etcdctl; returns the success and both outputs.
    async fn etcdctl(&self, args: &[&str]) -> (bool, String) {
        let files = self.files().map(|path| path.display().to_string());
        let flags = ["--cacert", "--cert", "--key"].into_iter().zip(&files);
        let flags = flags.flat_map(|(flag, file)| [flag, file.as_str()]);
        let all: Vec<_> = flags.chain(args.iter().copied()).collect();
        let output = etcdctl(&self.config.endpoints[0], &all).output().await.unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    }
}

/// With MemberAdd the source would send all data to an etcd of the destination, also after the grant.
#[tokio::test(flavor = "multi_thread")]
async fn a_preparation_changes_no_members_users_and_alarms_of_etcd() {
    let lab = Lab::new();
    let prepared = Prepared::start(&lab).await;
    let etcd = &prepared.secure.etcd.client;
    etcd.grant(7, 3600).await.unwrap();
    etcd.txn(vec![op_put("/leased", "x", 7)]).await.unwrap();
    let revision = etcd.revision().await.unwrap();
    let file = lab.path("stolen.db").display().to_string();
    for args in [
        &["member", "list"][..],
        &["member", "add", "b", "--peer-urls=http://127.0.0.1:1"],
        &["user", "add", "root:x"],
        &["auth", "enable"],
        &["alarm", "list"],
        &["defrag"],
        &["snapshot", "save", file.as_str()],
        &["lease", "revoke", "7"],
        &["put", "/a", "1"],
        &["del", "/leased"],
    ] {
        let (is_success, text) = prepared.etcdctl(args).await;
        assert!(!is_success && text.contains(REFUSED), "{args:?}: {text}");
    }
    assert_eq!(etcd.revision().await.unwrap(), revision);
    assert_eq!(etcd.granted_ttl(7).await.unwrap(), Some(3600));

    let client = prepared.config.connect().await.unwrap();
    let written = client.txn(vec![op_put("/a", "1", 0)]).await.unwrap();
    assert_eq!(etcd.revision().await.unwrap(), written);
    client.grant(8, 600).await.unwrap();
    assert!(client.history_hash(written).await.unwrap().is_some());
    let repeated = client.history_hash(written).await.unwrap_err().to_string();
    assert!(repeated.contains("one hash a minute"), "{repeated}");
    assert!(client.compact(written).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_reads_with_the_certificate_of_a_preparation() {
    let lab = Lab::new();
    let prepared = Prepared::start(&lab).await;
    let source = &prepared.secure.etcd;
    source.client.grant(7, 3600).await.unwrap();
    let local = EtcdServer::start(&lab.path("local")).await;
    let files = ["cacert", "cert", "key"].into_iter().zip(prepared.files());
    let flags: Vec<_> = files
        .map(|(name, path)| format!("--source-{name}={}", path.display()))
        .collect();
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let follower = Follower::start(&lab, "p", &prepared.config.endpoints[0], &local, &flags);
    let mut revision = 0;
    for number in 0..100 {
        let change = op_put(&format!("/a/{}", number % 10), "x", 7);
        revision = source.client.txn(vec![change]).await.unwrap();
    }
    follower.reaches(revision).await;
    drop(follower);
    // The local etcd has a history now, so the proof needs the hash of the source.
    let follower = Follower::start(&lab, "p", &prepared.config.endpoints[0], &local, &flags);
    revision = source.client.txn(vec![op_put("/a/0", "y", 7)]).await.unwrap();
    follower.reaches(revision).await;
    assert!(source.dump().await == local.dump().await);
    assert_eq!(local.client.leases().await.unwrap(), [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn kube_apiserver_serves_with_the_certificate_of_a_preparation() {
    let lab = Lab::new();
    let prepared = Prepared::start(&lab).await;
    let endpoint = &prepared.config.endpoints[0];
    let mut flags = vec![
        format!("--etcd-servers-overrides=/configmaps#{endpoint},/events#{endpoint}"),
        "--etcd-compaction-interval=10s".to_owned(),
    ];
    let files = ["cafile", "certfile", "keyfile"]
        .into_iter()
        .zip(prepared.files());
    flags.extend(files.map(|(name, path)| format!("--etcd-{name}={}", path.display())));
    let plane = ControlPlane::start_with("prepared", flags).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(plane.admin(), "default");
    for number in 0..20 {
        let name = format!("map-{number:02}");
        let map = json!({"metadata": {"name": name}, "data": {"a": "1"}});
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
        let update = Patch::Merge(json!({"data": {"a": "2"}}));
        maps.patch(&name, &PatchParams::default(), &update).await.unwrap();
    }
    maps.delete("map-07", &DeleteParams::default()).await.unwrap();
    let listed = maps.list(&ListParams::default().limit(7)).await.unwrap();
    assert!(listed.metadata.continue_.is_some());
    let (stored, _) = prepared.secure.etcd.dump().await;
    let has = |name: &str| {
        let key = format!("/registry/configmaps/default/{name}");
        stored.iter().any(|found| found.0 == key.as_bytes())
    };
    assert!(has("map-08") && !has("map-07"));

    // An Event has a lease.
    let events: Api<Event> = Api::namespaced(plane.admin(), "default");
    let event = json!({
        "metadata": {"name": "map-08"},
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "map-08"},
        "reason": "Prepared",
        "message": "a message",
        "type": "Normal",
    });
    let event: Event = serde_json::from_value(event).unwrap();
    events.create(&PostParams::default(), &event).await.unwrap();
    let etcd = &prepared.secure.etcd.client;
    assert!(!etcd.leases().await.unwrap().is_empty());
    eventually("kube-apiserver compacts the etcd", async || {
        (etcd.oldest_revision(1).await.ok()? > 1).then_some(())
    })
    .await;
    let shown = prepared.metrics.text();
    let refused = "etcdbr_gate_prepared_requests_refused_total";
    assert!(!shown.lines().any(|line| line.starts_with(refused)), "{shown}");
}
