use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use cloud_controller_manager_local::names::Name;
use kube::{ResourceExt, api::ListParams};
use serde_json::json;
use testkit::eventually;

use crate::world::{ACCOUNT, SOON, USER, World, instance, is_tainted, options};

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

async fn node(world: &World, name: &str, id: &str, ready: &str) -> Result<()> {
    world
        .node(name, json!({"providerID": format!("local:///zone-a/{id}")}))
        .await?;
    world.report(name, ready).await
}

async fn names(world: &World) -> Result<Vec<String>> {
    let nodes = world.nodes().list(&ListParams::default()).await?;
    Ok(nodes.iter().map(ResourceExt::name_any).collect())
}

/// For each kind of unusable cloud: Nodes whose instances are not in any list, and several attempts.
pub async fn an_unusable_cloud_removes_no_node(world: &World) -> Result<()> {
    const NODES: [&str; 3] = ["a", "b", "c"];
    for name in NODES {
        node(world, name, &format!("i-{name}"), "Unknown").await?;
    }
    let good = serde_json::to_value(world.plane.kubeconfig(USER, &[])?)?;
    let mut nobody = good.clone();
    nobody["users"][0]["user"] = json!({"token": "not a token"});
    let mut away = good.clone();
    // No server listens at this address.
    away["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
    let stranger = serde_json::to_value(world.plane.kubeconfig("stranger", &[])?)?;
    let empty = BTreeMap::new();
    let damaged = BTreeMap::from([("d".to_owned(), "{".to_owned())]);
    let cases = [
        ("an account without rights", &stranger, ACCOUNT, Some(&empty)),
        ("wrong credentials", &nobody, ACCOUNT, Some(&empty)),
        ("a cloud that is away", &away, ACCOUNT, Some(&empty)),
        ("another account", &good, "default", Some(&empty)),
        ("no list", &good, ACCOUNT, None),
        ("a damaged list", &good, ACCOUNT, Some(&damaged)),
    ];
    for (what, kubeconfig, namespace, list) in cases {
        match list {
            Some(list) => world.write_list(list.clone()).await?,
            None => world.no_list().await?,
        }
        world.write_credentials(kubeconfig, namespace)?;
        let running = world.run(&[Name::CloudNodeLifecycle], options(None));
        eventually(what, SOON, || async {
            let failures = running.outcomes(Name::CloudNodeLifecycle, &["Config", "Transient"]);
            ensure!(failures >= 2 * NODES.len() as u64, "{failures} failures");
            anyhow::Ok(())
        })
        .await?;
        let successes = running.outcomes(Name::CloudNodeLifecycle, &["success"]);
        running.stop().await;
        ensure!(successes == 0, "{what}: {successes} nodes were decided on");
        ensure!(
            names(world).await? == NODES,
            "{what}: nodes are left: {:?}",
            names(world).await?
        );
    }
    // The same nodes are removed after a readable list without their instances.
    world.good_credentials()?;
    world.write_list(empty).await?;
    let running = world.run(&[Name::CloudNodeLifecycle], options(None));
    eventually("the nodes are removed", SOON, || async {
        let left = names(world).await?;
        ensure!(left.is_empty(), "{left:?}");
        anyhow::Ok(())
    })
    .await?;
    world.event("Node", "a", "DeletingNode").await?;
    running.stop().await;
    Ok(())
}

pub async fn only_nodes_whose_instance_is_gone_are_removed(world: &World) -> Result<()> {
    node(world, "gone", "i-gone", "False").await?;
    node(world, "still-ready", "i-gone-too", "True").await?;
    node(world, "there", "i-there", "Unknown").await?;
    world
        .node("excluded", json!({"providerID": "local:///zone-a/i-excluded"}))
        .await?;
    world
        .node("foreign", json!({"providerID": "kind://docker/a/b"}))
        .await?;
    world.node("undescribed", json!({})).await?;
    let excluded =
        json!({"metadata": {"labels": {"node.kubernetes.io/exclude-from-lifecycle-management": ""}}});
    let nodes = world.nodes();
    let params = kube::api::PatchParams::default();
    nodes
        .patch("excluded", &params, &kube::api::Patch::Merge(excluded))
        .await?;
    // A new machine has the name of the removed machine.
    world
        .list(&[
            ("gone", instance("i-new", "10.180.1.1", "running")),
            ("there", instance("i-there", "10.180.1.2", "running")),
        ])
        .await?;
    let running = world.run(&[Name::CloudNodeLifecycle], options(None));
    eventually("the node is removed", SOON, || async {
        ensure!(!names(world).await?.contains(&"gone".to_owned()), "it is there");
        anyhow::Ok(())
    })
    .await?;
    // After several more rounds, no further Node is removed.
    let rounds = running.outcomes(Name::CloudNodeLifecycle, &["success"]);
    eventually("more rounds", SOON, || async {
        let now = running.outcomes(Name::CloudNodeLifecycle, &["success"]);
        ensure!(now >= rounds + 4, "{now} after {rounds}");
        anyhow::Ok(())
    })
    .await?;
    let left = names(world).await?;
    ensure!(
        left == ["excluded", "foreign", "still-ready", "there", "undescribed"],
        "{left:?}"
    );
    // As soon as the kubelet stops reporting, the second Node is removed too.
    world.report("still-ready", "Unknown").await?;
    eventually("the node is removed", SOON, || async {
        ensure!(
            !names(world).await?.contains(&"still-ready".to_owned()),
            "it is there"
        );
        anyhow::Ok(())
    })
    .await?;
    running.stop().await;
    Ok(())
}

pub async fn stopped_instances_are_marked(world: &World) -> Result<()> {
    node(world, "one", "i-1", "Unknown").await?;
    node(world, "two", "i-2", "Unknown").await?;
    let state = |one: &'static str, two: &'static str| async move {
        let one = instance("i-1", "10.180.1.1", one);
        world
            .list(&[("one", one), ("two", instance("i-2", "10.180.1.2", two))])
            .await
    };
    state("stopped", "stopped").await?;
    let running = world.run(&[Name::CloudNodeLifecycle], options(None));
    for name in ["one", "two"] {
        world
            .until(name, "the taint", |node| is_tainted(node, SHUTDOWN))
            .await?;
    }
    // Two signs of a running machine remove the taint: a list of the cloud, or a report of the kubelet.
    state("running", "stopped").await?;
    world
        .until("one", "no taint", |node| !is_tainted(node, SHUTDOWN))
        .await?;
    ensure!(
        is_tainted(&world.nodes().get("two").await?, SHUTDOWN),
        "two is stopped"
    );
    world.report("two", "True").await?;
    world
        .until("two", "no taint", |node| !is_tainted(node, SHUTDOWN))
        .await?;
    running.stop().await;
    Ok(())
}
