use super::zone::{OWNER, ZONE};
use super::{Acknowledged, EtcdServer, Lab, Server, Zone, eventually, free_port, program};
use etcd_backup_restore::etcd::{Etcd, EtcdConfig};
use etcd_backup_restore::store::Store;
use permit::Permit;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const UID: &str = "0841c87f";
pub const EPOCH: i64 = 3;
/// Of the quick settings below.
pub const VALIDITY: Duration = Duration::from_secs(10);
/// H of the quick settings below: a pause of the machine between the gate's check of its permit and its
/// write.
pub const REQUESTS: Duration = Duration::from_secs(1);

const QUICK: [&str; 7] = [
    "--owner-check-interval=2s",
    "--owner-check-timeout=700ms",
    "--owner-check-store-timeout=600ms",
    "--owner-check-validity=10s",
    "--owner-check-requests=1s",
    "--owner-check-propagation=0",
    "--owner-check-fence=16s",
];

/// A validity that no pause of the machine uses up: a gate that is shut then was shut by the process's own
/// judgement.
const PATIENT: [&str; 7] = [
    "--owner-check-interval=2s",
    "--owner-check-timeout=700ms",
    "--owner-check-store-timeout=600ms",
    "--owner-check-validity=10m",
    "--owner-check-requests=1s",
    "--owner-check-propagation=0",
    "--owner-check-fence=15m",
];
/// Of the patient settings.
pub const PATIENT_VALIDITY: Duration = Duration::from_secs(600);

/// The gate forwards HTTP/2. `REPOT_GATE_HTTP2` sets this flag in all tests.
const HTTP2: &str = "--gate-protocol=HTTP2";

/// An etcd on loopback that a simulated kubelet restarts whenever etcd ends.
struct KeptEtcd {
    starts: Arc<AtomicUsize>,
    /// How often the kubelet may start etcd.
    limit: Arc<AtomicUsize>,
    task: JoinSet<()>,
}

impl KeptEtcd {
    fn start(data_dir: &Path, endpoint: &str) -> Self {
        let starts = Arc::<AtomicUsize>::default();
        let limit = Arc::new(AtomicUsize::new(usize::MAX));
        let (counted, most) = (starts.clone(), limit.clone());
        let peer = format!("http://127.0.0.1:{}", free_port());
        let mut command = tokio::process::Command::new(program("etcd"));
        command
            .args(["--log-level", "error", "--unsafe-no-fsync", "--data-dir"])
            .arg(data_dir)
            .args([
                "--listen-client-urls",
                endpoint,
                "--advertise-client-urls",
                endpoint,
            ])
            .args(["--listen-peer-urls", &peer])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut task = JoinSet::new();
        task.spawn(async move {
            while counted.load(Ordering::SeqCst) < most.load(Ordering::SeqCst) {
                let mut child = command.spawn().unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = child.wait().await;
            }
        });
        Self { starts, limit, task }
    }
}

/// A shoot's etcd on seed-a in epoch 3: etcd behind the gate of the process, the zone, the bucket.
pub struct Stay {
    pub lab: Lab,
    pub zone: Zone,
    pub volume: PathBuf,
    /// etcd past the gate.
    pub etcd: Etcd,
    /// For clients.
    pub gate: String,
    endpoint: String,
    kept: KeptEtcd,
    flags: Vec<String>,
    server: Option<Server>,
}

impl Stay {
    pub async fn begin() -> Self {
        Self::with(&QUICK).await
    }

    /// For a test that needs the gate open all the time.
    pub async fn patient() -> Self {
        Self::with(&PATIENT).await
    }

    pub async fn with(settings: &[&str]) -> Self {
        let zone = Zone::start().await;
        let authority = zone.server.address.clone();
        Self::asking(zone, &authority, settings).await
    }

    /// The same with a gate for clients of the etcd with the Events at this host and port, and the address of
    /// the gate.
    pub async fn with_events(target: &str) -> (Self, String) {
        Self::with_gate_for_events(target, QUICK).await
    }

    /// Like `with_events`, for a test that needs the gate open all the time.
    pub async fn patient_with_events(target: &str) -> (Self, String) {
        Self::with_gate_for_events(target, PATIENT).await
    }

