//! A Node whose instance is off: out of service while the instance certainly cannot write.

use anyhow::{Result, ensure};
use k8s_openapi::api::{core::v1::Node, events::v1::Event};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
};
use machine_controllers::{InstancePower, Timing};
use runtime::Error;
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    cloud::{node, report},
    world::{SOON, World, phase, timing},
};

const OFF: &str = "worker.gardener.cloud/instance-off";

fn is_out_of_service(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
    taints.unwrap_or_default().iter().any(|taint| {
        (taint.key.as_str(), taint.value.as_deref(), taint.effect.as_str())
            == (
                "node.kubernetes.io/out-of-service",
                Some("nodeshutdown"),
                "NoExecute",
            )
    })
}

fn is_claimed(node: &Node) -> bool {
    let annotations = node.metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(OFF))
}

async fn claim(world: &World, machine: &str, value: Value) -> Result<()> {
    let body = Patch::Merge(json!({"metadata": {"annotations": {OFF: value}}}));
    let nodes = world.nodes();
    nodes
        .patch(&node(machine), &PatchParams::default(), &body)
        .await?;
    Ok(())
}

async fn until(world: &World, machine: &str, what: &str, look: impl Fn(&Node) -> bool) -> Result<()> {
    eventually(what, SOON, || async {
        let node = world.nodes().get(&node(machine)).await?;
        ensure!(look(&node), "{node:?}");
        anyhow::Ok(())
    })
    .await
}

/// Waits until the cloud was asked so many more times whether the instance runs.
async fn asked(world: &World, machine: &str, more: usize) -> Result<()> {
    let calls = || world.cloud.calls(&format!("power {machine}")).len();
    let before = calls();
    eventually("the cloud is asked", SOON, || async {
        ensure!(calls() >= before + more, "{}", calls());
        anyhow::Ok(())
    })
    .await
}

pub async fn a_node_is_out_of_service_only_while_its_instance_is_off(client: &Client) -> Result<()> {
    let world = World::start(client, "off").await?;
    let _running = world.run(Timing {
        power_every: timing().poll_interval,
        power_unclear_for: 3 * timing().poll_interval,
        ..timing()
    });
    for machine in ["o1", "o2", "o3"] {
        world.machine(machine, json!({})).await?;
        world
            .until(machine, "it runs", |machine| phase(machine) == "Running")
            .await?;
    }

    // The cut of a network: the kubelet is silent, and the instance runs.
    report(client, &node("o1"), "Unknown").await?;
    asked(&world, "o1", 3).await?;
    ensure!(!is_out_of_service(&world.nodes().get(&node("o1")).await?));
    claim(&world, "o1", json!("true")).await?;
    until(&world, "o1", "the claim is refused", |node| !is_claimed(node)).await?;
    let note = world.event("o1", "InstanceIsRunning").await?;
    ensure!(note.contains("removed without effect"), "{note}");
    eventually("users of the shoot see it", SOON, || async {
        let events: Api<Event> = Api::namespaced(client.clone(), "default");
        let events = events.list(&ListParams::default()).await?;
        let is_refusal = |event: &Event| {
            event.reason.as_deref() == Some("InstanceIsRunning")
                && event.regarding.as_ref().and_then(|node| node.name.as_deref()) == Some("node-o1")
        };
        ensure!(events.iter().any(is_refusal), "no Event of the Node");
        anyhow::Ok(())
    })
    .await?;
    ensure!(!is_out_of_service(&world.nodes().get(&node("o1")).await?));

    // A user stops the instance at the provider, and starts the instance again.
    world.cloud.report_power("o1", Ok(InstancePower::Off));
    until(&world, "o1", "the taint is there", is_out_of_service).await?;
    world.cloud.report_power("o1", Ok(InstancePower::Running));
    until(&world, "o1", "the taint is gone", |node| !is_out_of_service(node)).await?;

    // The provider does not answer: the user decides, for a Machine that is being deleted, too.
    let silent = || Err(Error::transient("the cloud is away"));
    for machine in ["o2", "o3"] {
        world.cloud.report_power(machine, silent());
        report(client, &node(machine), "Unknown").await?;
    }
    world.cloud.hang_deletions(true);
    world.delete_machine("o3").await?;
    for machine in ["o2", "o3"] {
        asked(&world, machine, 5).await?;
        ensure!(!is_out_of_service(&world.nodes().get(&node(machine)).await?));
        claim(&world, machine, json!("true")).await?;
        until(&world, machine, "the taint is there", is_out_of_service).await?;
        let note = world.event(machine, "InstanceIsOff").await?;
        ensure!(note.contains(OFF), "{note}");
    }
    // The kubelet reports again, although the user said otherwise.
    report(client, &node("o2"), "False").await?;
    until(&world, "o2", "the taint is gone", |node| {
        !is_out_of_service(node) && !is_claimed(node)
    })
    .await?;
    claim(&world, "o3", Value::Null).await?;
    until(&world, "o3", "the taint is gone", |node| !is_out_of_service(node)).await?;
    world.cloud.hang_deletions(false);
    world.until_gone("o3").await?;
    let lasting = world.cloud.longest_ending();
    ensure!(
        !lasting.is_zero(),
        "the cloud is told since when it ends an instance"
    );
    Ok(())
}
