//! Many shoots without an answer about the owner: the name server does not answer, these shoots wait, and no
//! other shoot waits with them.

use std::collections::HashSet;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use testkit::{OwnerRecord, eventually};
use tokio::net::{TcpListener, UdpSocket};

use crate::world::{SOON, ShootNamespace, World, condition, map};

/// More than the concurrent work (`--concurrent-syncs`).
const SILENT: [&str; 12] = [
    "shoot--dev--silent-0",
    "shoot--dev--silent-1",
    "shoot--dev--silent-2",
    "shoot--dev--silent-3",
    "shoot--dev--silent-4",
    "shoot--dev--silent-5",
    "shoot--dev--silent-6",
    "shoot--dev--silent-7",
    "shoot--dev--silent-8",
    "shoot--dev--silent-9",
    "shoot--dev--silent-10",
    "shoot--dev--silent-11",
];

/// For some of these shoots the wait for the first answer takes as long as this test may take. So a shoot
/// that waited for such a shoot would fail the test.
pub async fn shoots_of_which_nobody_says_whose_they_are(world: &World) -> Result<()> {
    let nobody = Nobody::listen().await?;
    let record = OwnerRecord::start().await?;
    record.says("seed-a", 1).await?;
    let well = world.shoot("shoot--dev--beside-silent").await?;
    testkit::apply(&world.seed, record.cluster(well.name, "seed-a", 1)).await?;
    let mut silent = Vec::new();
    for name in SILENT {
        let place = world.shoot(name).await?;
        let mut cluster = record.cluster(name, "seed-a", 1);
        // The longest check within the rules of docs/understand/ownership.md.
        cluster["spec"]["seed"]["spec"]["settings"]["ownerChecks"] = json!({
            "enabled": true, "authorities": [nobody.address()?],
            "timeout": "300s", "interval": "610s", "validity": "1830s", "fence": "1900s",
        });
        testkit::apply(&world.seed, cluster).await?;
        place
            .resource("core", json!({}), &[map(name, "map", "1", &[])])
            .await?;
        silent.push(place);
    }
    nobody.is_asked_by(SILENT.len()).await?;

    well.resource("core", json!({}), &[map(well.name, "map", "1", &[])])
        .await?;
    well.applied("core", None).await?;
    well.manifests("core", &[map(well.name, "map", "2", &[])]).await?;
    well.says("map", "2").await?;
    well.delete("core").await?;
    well.gone("core").await?;
    for place in &silent {
        still_asks(place).await?;
    }
    Ok(())
}

/// The test proves the independence only while these shoots still wait.
async fn still_asks(place: &ShootNamespace<'_>) -> Result<()> {
    let now = place.resources().get("core").await?;
    let told = condition(&now, "ResourcesApplied");
    anyhow::ensure!(told.is_none(), "{} has its answer: {told:?}", place.name);
    let maps = place.in_shoot::<ConfigMap>();
    anyhow::ensure!(maps.get_opt("map").await?.is_none(), "{} was applied", place.name);
    Ok(())
}

/// A name server that never answers, by UDP and by TCP.
struct Nobody {
    questions: UdpSocket,
    _connections: TcpListener,
}

impl Nobody {
    async fn listen() -> Result<Self> {
        eventually("one port is free for both", SOON, || async {
            let connections = TcpListener::bind("127.0.0.1:0").await?;
            let questions = UdpSocket::bind(connections.local_addr()?).await?;
            Ok::<_, std::io::Error>(Self {
                questions,
                _connections: connections,
            })
        })
        .await
    }

    fn address(&self) -> Result<String> {
        Ok(self.questions.local_addr()?.to_string())
    }

    /// Waits until `count` clients have asked, each from a separate address.
    async fn is_asked_by(&self, count: usize) -> Result<()> {
        let mut asking = HashSet::new();
        let mut question = [0; 1024];
        let all = async {
            while asking.len() < count {
                asking.insert(self.questions.recv_from(&mut question).await?.1);
            }
            Ok::<_, std::io::Error>(())
        };
        let asked = testkit::timeout(SOON, all).await;
        asked.with_context(|| format!("{} of {count} ask within {SOON:?}", asking.len()))??;
        Ok(())
    }
}
