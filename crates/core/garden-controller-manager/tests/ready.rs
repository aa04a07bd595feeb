//! `/readyz` of a manager as a process: whether the manager can work; all replicas except the leader wait for
//! the lock.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::{fs, time::Duration};

use anyhow::{Result, ensure};
use api::{Target, crds_of};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::PostParams};
use tempfile::TempDir;
use testkit::{ControlPlane, Server, apply_crds, eventually, free_port};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Longer than a start and an election take on a busy machine.
const LONG: Duration = Duration::from_secs(60);

struct Manager {
    health: u16,
    process: Server,
}

impl Manager {
    fn start(name: &str, kubeconfig: &str, folder: &TempDir) -> Result<Self> {
        let file = folder.path().join(format!("{name}.kubeconfig"));
        fs::write(&file, kubeconfig)?;
        let health = free_port()?;
        let arguments = [
            format!("--garden-kubeconfig={}", file.display()),
            format!("--health-address=127.0.0.1:{health}"),
        ];
        let program = env!("CARGO_BIN_EXE_garden-controller-manager");
        let process = Server::start(name, program, folder.path(), arguments, &[])?;
        Ok(Self { health, process })
    }

    /// The answer of an endpoint.
    async fn ask(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.health)).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: manager\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    async fn until(&mut self, what: &str, path: &str, parts: &[&str]) -> Result<()> {
        let manager = &*self;
        let answered = eventually(what, LONG, || async {
            let answer = manager.ask(path).await?;
            ensure!(parts.iter().all(|part| answer.contains(part)), "{answer}");
            Ok(())
        });
        answered.await?;
        self.process.check_alive()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_replica_is_ready_while_it_reaches_the_garden() -> Result<()> {
    let plane = ControlPlane::start("ready").await?;
    apply_crds(&plane.admin(), &crds_of(Target::Garden)).await?;
    let mut garden = Namespace::default();
    garden.metadata.name = Some("garden".to_owned());
    let namespaces: Api<Namespace> = Api::all(plane.admin());
    namespaces.create(&PostParams::default(), &garden).await?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = fs::read_to_string(plane.admin_kubeconfig_file())?;
    testkit::free_lock(&plane.admin(), "garden", "garden-controller-manager").await?;

    let mut leads = Manager::start("leads", &kubeconfig, &folder)?;
    let synced = ["controller_synced{controller=\"project\"} 1"];
    leads
        .until("the first replica leads", "/metrics", &synced)
        .await?;
    leads.until("it is ready", "/readyz", &["HTTP/1.1 200"]).await?;

    let mut waits = Manager::start("waits", &kubeconfig, &folder)?;
    waits
        .until("the second one is ready", "/readyz", &["HTTP/1.1 200"])
        .await?;
    let metrics = waits.ask("/metrics").await?;
    ensure!(
        metrics.contains("leader_active{name=\"garden-controller-manager\"} 0"),
        "{metrics}"
    );

    let mut kubeconfig: serde_yaml_ng::Value = serde_yaml_ng::from_str(&kubeconfig)?;
    kubeconfig["clusters"][0]["cluster"]["server"] = format!("https://127.0.0.1:{}", free_port()?).into();
    let mut away = Manager::start("away", &serde_yaml_ng::to_string(&kubeconfig)?, &folder)?;
    let not_read = [
        "HTTP/1.1 500",
        "the lock garden-controller-manager has not been read yet",
    ];
    away.until("without the garden it is not ready", "/readyz", &not_read)
        .await?;
    // A restart would not help.
    away.until("and it is well", "/healthz", &["HTTP/1.1 200"]).await
}
