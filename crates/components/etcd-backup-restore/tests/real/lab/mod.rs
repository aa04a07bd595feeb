//! The environment of a test: a folder, an S3 server with buckets, and the binary with matching flags.

mod etcd_server;
mod follower;
mod gate;
mod key_bucket;
mod learner;
mod refusing_s3;
mod road;
mod s3_server;
mod server;
mod stay;
mod stopwatch;
mod writer;
mod zone;

pub use etcd_server::{ETCDCTL_TIMEOUTS, EtcdServer, Key, after_loss, delete, op_put};
pub use follower::Follower;
pub use gate::Gate;
pub use key_bucket::KeyBucket;
pub use learner::Learner;
pub use refusing_s3::RefusingS3;
pub use road::Road;
pub use s3_server::S3Server;
pub use server::{Server, set_tls_provider};
pub use stay::{EPOCH, PATIENT_VALIDITY, REQUESTS, Stay, VALIDITY};
pub use stopwatch::{Stopwatch, now};
pub use writer::{Acknowledged, Writer};
pub use zone::Zone;

use etcd_backup_restore::store::{Provider, Store, StoreConfig};
use permit::Permit;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Timeout of any condition; must be longer than a busy machine takes to start etcd.
pub const PATIENCE: Duration = Duration::from_secs(90);
pub const BUCKET: &str = "bucket";

pub fn program(name: &str) -> PathBuf {
    let folder = std::env::var_os("REPOT_BIN").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/repot/bin"),
        PathBuf::from,
    );
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is missing; run `make tools` first",
        path.display()
    );
    path
}

/// An unused port on loopback, a different port at each call.
pub fn free_port() -> u16 {
    testkit::free_port().unwrap()
}

pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let (begun, bound) = (Instant::now(), testkit::WaitBound::new(what, PATIENCE));
    loop {
        if let Some(found) = look().await {
            bound.report(begun.elapsed());
            return found;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{what} did not happen within {PATIENCE:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The output of a run of the binary.
#[derive(Debug)]
pub struct Ran {
    pub success: bool,
    pub json: serde_json::Value,
    pub errors: String,
    /// Peak of the process's resident memory in KiB.
    pub peak: u64,
}

pub struct Lab {
    pub folder: tempfile::TempDir,
    pub s3: S3Server,
}

impl Lab {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let s3 = S3Server::start(&folder.path().join("s3"));
        s3.create_bucket(BUCKET);
        s3.write_credentials(&folder.path().join("credentials"));
        Self { folder, s3 }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn credentials(&self) -> PathBuf {
        self.path("credentials")
    }

    /// Flags of the store; with `source-` the flags of the source.
    pub fn store_flags(&self, side: &str, prefix: &str) -> Vec<String> {
        vec![
            format!("--{side}storage-provider=S3"),
            format!("--{side}store-container={BUCKET}"),
            format!("--{side}store-prefix={prefix}"),
            format!("--{side}store-credentials-dir={}", self.credentials().display()),
        ]
    }

    /// Names of the objects below a prefix, sorted.
    pub fn objects(&self, prefix: &str) -> Vec<String> {
        let Ok(found) = std::fs::read_dir(self.object(prefix, "")) else {
            return Vec::new();
        };
        let mut names: Vec<_> = found
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        names
    }

    pub fn object(&self, prefix: &str, name: &str) -> PathBuf {
        self.s3.folder.join(BUCKET).join(prefix).join("v2").join(name)
    }

    /// Breaks the content of an object and keeps its size. The checksum lies in the last eight bytes, packed
    /// or not; a changed bit in the midst of packed zeros may unpack to the same content.
    pub fn garble(&self, prefix: &str, name: &str) {
        let path = self.object(prefix, name);
        let mut content = std::fs::read(&path).unwrap();
        let checksum = content.len() - 8;
        content[checksum] ^= 1;
        std::fs::write(path, content).unwrap();
    }

    /// The store itself, in the first epoch.
    pub fn store(&self, prefix: &str) -> Store {
        set_tls_provider();
        let config = StoreConfig {
            provider: Provider::S3,
            container: BUCKET.to_owned(),
            prefix: prefix.to_owned(),
            credentials_dir: Some(self.credentials()),
            endpoint: None,
            permit: Permit::sole("a test"),
        };
        Store::new(config).unwrap()
    }

    /// Writes the `ownership.json` of a store, as the BackupEntry's actuator does.
    pub fn hold(&self, prefix: &str, mut holding: serde_json::Value) {
        holding["uid"] = "u".into();
        holding["written"] = "now".into();
        let place = self.s3.folder.join(BUCKET).join(prefix);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("ownership.json"), holding.to_string()).unwrap();
    }

    pub async fn initialize(&self, prefix: &str, data_dir: &Path, more: &[&str]) -> Ran {
        run("initialize", &self.initialize_flags(prefix, data_dir, more)).await
    }

    pub fn initialize_flags(&self, prefix: &str, data_dir: &Path, more: &[&str]) -> Vec<String> {
        let mut flags = self.store_flags("", prefix);
        flags.extend(Self::member_flags(data_dir, more));
        flags
    }

    /// Prepares the data directory of an etcd without backups in an ownership epoch.
    pub async fn prepare(&self, data_dir: &Path, epoch: i64, more: &[&str]) -> Ran {
        let mut flags = Self::member_flags(data_dir, more);
        flags.push(format!("--ownership-epoch={epoch}"));
        run("prepare", &flags).await
    }

    fn member_flags(data_dir: &Path, more: &[&str]) -> Vec<String> {
        let mut flags = vec![
            format!("--data-dir={}", data_dir.display()),
            format!("--etcdutl-path={}", program("etcdutl").display()),
        ];
        if !more.iter().any(|flag| flag.starts_with("--etcd-path=")) {
            flags.push(format!("--etcd-path={}", program("etcd").display()));
        }
        flags.extend(more.iter().map(ToString::to_string));
        flags
    }

    pub async fn copy(&self, from: &str, to: &str, more: &[&str]) -> Ran {
        run("copy", &self.copy_flags(from, to, more)).await
    }

    pub fn copy_flags(&self, from: &str, to: &str, more: &[&str]) -> Vec<String> {
        let mut flags = self.store_flags("source-", from);
        flags.extend(self.store_flags("", to));
        flags.extend(more.iter().map(ToString::to_string));
        flags
    }
}

pub fn binary(command: &str, flags: &[String]) -> Command {
    let mut process = Command::new(env!("CARGO_BIN_EXE_etcd-backup-restore"));
    process.arg(command).args(flags).stdin(Stdio::null());
    mutation::pass_on(&mut process);
    process
}

pub async fn run(command: &str, flags: &[String]) -> Ran {
    let mut process = tokio::process::Command::from(binary(command, flags));
    process
        // Tests read the log at the default level.
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let child = process.spawn().unwrap();
    let pid = child.id().unwrap();
    let ended = testkit::timeout(2 * PATIENCE, child.wait_with_output());
    let mut peak = 0;
    tokio::pin!(ended);
    let output = loop {
        tokio::select! {
            output = &mut ended => break output.expect("it must end in time").unwrap(),
            () = tokio::time::sleep(Duration::from_millis(10)) => peak = peak.max(peak_memory(pid)),
        }
    };
    let errors = String::from_utf8(output.stderr).unwrap();
    let json = serde_json::from_slice(&output.stdout).unwrap_or_default();
    Ran {
        success: output.status.success(),
        json,
        errors,
        peak,
    }
}

/// `VmHWM` in KiB; 0 for a process that is gone.
pub fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next())
        .map_or(0, |kib| kib.parse().unwrap())
}

/// Bytes that do not compress. (In compressible data a changed bit may decode to the same content.)
pub fn noise(mut seed: u64, length: usize) -> Vec<u8> {
    let words = std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()
    });
    words.flatten().take(length).collect()
}
