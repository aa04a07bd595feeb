use super::{EtcdServer, Lab, Ran, binary, eventually, free_port, peak_memory, run, set_tls_provider};
use serde_json::Value;
use std::process::Child;

/// `etcd-backup-restore follow` of a source etcd, with the snapshots below a prefix of the store.
pub struct Follower {
    process: Child,
    url: String,
}

impl Follower {
    /// The flags of a follower. `source`: the endpoint of the source.
    pub fn flags(lab: &Lab, prefix: &str, source: &str, local: &EtcdServer, more: &[&str]) -> Vec<String> {
        let mut flags = lab.store_flags("source-", prefix);
        flags.extend([
            format!("--source-endpoints={source}"),
            format!("--endpoints={}", local.endpoint),
            format!("--scratch-dir={}", lab.folder.path().display()),
            "--maintenance-period=1s".to_owned(),
        ]);
        flags.extend(more.iter().map(ToString::to_string));
        flags
    }

    /// Starts a follower that follows until the follower is dropped.
    pub fn start(lab: &Lab, prefix: &str, source: &str, local: &EtcdServer, more: &[&str]) -> Self {
        // For the client of this process.
        set_tls_provider();
        let port = free_port();
        let mut flags = Self::flags(lab, prefix, source, local, more);
        flags.push(format!("--listen-address=127.0.0.1:{port}"));
        Self {
            process: binary("follow", &flags).spawn().unwrap(),
            url: format!("http://127.0.0.1:{port}"),
        }
    }

    /// Runs a follower to its end.
    pub async fn run(lab: &Lab, prefix: &str, source: &EtcdServer, local: &EtcdServer, more: &[&str]) -> Ran {
        run("follow", &Self::flags(lab, prefix, &source.endpoint, local, more)).await
    }

    /// The text that the follower serves; `None` while the process does not answer.
    pub async fn text(&self, path: &str) -> Option<String> {
        let answer = reqwest::get(format!("{}{path}", self.url)).await.ok()?;
        answer.text().await.ok()
    }

    /// The answer of `GET /follow`.
    pub async fn status(&self) -> Option<Value> {
        serde_json::from_str(&self.text("/follow").await?).ok()
    }

    /// Waits until the follower has proved a revision.
    pub async fn reaches(&self, revision: i64) -> Value {
        eventually("the follower reaches the revision", async || {
            let status = self.status().await?;
            (status["revision"].as_i64()? >= revision).then_some(status)
        })
        .await
    }

    /// Waits until the local etcd was compacted at a revision.
    pub async fn compacts(&self, revision: i64) {
        eventually("the follower compacts", async || {
            (self.status().await?["compactedRevision"] == revision).then_some(())
        })
        .await;
    }

    /// Whether the process has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    pub fn peak(&self) -> u64 {
        peak_memory(self.process.id())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
