use super::{eventually, free_port, program};
use etcd_backup_restore::error::Class;
use etcd_backup_restore::etcd::{Etcd, EtcdConfig, messages as m};
use permit::Permit;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Key, creation revision, last revision, version, lease, value.
pub type Key = (Vec<u8>, i64, i64, i64, i64, Vec<u8>);

/// Flags of etcdctl: far longer than a busy machine takes. The defaults are 2 s and 5 s.
pub const ETCDCTL_TIMEOUTS: [&str; 2] = ["--dial-timeout=60s", "--command-timeout=60s"];

/// A running etcd.
pub struct EtcdServer {
    process: Child,
    pub endpoint: String,
    pub client: Etcd,
    config: EtcdConfig,
    data_dir: PathBuf,
    flags: Vec<String>,
}

impl EtcdServer {
    pub async fn start(data_dir: &Path) -> Self {
        Self::start_plain(data_dir, &[]).await
    }

    /// An etcd with a quota in bytes.
    pub async fn start_limited(data_dir: &Path, quota: u64) -> Self {
        Self::start_plain(data_dir, &[format!("--quota-backend-bytes={quota}")]).await
    }

    pub(super) async fn start_plain(data_dir: &Path, flags: &[String]) -> Self {
        let endpoint = format!("http://127.0.0.1:{}", free_port());
        let process = Self::spawn(data_dir, &endpoint, flags);
        let config = EtcdConfig::plain(endpoint.clone(), Duration::from_secs(30), Permit::sole("a test"));
        let client = Self::wait(&config).await;
        Self {
            process,
            endpoint,
            client,
            config,
            data_dir: data_dir.to_owned(),
            flags: flags.to_vec(),
        }
    }

    pub async fn start_with(data_dir: &Path, port: u16, config: &EtcdConfig, flags: &[String]) -> Self {
        let endpoint = format!("https://localhost:{port}");
        let process = Self::spawn(data_dir, &endpoint, flags);
        let client = Self::wait(config).await;
        Self {
            process,
            endpoint,
            client,
            config: config.clone(),
            data_dir: data_dir.to_owned(),
            flags: flags.to_vec(),
        }
    }

    pub async fn wait(config: &EtcdConfig) -> Etcd {
        eventually("etcd answers", async || {
            let client = config.connect().await.ok()?;
            client.revision().await.ok()?;
            Some(client)
        })
        .await
    }

    /// The keys that a client reads under this address.
    pub async fn keys(endpoint: &str) -> BTreeSet<Vec<u8>> {
        let sole = Permit::sole("a test");
        let config = EtcdConfig::plain(endpoint.to_owned(), Duration::from_secs(30), sole);
        let (found, more) = Self::wait(&config).await.page(&[], 100_000).await.unwrap();
        assert!(!more);
        found.into_iter().map(|kv| kv.key.into()).collect()
    }

    /// An etcd that syncs each write to the disk.
    pub async fn start_synced(data_dir: &Path) -> Self {
        Self::start_plain(data_dir, &["--unsafe-no-fsync=false".to_owned()]).await
    }

