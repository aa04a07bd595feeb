//! The cloud controllers of a shoot work only for the owner of the shoot (R17-43, R17-60..62). Manager, API
//! server and name server are real; the process beside etcd does not answer.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::large_futures
)]

mod world;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use serde_json::json;
use testkit::{OwnerRecord, Server, eventually};
use world::{CLUSTER, UNINITIALIZED, World, instance, is_tainted};

/// Longer than a manager needs for a restart on a busy machine.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);
/// Nodes of the test; all instances exist from the start.
const NODES: [&str; 6] = ["early", "first", "silent", "lost", "never", "again"];

struct Owned {
    world: World,
    record: OwnerRecord,
    folder: tempfile::TempDir,
}

impl Owned {
    async fn start() -> Result<Self> {
        let world = World::start().await?;
        let machine = |(number, name): (u8, &'static str)| {
            (name, instance(name, &format!("10.180.1.{number}"), "running"))
        };
        let machines: Vec<_> = (1..).zip(NODES).map(machine).collect();
        world.list(&machines).await?;
        Ok(Self {
            world,
            record: OwnerRecord::start().await?,
            folder: tempfile::tempdir()?,
        })
    }

    /// The manager of a seed in an epoch.
    fn manager(&self, identity: &str, epoch: i64) -> Result<Server> {
        let mut arguments = vec![
            format!(
                "--kubeconfig={}",
                self.world.plane.admin_kubeconfig_file().display()
            ),
            format!("--cloud-credentials={}", self.world.folder().display()),
            format!("--cluster-name={CLUSTER}"),
            "--health-address=127.0.0.1:0".to_owned(),
        ];
        arguments.extend(self.record.flags(identity, epoch));
        let program = env!("CARGO_BIN_EXE_cloud-controller-manager-local");
        Server::start(
            "cloud-controller-manager-local",
            program,
            self.folder.path(),
            arguments,
            &[],
        )
    }

    /// A kubelet has registered a Node. Without the manager, no pod is scheduled on the Node.
    async fn registered(&self, name: &str) -> Result<()> {
        let taints = json!({"taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]});
        self.world.node(name, taints).await.map(|_| ())
    }

    /// Waits until the Node is described with data of the cloud.
    async fn described(&self, name: &str, by: &mut Server) -> Result<()> {
        let described = eventually("the Node is described", BEGINS_WITHIN, || async {
            let node = self.world.nodes().get(name).await?;
            ensure!(is_described(&node), "Node {name}: {:?}", node.spec);
            anyhow::Ok(())
        });
        let described = described.await;
        by.check_alive()?;
        described.with_context(|| by.log_tail())
    }

    /// Checks that the Node is not described.
    async fn nobody_describes(&self, name: &str) -> Result<()> {
        // The absence of a write can only be observed over time.
        tokio::time::sleep(OwnerRecord::OUTLASTS_AN_ANSWER).await;
        let node = self.world.nodes().get(name).await?;
        ensure!(!is_described(&node), "Node {name} was described: {:?}", node.spec);
        Ok(())
    }
}

fn is_described(node: &Node) -> bool {
    !is_tainted(node, UNINITIALIZED)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_described_for_who_has_the_shoot() -> Result<()> {
    let mut shoot = Owned::start().await?;
    let mut of_epoch_3 = shoot.manager("seed-a", 3)?;
    // The owner record does not exist yet.
    shoot.registered("early").await?;
    shoot.nobody_describes("early").await?;
    shoot.record.says("seed-a", 3).await?;
    shoot.described("early", &mut of_epoch_3).await?;
    shoot.registered("first").await?;
    shoot.described("first", &mut of_epoch_3).await?;

    // Both witnesses are silent: the manager stops until a witness answers again (R17-47, R17-48).
    shoot.record.falls_silent();
    tokio::time::sleep(OwnerRecord::OUTLASTS_AN_ANSWER).await;
    shoot.registered("silent").await?;
    shoot.nobody_describes("silent").await?;
    shoot.record.says_again("seed-a", 3).await?;
    shoot.described("silent", &mut of_epoch_3).await?;

    // A different seed owns the shoot (R17-49): the loss is final in this epoch, regardless of later records.
    shoot.record.says("seed-b", 4).await?;
    tokio::time::sleep(OwnerRecord::OUTLASTS_AN_ANSWER).await;
    shoot.registered("lost").await?;
    shoot.nobody_describes("lost").await?;
    shoot.record.says("seed-a", 3).await?;
    shoot.registered("never").await?;
    shoot.nobody_describes("never").await?;
    ensure!(!is_described(&shoot.world.nodes().get("lost").await?), "lost");

    // The seed regains the shoot in a new epoch, with a new process.
    shoot.record.says("seed-a", 5).await?;
    drop(of_epoch_3);
    let mut of_epoch_5 = shoot.manager("seed-a", 5)?;
    shoot.registered("again").await?;
    for name in ["lost", "never", "again"] {
        shoot.described(name, &mut of_epoch_5).await?;
    }
    Ok(())
}
