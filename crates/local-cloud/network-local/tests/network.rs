//! Agents on machines that are network namespaces, with a real API server. The test needs root.
#![allow(clippy::unwrap_used, clippy::panic)]

mod landscape;

use std::{net::IpAddr, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    runtime::watcher,
};
use landscape::{Machine, talk};
use network_local::{
    agent::Agent,
    conflist,
    fleet::{self, Machines},
    kernel::Kernel,
};
use runtime::{
    client::informer::follow,
    process::{Health, metrics::Metrics},
};
use serde_json::json;
use testkit::{ControlPlane, Namespace, eventually};
use tokio::{sync::watch, task::JoinSet};

/// Far longer than any of this takes.
const SOON: Duration = Duration::from_secs(60);
/// All pods.
const PODS: &str = "10.99.0.0/16";

async fn join(nodes: &Api<Node>, name: &str, machine: &Machine) -> Result<()> {
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": name}, "spec": {"podCIDR": machine.range, "podCIDRs": [machine.range]},
    }))?;
    nodes.create(&PostParams::default(), &node).await?;
    let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": machine.address}]}});
    nodes
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

fn agent(name: &str, machine: &Machine, folder: &Path) -> Result<Agent> {
    Ok(Agent {
        kernel: machine.namespace.within(Kernel::open)??,
        node: name.to_owned(),
        pods: PODS.parse()?,
        folder: folder.to_owned(),
    })
}

/// An agent as in the real process. Dropping the value stops the agent.
fn run(client: &Client, agent: Agent) -> JoinSet<()> {
    let (sender, known) = watch::channel(None);
    let mut parts = JoinSet::new();
    let nodes = Api::all(client.clone());
    let all = watcher::Config::default();
    parts.spawn(follow(
        nodes,
        all,
        |node| Some(fleet::Machine::from_node(node)),
        sender,
    ));
    parts.spawn(agent.run(known, Metrics::default(), Health::default()));
    parts
}

async fn has_file(folder: &Path, words: &str) -> Result<()> {
    eventually("the file for containerd is there", SOON, || async {
        let content = std::fs::read_to_string(folder.join(conflist::FILE))?;
        ensure!(content.contains(words), "{content}");
        anyhow::Ok(())
    })
    .await
}

/// Pods reach each other with their own addresses, and the outside with their machine's address. While the
/// API is away, the network stays unchanged, even if an agent restarts (I4). The routes of a deleted Node are
/// removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_reach_each_other_and_do_not_notice_that_the_api_is_away() -> Result<()> {
    let router = Namespace::new("router")?;
    let (a, b) = (Machine::new("a", 1, &router)?, Machine::new("b", 2, &router)?);
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let mut shoot = ControlPlane::start("shoot").await?;
    let client = shoot.admin();
    let nodes: Api<Node> = Api::all(client.clone());
    join(&nodes, "a", &a).await?;
    let of_a = run(&client, agent("a", &a, folders[0].path())?);
    let _of_b = run(&client, agent("b", &b, folders[1].path())?);
    // The agent of b waits for the Node of b; the agent of a does not wait.
    has_file(folders[0].path(), "\"mtu\": 1350").await?;
    assert!(!folders[1].path().join(conflist::FILE).exists());
    join(&nodes, "b", &b).await?;
    has_file(folders[1].path(), &b.range).await?;
    eventually("there are ways in both directions", SOON, || async {
        for entries in [a.entries()?, b.entries()?] {
            // A route, a neighbour, a forwarding: the agent creates the entries one by one.
            ensure!(entries.lines().count() == 3, "{entries}");
        }
        anyhow::Ok(())
    })
    .await?;
    connected(&router, &a, &b)?;

    let before = a.entries()?;
    shoot.stop_api();
    drop(of_a);
    let _of_a = run(&client, agent("a", &a, folders[0].path())?);
    connected(&router, &a, &b).context("without the API")?;
    assert_eq!(a.entries()?, before);
    shoot.start_api().await?;

    nodes.delete("b", &DeleteParams::default()).await?;
    eventually("the way to a Node that is gone is gone", SOON, || async {
        let left = a.entries()?;
        ensure!(left.is_empty(), "{left}");
        anyhow::Ok(())
    })
    .await?;
    assert!(talk(&a.pod, &b.pod, b.pod_address).is_err());
    // Without the Node, the agent has no plan, and removes no entry.
    assert!(!b.entries()?.is_empty());
    Ok(())
}

