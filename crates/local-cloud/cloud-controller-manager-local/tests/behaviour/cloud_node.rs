use anyhow::{Context as _, Result, ensure};
use cloud_controller_manager_local::names::Name;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde_json::json;
use testkit::eventually;

use crate::world::{SOON, UNINITIALIZED, World, instance, is_tainted, options};

fn addresses(node: &Node) -> Vec<String> {
    let addresses = node
        .status
        .iter()
        .flat_map(|status| status.addresses.iter().flatten());
    addresses.map(|address| address.address.clone()).collect()
}

pub async fn new_nodes_are_described(world: &World) -> Result<()> {
    let taints = json!({"taints": [
        {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
        {"key": "example.org/keep", "effect": "NoExecute"},
    ]});
    world
        .list(&[("early", instance("i-1", "10.180.1.1", "running"))])
        .await?;
    let running = world.run(&[Name::CloudNode], options(None));
    world.node("early", taints.clone()).await?;
    world.node("late", taints.clone()).await?;
    let foreign = json!({"providerID": "kind://docker/a/b", "taints": taints["taints"]});
    world.node("foreign", foreign).await?;

    let node = world
        .until("early", "the node is described", |node| {
            !is_tainted(node, UNINITIALIZED)
        })
        .await?;
    let spec = node.spec.clone().context("no spec")?;
    ensure!(
        spec.provider_id.as_deref() == Some("local:///zone-a/i-1"),
        "{spec:?}"
    );
    ensure!(
        is_tainted(&node, "example.org/keep"),
        "another taint was taken away: {spec:?}"
    );
    let labels = node.labels();
    for (key, value) in [
        ("topology.kubernetes.io/zone", "zone-a"),
        ("topology.kubernetes.io/region", "local"),
        ("node.kubernetes.io/instance-type", "small"),
    ] {
        ensure!(
            labels.get(key).map(String::as_str) == Some(value),
            "{key}: {labels:?}"
        );
    }
    ensure!(addresses(&node) == ["10.180.1.1"], "{:?}", addresses(&node));
    world.event("Node", "early", "Synced").await?;

    // Until the cloud lists the instance, a Node waits; and a Node of a foreign cloud is not described.
    world.event("Node", "late", "CloudInformationMissing").await?;
    let late = world.nodes().get("late").await?;
    ensure!(is_tainted(&late, UNINITIALIZED), "{late:?}");
    world
        .list(&[
            ("early", instance("i-1", "10.180.1.1", "running")),
            ("late", instance("i-2", "10.180.1.2", "running")),
            ("foreign", instance("i-3", "10.180.1.3", "running")),
        ])
        .await?;
    world
        .until("late", "the node is described", |node| {
            !is_tainted(node, UNINITIALIZED)
        })
        .await?;
    let foreign = world.nodes().get("foreign").await?;
    ensure!(
        is_tainted(&foreign, UNINITIALIZED) && addresses(&foreign).is_empty(),
        "{foreign:?}"
    );
    running.stop().await;
    Ok(())
}

pub async fn addresses_are_followed(world: &World) -> Result<()> {
    world
        .list(&[("one", instance("i-1", "10.180.1.1", "running"))])
        .await?;
    let running = world.run(&[Name::CloudNode], options(None));
    world
        .node("one", json!({"providerID": "local:///zone-a/i-1"}))
        .await?;
    world
        .until("one", "the first address", |node| {
            addresses(node) == ["10.180.1.1"]
        })
        .await?;
    world
        .list(&[("one", instance("i-1", "10.180.1.9", "running"))])
        .await?;
    world
        .until("one", "the new address", |node| addresses(node) == ["10.180.1.9"])
        .await?;
    // Without an answer of the cloud, the Node stays unchanged, and the reconcile is retried.
    world.no_list().await?;
    let before = running.outcomes(Name::CloudNode, &["Config"]);
    eventually("a failure", SOON, || async {
        ensure!(
            running.outcomes(Name::CloudNode, &["Config"]) > before,
            "none yet"
        );
        anyhow::Ok(())
    })
    .await?;
    ensure!(
        addresses(&world.nodes().get("one").await?) == ["10.180.1.9"],
        "an address was lost"
    );
    running.stop().await;
    Ok(())
}
