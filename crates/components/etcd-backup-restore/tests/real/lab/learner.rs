use super::{ETCDCTL_TIMEOUTS, EtcdServer, Lab, eventually, free_port, program, set_tls_provider};
use etcd_backup_restore::etcd::HistoryHash;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// A learner: a replica that etcd itself fills.
pub struct Learner {
    process: Child,
    peer: String,
}

fn local_url() -> String {
    format!("http://127.0.0.1:{}", free_port())
}

impl Learner {
    /// Starts an etcd and its learner.
    pub async fn start(lab: &Lab) -> (EtcdServer, Self) {
        set_tls_provider();
        let [voter, peer] = [local_url(), local_url()];
        let flags = |name: &str, peer: &str, members: &str| {
            [
                format!("--name={name}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster={members}"),
                // A source that starts again elects itself at once.
                "--heartbeat-interval=20".to_owned(),
                "--election-timeout=200".to_owned(),
            ]
        };
        let members = format!("voter={voter}");
        let source = EtcdServer::start_plain(&lab.path("source"), &flags("voter", &voter, &members)).await;
        let mut etcdctl = Command::new(program("etcdctl"));
        etcdctl.args(ETCDCTL_TIMEOUTS).args([
            "--endpoints",
            &source.endpoint,
            "member",
            "add",
            "learner",
            "--learner",
        ]);
        etcdctl.arg(format!("--peer-urls={peer}"));
        assert!(etcdctl.stdout(Stdio::null()).status().unwrap().success());
        let mut flags = flags("learner", &peer, &format!("{members},learner={peer}")).to_vec();
        flags.push("--initial-cluster-state=existing".to_owned());
        let process = EtcdServer::spawn(&lab.path("learner"), &local_url(), &flags);
        (source, Self { process, peer })
    }

    /// The hash of the learner's history, once the learner has the revision. A learner answers only the other
    /// members.
    pub async fn history_hash(&self, revision: i64) -> HistoryHash {
        let (client, url) = (reqwest::Client::new(), format!("{}/members/hashkv", self.peer));
        eventually("the learner has the revision", async || {
            let request = client.get(&url).body(format!("{{\"revision\":{revision}}}"));
            let answer = request.send().await.ok()?.error_for_status().ok()?;
            let answer: Value = serde_json::from_str(&answer.text().await.ok()?).ok()?;
            Some(HistoryHash {
                hash: u32::try_from(answer["hash"].as_u64()?).ok()?,
                compacted: answer["compact_revision"].as_i64().unwrap_or(1).max(1),
            })
        })
        .await
    }
}

impl Drop for Learner {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
