use super::{Lab, binary, eventually, free_port, peak_memory};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};

/// `etcd-backup-restore server` beside an etcd.
pub struct Server {
    process: Child,
    pub url: String,
    client: reqwest::Client,
}

impl Server {
    /// Starts the process and waits until it takes snapshots.
    pub async fn start(lab: &Lab, prefix: &str, etcd: &str, more: &[&str]) -> Self {
        let server = Self::spawn(lab, prefix, etcd, more).await;
        eventually("snapshots are taken", async || {
            (server.get("/healthz").await.1["snapshotter"] == "Active").then_some(())
        })
        .await;
        server
    }

    /// Starts the process and waits until it answers.
    pub async fn spawn(lab: &Lab, prefix: &str, etcd: &str, more: &[&str]) -> Self {
        set_tls_provider();
        Self::with(
            &Self::flags(lab, prefix, etcd, more),
            "http",
            reqwest::Client::new(),
        )
        .await
    }

    /// The same with the log, at the default level, in a file.
    pub async fn logged(lab: &Lab, prefix: &str, etcd: &str, more: &[&str], log: &Path) -> Self {
        set_tls_provider();
        let flags = Self::flags(lab, prefix, etcd, more);
        let log = Some(File::create(log).unwrap());
        Self::started(&flags, "http", reqwest::Client::new(), log).await
    }

    fn flags(lab: &Lab, prefix: &str, etcd: &str, more: &[&str]) -> Vec<String> {
        let mut flags = lab.store_flags("", prefix);
        flags.push(format!("--endpoints={etcd}"));
        flags.extend(more.iter().map(ToString::to_string));
        flags
    }

    pub async fn with(flags: &[String], scheme: &str, client: reqwest::Client) -> Self {
        Self::started(flags, scheme, client, None).await
    }

    async fn started(flags: &[String], scheme: &str, client: reqwest::Client, log: Option<File>) -> Self {
        let port = free_port();
        let mut flags = flags.to_vec();
        flags.push(format!("--listen-address=127.0.0.1:{port}"));
        // By default a full snapshot is due at midnight, and would come amidst those that a test asks for.
        if !flags.iter().any(|flag| flag.starts_with("--schedule")) {
            flags.push("--schedule=0 0 29 2 *".to_owned());
        }
        let mut command = binary("server", &flags);
        if let Some(log) = log {
            command.env_remove("RUST_LOG").stderr(log);
        }
        let process = command.spawn().unwrap();
        let server = Self {
            process,
            url: format!("{scheme}://localhost:{port}"),
            client,
        };
        eventually("the server answers", async || {
            let answer = server
                .client
                .get(format!("{}/healthz", server.url))
                .send()
                .await
                .ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
        server
    }

    pub async fn text(&self, path: &str) -> (u16, String) {
        let answer = self
            .client
            .get(format!("{}{path}", self.url))
            .send()
            .await
            .unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        let (status, text) = self.text(path).await;
        (status, serde_json::from_str(&text).unwrap())
    }

    pub async fn post(&self, path: &str) -> (u16, Value) {
        Self::sent(self.client.post(format!("{}{path}", self.url))).await
    }

    pub async fn post_json(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.client.post(format!("{}{path}", self.url));
        let request = request.header("content-type", "application/json");
        Self::sent(request.body(body.to_string())).await
    }

    async fn sent(request: reqwest::RequestBuilder) -> (u16, Value) {
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        (status, serde_json::from_str(&text).unwrap())
    }

    /// Sends SIGTERM and waits for the end; returns the exit code.
    pub async fn terminate(mut self) -> Option<i32> {
        let pid = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        eventually("the process ends", async || self.process.try_wait().unwrap())
            .await
            .code()
    }

    /// Takes a snapshot; returns its name.
    pub async fn snapshot(&self, path: &str) -> String {
        let (status, json) = self.get(path).await;
        assert_eq!(status, 200, "{json}");
        json["snapName"]
            .as_str()
            .unwrap_or_else(|| panic!("no snapshot: {json}"))
            .to_owned()
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Stops all threads of the process: a single thread takes the signal and stops the other threads, which
    /// may run for a while on a busy machine.
    pub async fn stop(&self) {
        self.signal("-STOP");
        let threads = format!("/proc/{}/task", self.process.id());
        eventually("every thread has stopped", async || {
            let mut states = std::fs::read_dir(&threads).unwrap().map(|thread| {
                let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
                stat.rsplit(") ").next().unwrap().starts_with('T')
            });
            states.all(|stopped| stopped).then_some(())
        })
        .await;
    }

    pub fn peak(&self) -> u64 {
        peak_memory(self.process.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Every client needs a TLS provider, even for plain HTTP.
pub fn set_tls_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
