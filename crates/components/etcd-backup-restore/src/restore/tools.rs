//! Running `etcdutl` and `etcd`, of the same release as the etcd that will use the data.

use crate::error::{Class, Error, Result};
use permit::Permit;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tokio::process::{Child, Command};

/// Paths of the programs, and the permit for their use.
#[derive(Clone, Debug)]
pub struct Tools {
    /// `etcd`.
    pub etcd: PathBuf,
    /// `etcdutl`.
    pub etcdutl: PathBuf,
    /// For requests to an etcd that runs here.
    pub permit: Permit,
}

/// The member that a restored data directory is for.
#[derive(Clone, Debug)]
pub struct Member {
    /// Name of the member.
    pub name: String,
    /// `name=peer url` of every member.
    pub initial_cluster: String,
    /// Token of the cluster.
    pub token: String,
    /// Peer URLs of this member.
    pub peer_urls: String,
}

impl Member {
    /// A member for a data directory whose revision alone is read: etcd takes the member from the data
    /// directory.
    pub(super) fn unknown() -> Self {
        let peer_urls = "http://127.0.0.1:2380";
        Self {
            name: "unknown".into(),
            initial_cluster: format!("unknown={peer_urls}"),
            token: "unknown".into(),
            peer_urls: peer_urls.to_owned(),
        }
    }
}

/// Whether etcd waits until the disk holds each write.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fsync {
    /// For the data directory in place, which may be the only copy of the data.
    On,
    /// For a work directory, which is synced to the disk after the end of etcd, or removed.
    Off,
}

#[derive(Deserialize)]
struct Status {
    revision: i64,
}

impl Tools {
    /// Runs `etcdutl` on a file, the last argument.
    async fn etcdutl(&self, arguments: &[&str], file: &Path) -> Result<Output> {
        let mut command = Command::new(&self.etcdutl);
        command
            .args(arguments)
            .arg(file)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = command
            .output()
            .await
            .map_err(|e| cannot_run(&self.etcdutl, "etcdutl-path", &e))?;
        if output.status.code().is_none() {
            // Killed, for example for lack of memory: that is no verdict on the file.
            return Err(Error::new(
                Class::Tool,
                format!("{} was ended: {}", self.etcdutl.display(), output.status),
            ));
        }
        Ok(output)
    }

    /// Newest revision in a database file whose pages are consistent; `SnapshotCorrupt` for an inconsistent
    /// file.
    pub(super) async fn revision(&self, database: &Path) -> Result<i64> {
        let output = self
            .etcdutl(&["snapshot", "status", "-w", "json"], database)
            .await?;
        let broken = |what: String| {
            Error::new(
                Class::SnapshotCorrupt,
                format!("etcdutl finds the database {} broken: {what}", database.display()),
            )
        };
        if !output.status.success() {
            return Err(broken(last_line(&output)));
        }
        let status: Status = serde_json::from_slice(&output.stdout).map_err(|e| broken(e.to_string()))?;
        // An etcd without a key is at revision 1; its file holds no revision.
        Ok(status.revision.max(1))
    }

    /// Makes a data directory from a snapshot file, whose hash has been checked.
    pub(super) async fn restore(&self, snapshot: &Path, to: &Path, member: &Member) -> Result<()> {
        let snapshot = snapshot.to_string_lossy();
        let arguments = [
            "snapshot",
            "restore",
            &snapshot,
            "--skip-hash-check",
            "--name",
            &member.name,
            "--initial-cluster",
            &member.initial_cluster,
            "--initial-cluster-token",
            &member.token,
            "--initial-advertise-peer-urls",
            &member.peer_urls,
            "--data-dir",
        ];
        let output = self.etcdutl(&arguments, to).await?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::new(
            Class::Tool,
            format!("etcdutl cannot restore {snapshot}: {}", last_line(&output)),
        ))
    }

    /// Starts an etcd on the loopback interface, with the URLs for clients and peers.
    pub(super) fn start(
        &self,
        data_dir: &Path,
        member: &Member,
        (client, peer): (&str, &str),
        fsync: Fsync,
    ) -> Result<Child> {
        let mut command = Command::new(&self.etcd);
        if matches!(fsync, Fsync::Off) {
            command.arg("--unsafe-no-fsync");
        }
        command
            .args(["--name", &member.name, "--log-level", "error"])
            .args([
                "--listen-client-urls",
                client,
                "--advertise-client-urls",
                client,
                "--listen-peer-urls",
                peer,
            ])
            .args([
                "--initial-advertise-peer-urls",
                &member.peer_urls,
                "--initial-cluster",
                &member.initial_cluster,
                "--initial-cluster-token",
                &member.token,
            ])
            .args(["--quota-backend-bytes", "1099511627776", "--data-dir"])
            .arg(data_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true);
        command
            .spawn()
            .map_err(|e| cannot_run(&self.etcd, "etcd-path", &e))
    }
}

fn cannot_run(program: &Path, flag: &str, error: &std::io::Error) -> Error {
    Error::new(
        Class::Tool,
        format!(
            "cannot run {}: {error}; set --{flag} to where it is",
            program.display()
        ),
    )
}

fn last_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it says nothing");
    last.trim().chars().take(500).collect()
}