fn connected(router: &Namespace, a: &Machine, b: &Machine) -> Result<()> {
    let source = |from, to, address| talk(from, to, address);
    let of_pod = source(&a.pod, &b.pod, b.pod_address).context("from a pod to a pod")?;
    assert_eq!(of_pod, a.pod_address);
    assert_eq!(source(&b.pod, &a.pod, a.pod_address)?, b.pod_address);
    // Answers to packets of a machine return through VXLAN, too.
    let of_machine = source(&a.namespace, &b.pod, b.pod_address).context("from a machine to a pod")?;
    assert_eq!(of_machine, "10.99.1.0".parse::<IpAddr>()?);
    let outside = "172.31.2.1".parse()?;
    let of_outside = source(&b.pod, router, outside).context("from a pod to the outside")?;
    assert_eq!(of_outside, b.address.parse::<IpAddr>()?);
    let other: IpAddr = b.address.parse()?;
    let of_node = source(&a.pod, &b.namespace, other).context("from a pod to another machine")?;
    assert_eq!(of_node, a.address.parse::<IpAddr>()?);
    Ok(())
}

/// Correct entries stay, removed entries return, and foreign entries are removed.
#[tokio::test]
async fn the_kernel_is_told_what_differs() -> Result<()> {
    let router = Namespace::new("router")?;
    let machine = Machine::new("a", 1, &router)?;
    let folder = tempfile::tempdir()?;
    let mut agent = agent("a", &machine, folder.path())?;
    let known = |n: u8| fleet::Machine {
        range: format!("10.99.{n}.0/24").parse().ok(),
        address: format!("172.31.{n}.2").parse().ok(),
    };
    let machines: Machines = [
        ("a".into(), known(1)),
        ("b".into(), known(2)),
        ("c".into(), known(3)),
    ]
    .into();
    let plan = agent.make(&machines).await?;
    let made = agent.kernel.make(&plan).await?;
    assert_eq!((made.changes, made.mtu), (0, 1350));
    let index = || machine.namespace.ip("-o link show network-local");
    let (before, device) = (machine.entries()?, index()?);
    assert_eq!(before.lines().count(), 6, "{before}");

    machine.namespace.ip("route delete 10.99.2.0/24")?;
    machine
        .namespace
        .ip("route add 10.99.77.0/24 dev network-local")?;
    machine
        .namespace
        .ip("neighbour delete 10.99.3.0 dev network-local")?;
    let repaired = agent.kernel.make(&plan).await?;
    assert_eq!(repaired.changes, 3);
    assert_eq!((machine.entries()?, index()?), (before, device));

    // Smaller packets on the underlying link: the device is changed, not recreated.
    machine.namespace.ip("link set eth0 mtu 1300")?;
    assert_eq!(agent.kernel.make(&plan).await?.mtu, 1250);
    assert!(index()?.contains("mtu 1250"), "{}", index()?);

    // The same machine with a new address: no former entry is correct any more.
    machine.namespace.ip("address add 172.31.9.2/24 dev eth0")?;
    let moved: Machines = [("a".into(), known(9)), ("c".into(), known(3))].into();
    agent.make(&moved).await?;
    let now = machine.entries()?;
    assert_eq!(now.lines().count(), 3, "{now}");
    let address = machine.namespace.ip("-4 -o address show dev network-local")?;
    assert!(
        address.contains("10.99.9.0/32") && !address.contains("10.99.1.0"),
        "{address}"
    );

    let unknown: Machines = [("a".into(), known(8))].into();
    let refused = agent.make(&unknown).await.unwrap_err().to_string();
    assert!(
        refused.contains("no link of this machine has the address 172.31.8.2"),
        "{refused}"
    );
    Ok(())
}
