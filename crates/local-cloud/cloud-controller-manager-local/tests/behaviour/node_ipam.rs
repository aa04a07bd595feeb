use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use cloud_controller_manager_local::names::Name;
use futures::{StreamExt, TryStreamExt, stream};
use ipnet::Ipv4Net;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use testkit::eventually;

use crate::world::{SOON, World, options, range};

/// The ranges of all Nodes with a range.
async fn ranges(world: &World) -> Result<BTreeMap<String, String>> {
    let nodes = world.nodes().list(&ListParams::default()).await?;
    Ok(nodes
        .iter()
        .filter_map(|node| Some((node.name_any(), range(node)?)))
        .collect())
}

async fn make(world: &World, names: impl IntoIterator<Item = String>) -> Result<()> {
    stream::iter(names)
        .map(|name| async move { world.node(&name, json!({})).await })
        .buffer_unordered(16)
        .try_collect::<Vec<_>>()
        .await?;
    Ok(())
}

/// Waits until so many Nodes have a range, and checks that no two are the same.
async fn until_ranges(world: &World, count: usize) -> Result<BTreeMap<String, String>> {
    let ranges = eventually("all ranges", SOON, || async {
        let ranges = ranges(world).await?;
        ensure!(
            ranges.len() == count,
            "{} of {count} nodes have one",
            ranges.len()
        );
        anyhow::Ok(ranges)
    })
    .await?;
    let different: BTreeSet<_> = ranges.values().collect();
    ensure!(
        different.len() == count,
        "two nodes have the same range: {ranges:?}"
    );
    Ok(ranges)
}

pub async fn many_nodes_get_ranges_of_their_own(world: &World) -> Result<()> {
    let cluster: Ipv4Net = "10.96.0.0/15".parse()?;
    let running = world.run(&[Name::NodeIpam], options(Some("10.96.0.0/15")));
    // A range of a different writer, in the middle of the assigned ranges.
    world
        .node(
            "other",
            json!({"podCIDR": "10.96.100.0/24", "podCIDRs": ["10.96.100.0/24"]}),
        )
        .await?;
    make(world, (0..300).map(|i| format!("node-{i}"))).await?;
    let ranges = until_ranges(world, 301).await?;
    ensure!(ranges["other"] == "10.96.100.0/24", "{}", ranges["other"]);
    for text in ranges.values() {
        let own: Ipv4Net = text.parse()?;
        ensure!(own.prefix_len() == 24 && cluster.contains(&own), "{own}");
    }
    running.stop().await;
    Ok(())
}

pub async fn a_used_up_range_is_told(world: &World) -> Result<()> {
    let running = world.run(&[Name::NodeIpam], options(Some("10.96.0.0/22")));
    make(world, (0..4).map(|i| format!("node-{i}"))).await?;
    let before = until_ranges(world, 4).await?;
    world.node("waits", json!({})).await?;
    world.event("Node", "waits", "CIDRNotAvailable").await?;
    ensure!(
        range(&world.nodes().get("waits").await?).is_none(),
        "there was none left"
    );
    world.nodes().delete("node-2", &DeleteParams::default()).await?;
    let node = world
        .until("waits", "the free range", |node| range(node).is_some())
        .await?;
    ensure!(
        range(&node).as_ref() == before.get("node-2"),
        "{:?}: {before:?}",
        range(&node)
    );
    until_ranges(world, 4).await?;
    running.stop().await;
    Ok(())
}

/// The effect of a change of the lock holder on the Nodes.
pub async fn one_run_after_the_other_assigns_once(world: &World) -> Result<()> {
    let mut before = BTreeMap::new();
    for run in 0..4 {
        // Nodes are created while no controller runs, and while a controller runs that is then stopped during
        // work.
        make(world, (0..5).map(|i| format!("run-{run}-early-{i}"))).await?;
        let running = world.run(&[Name::NodeIpam], options(Some("10.96.0.0/16")));
        make(world, (0..5).map(|i| format!("run-{run}-late-{i}"))).await?;
        eventually("some have one", SOON, || async {
            let count = ranges(world).await?.len();
            ensure!(count > before.len(), "{count}");
            anyhow::Ok(())
        })
        .await?;
        running.stop().await;
        let now = ranges(world).await?;
        for (name, range) in &before {
            ensure!(
                now.get(name) == Some(range),
                "{name} had {range}, and now {:?}",
                now.get(name)
            );
        }
        before = now;
    }
    let running = world.run(&[Name::NodeIpam], options(Some("10.96.0.0/16")));
    let all = until_ranges(world, 40).await?;
    for (name, range) in &before {
        ensure!(&all[name] == range, "{name} had {range}, and now {}", all[name]);
    }
    running.stop().await;
    Ok(())
}