    async fn with_gate_for_events(target: &str, settings: [&str; 7]) -> (Self, String) {
        let address = format!("127.0.0.1:{}", free_port());
        let listen = format!("--gate-events-listen-address={address}");
        let target = format!("--gate-events-target={target}");
        let settings: Vec<_> = settings.into_iter().chain([&*listen, &*target]).collect();
        (Self::with(&settings).await, format!("http://{address}"))
    }

    /// The same with a gate that forwards HTTP/2.
    pub async fn with_http2() -> Self {
        let settings: Vec<_> = QUICK.into_iter().chain([HTTP2]).collect();
        Self::with(&settings).await
    }

    /// Like `with_http2`, for a test that needs the gate open all the time.
    pub async fn patient_with_http2() -> Self {
        let settings: Vec<_> = PATIENT.into_iter().chain([HTTP2]).collect();
        Self::with(&settings).await
    }

    /// Like `begin`, for a source that reaches the zone's server at `authority`.
    pub async fn asking(zone: Zone, authority: &str, settings: &[&str]) -> Self {
        let lab = Lab::new();
        let volume = lab.path("volume/new.etcd");
        std::fs::create_dir_all(volume.parent().unwrap()).unwrap();
        let (port, gate) = (free_port(), free_port());
        let endpoint = format!("http://127.0.0.1:{port}");
        let mut flags: Vec<String> = settings.iter().map(ToString::to_string).collect();
        if std::env::var_os("REPOT_GATE_HTTP2").is_some() && !settings.contains(&HTTP2) {
            flags.push(HTTP2.to_owned());
        }
        flags.extend([
            format!("--ownership-epoch={EPOCH}"),
            format!("--data-dir={}", volume.display()),
            format!("--owner-name={OWNER}"),
            "--owner-id=seed-a".to_owned(),
            format!("--owner-zone={ZONE}"),
            format!("--owner-authorities={authority}"),
            format!("--shoot-uid={UID}"),
            format!("--gate-listen-address=127.0.0.1:{gate}"),
            format!("--gate-target=127.0.0.1:{port}"),
        ]);
        let epoch = format!("--ownership-epoch={EPOCH}");
        let fresh = lab.initialize("p", &volume, &[&epoch]).await;
        assert!(fresh.success, "{}", fresh.errors);
        let kept = KeptEtcd::start(&volume, &endpoint);
        let config = EtcdConfig::plain(endpoint.clone(), Duration::from_secs(30), Permit::sole("a test"));
        let etcd = EtcdServer::wait(&config).await;
        let mut stay = Self {
            lab,
            zone,
            volume,
            etcd,
            gate: format!("http://127.0.0.1:{gate}"),
            endpoint,
            kept,
            flags,
            server: None,
        };
        stay.held("Owned", EPOCH).await;
        stay.zone.owned_by("seed-a", EPOCH).await;
        stay.start().await;
        stay.serves().await;
        stay
    }

    /// Starts the process, or restarts it.
    pub async fn start(&mut self) {
        self.server = None;
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.server = Some(Server::spawn(&self.lab, "p", &self.endpoint, &flags).await);
    }

    /// As [`Self::start`], with the log in a file.
    pub async fn start_logged(&mut self, log: &Path) {
        self.server = None;
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let server = Server::logged(&self.lab, "p", &self.endpoint, &flags, log).await;
        self.server = Some(server);
    }

    /// The seed gets the shoot again, in the next epoch: etcd and the process beside it start in that epoch.
    pub async fn comes_back(&mut self) {
        let next = EPOCH + 1;
        self.server = None;
        self.end_of_etcd().await;
        self.hold(json!({"epoch": next, "state": "Owned", "written": "anew", "origin": EPOCH}))
            .await;
        self.zone.owned_by("seed-a", next).await;
        let epoch = format!("--ownership-epoch={next}");
        let kept = self.lab.initialize("p", &self.volume, &[&epoch]).await;
        assert_eq!(kept.json["result"], "Kept", "{}", kept.errors);
        self.kept = KeptEtcd::start(&self.volume, &self.endpoint);
        let former = format!("--ownership-epoch={EPOCH}");
        for flag in &mut self.flags {
            if *flag == former {
                flag.clone_from(&epoch);
            }
        }
        self.start().await;
    }

