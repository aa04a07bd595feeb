//! Running `etcdutl` and `etcd`, of the same release as the etcd that will use the data.

use crate::error::{Class, Error, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tokio::process::{Child, Command};

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Tools {
    /// `etcd`.
    pub etcd: PathBuf,
    /// `etcdutl`.
    pub etcdutl: PathBuf,
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
    /// A cluster of one, for the etcd that a replay runs.
    pub(super) fn alone(peer_url: &str) -> Self {
        let initial_cluster = format!("replay={peer_url}");
        Self {
            name: "replay".into(),
            initial_cluster,
            token: "replay".into(),
            peer_urls: peer_url.to_owned(),
        }
    }
}

#[derive(Deserialize)]
struct Status {
    revision: i64,
}

impl Tools {
    /// Runs it on a file that it knows by the last argument.
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
            // Killed, for want of memory say: that tells nothing about the file.
            return Err(Error::new(
                Class::Tool,
                format!("{} was ended: {}", self.etcdutl.display(), output.status),
            ));
        }
        Ok(output)
    }

    /// Newest change in a database file whose pages are consistent; `SnapshotCorrupt` where they are not.
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
        // An etcd without a key is at revision 1; its file holds none.
        Ok(status.revision.max(1))
    }

    /// Makes a data directory from a snapshot file with its hash.
    pub(super) async fn restore(&self, snapshot: &Path, to: &Path, member: &Member) -> Result<()> {
        let snapshot = snapshot.to_string_lossy();
        let arguments = [
            "snapshot",
            "restore",
            &snapshot,
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

    /// Starts an etcd on the loopback interface that takes changes of any size and does not wait for the disk: what it
    /// holds is thrown away if the machine stops.
    pub(super) fn start(&self, data_dir: &Path, client: &str, peer: &str) -> Result<Child> {
        let mut command = Command::new(&self.etcd);
        command
            .args(["--name", "replay", "--log-level", "error", "--unsafe-no-fsync"])
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
                peer,
                "--initial-cluster",
                &format!("replay={peer}"),
            ])
            .args(["--max-txn-ops", "10000000", "--max-request-bytes", "1073741824"])
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