    pub(super) fn spawn(data_dir: &Path, endpoint: &str, flags: &[String]) -> Child {
        let peer = format!("http://127.0.0.1:{}", free_port());
        Command::new(program("etcd"))
            .args([
                "--log-level",
                "error",
                "--unsafe-no-fsync",
                "--max-request-bytes",
                "16777216",
            ])
            .args([
                "--listen-client-urls",
                endpoint,
                "--advertise-client-urls",
                endpoint,
            ])
            .args(["--listen-peer-urls", &peer, "--data-dir"])
            .arg(data_dir)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Writes all changes into the database file: a snapshot begins with that.
    pub async fn flush(&self) {
        let mut pieces = self.client.snapshot().await.unwrap();
        pieces.message().await.unwrap();
    }

    /// Waits until the process has ended, so that the data directory is at rest.
    pub fn stop(self) {
        drop(self);
    }

    /// Kills the process. [`Self::start_again`] must follow.
    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts the killed etcd at the same endpoint.
    pub async fn start_again(&mut self) {
        self.process = Self::spawn(&self.data_dir, &self.endpoint, &self.flags);
        self.client = Self::wait(&self.config).await;
    }

    pub async fn put_key(&self, key: &str, value: impl Into<Vec<u8>>) -> i64 {
        self.client.txn(vec![op_put(key, value, 0)]).await.unwrap()
    }

    pub async fn delete(&self, key: &str) -> i64 {
        self.client.txn(vec![delete(key)]).await.unwrap()
    }

    pub fn compact(&self, revision: i64) {
        let mut etcdctl = Command::new(program("etcdctl"));
        etcdctl.args(ETCDCTL_TIMEOUTS).args([
            "--endpoints",
            &self.endpoint,
            "compact",
            "--physical",
            &revision.to_string(),
        ]);
        assert!(etcdctl.stdout(Stdio::null()).status().unwrap().success());
    }

    /// Whether a watcher that remembers a revision gets a compaction error. Otherwise etcd has a change from
    /// this revision on.
    pub async fn has_compacted(&self, remembered: i64) -> bool {
        let mut watch = self.client.watch(remembered).await.unwrap();
        loop {
            match watch.next().await {
                Ok(response) if response.events.is_empty() => {}
                Ok(_) => return false,
                Err(error) => {
                    assert_eq!(error.class, Class::Compacted, "{error}");
                    return true;
                }
            }
        }
    }

    /// etcd's own hash over its whole history: each change with its revision and versions.
    pub fn history(&self) -> String {
        let mut etcdctl = Command::new(program("etcdctl"));
        etcdctl.args(ETCDCTL_TIMEOUTS);
        etcdctl.args(["--endpoints", &self.endpoint, "endpoint", "hashkv", "-w", "json"]);
        let output = etcdctl.output().unwrap();
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let said = &said[0]["HashKV"];
        assert!(said["hash"].is_number(), "{said}");
        format!("{} from {} on", said["hash"], said["compact_revision"])
    }

    /// All keys of etcd, byte for byte, and its revision.
    pub async fn dump(&self) -> (Vec<Key>, i64) {
        let (mut keys, mut from) = (Vec::new(), Vec::new());
        loop {
            let (page, more) = self.client.page(&from, 20).await.unwrap();
            from = page
                .last()
                .map(|kv| [&kv.key[..], &[0]].concat())
                .unwrap_or_default();
            keys.extend(page.into_iter().map(|kv| {
                (
                    kv.key.into(),
                    kv.create_revision,
                    kv.mod_revision,
                    kv.version,
                    kv.lease,
                    kv.value.into(),
                )
            }));
            if !more {
                return (keys, self.client.revision().await.unwrap());
            }
        }
    }
}

/// The same keys at the revision with which etcd continues after the volume was lost within an epoch.
/// `losses`: number of successive losses without a snapshot in between.
pub fn after_loss((keys, revision): &(Vec<Key>, i64), losses: i64) -> (Vec<Key>, i64) {
    (keys.clone(), revision + losses * ownership::LEFT_OUT_WITHIN_EPOCH)
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn op_put(key: &str, value: impl Into<Vec<u8>>, lease: i64) -> m::RequestOp {
    let request = m::PutRequest {
        key: key.as_bytes().to_vec().into(),
        value: value.into().into(),
        lease,
    };
    m::RequestOp {
        operation: Some(m::Change::Put(request)),
    }
}

pub fn delete(key: &str) -> m::RequestOp {
    let request = m::DeleteRangeRequest {
        key: key.as_bytes().to_vec().into(),
        ..m::DeleteRangeRequest::default()
    };
    m::RequestOp {
        operation: Some(m::Change::Delete(request)),
    }
}