    /// For clients that go past the gate.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub fn take_server(&mut self) -> Server {
        self.server.take().unwrap()
    }

    pub async fn serves(&self) {
        eventually("clients are served", async || self.is_ready().await.then_some(())).await;
    }

    /// The gardenlet has recorded phase `Sealing`, and reports the phase.
    pub async fn passes_sealing(&self) {
        let report = json!({ "epoch": EPOCH });
        let (status, answer) = self.server().post_json("/ownership/sealing", &report).await;
        assert_eq!(
            (status, &answer),
            (200, &json!({"epoch": EPOCH, "phase": "Sealing"}))
        );
    }

    pub async fn is_fenced(&self, state: &str) {
        eventually("clients are not served", async || {
            (self.ownership().await["state"] == state).then_some(())
        })
        .await;
        assert!(!self.is_ready().await);
        let address = self.gate.trim_start_matches("http://");
        // The process reports the state a moment before the listener is closed.
        eventually("nobody listens", async || {
            let refused = tokio::net::TcpStream::connect(address).await.err()?;
            (refused.kind() == std::io::ErrorKind::ConnectionRefused).then_some(())
        })
        .await;
    }

    pub async fn is_ready(&self) -> bool {
        self.server().text("/readyz").await.0 == 200
    }

    pub async fn ownership(&self) -> Value {
        self.server().get("/ownership").await.1
    }

    /// How often etcd was started.
    pub fn starts(&self) -> usize {
        self.kept.starts.load(Ordering::SeqCst)
    }

    /// Waits until etcd was started again.
    pub async fn has_started_since(&self, before: usize, what: &str) {
        eventually(what, async || (self.starts() > before).then_some(())).await;
    }

    /// A process that ends is not restarted.
    pub fn kubelet_stands_still(&self) {
        self.kept.limit.store(self.starts(), Ordering::SeqCst);
    }

    /// Waits for the end of etcd, after `kubelet_stands_still`.
    pub async fn etcd_has_ended(&mut self) {
        let ended = testkit::timeout(super::PATIENCE, self.kept.task.join_next()).await;
        ended.expect("etcd was told to end").unwrap().unwrap();
    }

    pub async fn end_of_etcd(&mut self) {
        self.kept.task.shutdown().await;
    }

    pub fn store(&self) -> Store {
        self.lab.store("p").of_epoch(EPOCH)
    }

    /// Writes `ownership.json`, as the BackupEntry's actuator does.
    pub async fn held(&self, state: &str, epoch: i64) {
        self.hold(json!({"epoch": epoch, "state": state, "written": format!("{state} {epoch}")}))
            .await;
    }

    async fn hold(&self, mut holding: Value) {
        holding["uid"] = UID.into();
        holding["seed"] = "seed-a".into();
        let content = serde_json::to_vec(&holding).unwrap();
        self.store().put_note("ownership.json", content).await.unwrap();
    }

    pub async fn holding(&self) -> Value {
        let content = self.store().note("ownership.json").await.unwrap().unwrap();
        serde_json::from_slice(&content).unwrap()
    }

    pub fn finals(&self) -> Vec<String> {
        let mut names = self.lab.objects("p");
        names.retain(|name| name.contains(".final"));
        names
    }

    /// Waits for the single final snapshot; a seed that takes over the shoot finds all acknowledged changes
    /// in that snapshot.
    pub async fn hands_over(&self, acknowledged: &[Acknowledged]) {
        eventually("the final snapshot is proven", async || {
            let (_, latest) = self.server().get("/snapshot/latest").await;
            (latest["finished"] == true).then_some(())
        })
        .await;
        assert_eq!(self.finals().len(), 1, "{:?}", self.finals());
        assert_eq!(self.holding().await["state"], "Sealed");
        let next = format!("--ownership-epoch={}", EPOCH + 1);
        let copied = self
            .lab
            .copy("p", "q", &["--wait-for-final-snapshot=true", &next])
            .await;
        assert!(copied.success, "{}", copied.errors);
        let volume = self.lab.path("volume-b/new.etcd");
        let ran = self.lab.initialize("q", &volume, &[&next]).await;
        assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
        let (keys, _) = EtcdServer::start(&volume).await.dump().await;
        let keys: std::collections::BTreeSet<_> = keys.into_iter().map(|key| key.0).collect();
        assert!(!acknowledged.is_empty());
        for Acknowledged { key, .. } in acknowledged {
            assert!(
                keys.contains(key.as_bytes()),
                "{key} was acknowledged and is lost"
            );
        }
    }
}
