//! Instances and Nodes that have no Machine.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::{
    extensions::Worker,
    meta::{Condition, ConditionStatus, find_condition},
};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams},
};
use machine_controllers::Timing;
use serde_json::json;
use testkit::eventually;

use crate::world::{SOON, World, create, phase, timing};

/// gardener/gardener#8742, #3520: an instance without a Machine is kept until all instances were matched
/// once; an instance with a Node is always kept.
pub async fn orphans_are_collected_only_when_it_is_sure_that_they_are(client: &Client) -> Result<()> {
    let world = World::start(client, "orphans").await?;
    world.cloud.add_instance("before");
    world.machine("own", json!({})).await?;
    let running = world.run(timing());
    world.until("own", "it runs", |m| phase(m) == "Running").await?;
    let note = world.event("first", "OrphansAreKept").await?;
    ensure!(note.contains("before"), "{note}");
    running.until("machine-safety", "success", 3).await?;
    ensure!(world.cloud.calls("delete").is_empty());

    // A user has removed the instance. From now on a listing is complete.
    world.cloud.take("before");
    running.until("machine-safety", "success", 2).await?;
    // The Node comes first: without a Node the instance would be an orphan for a moment.
    world.cloud.register("with-node", "False").await?;
    world.cloud.add_instance("with-node");
    world.cloud.add_instance("orphan");
    eventually("it is collected", SOON, || async {
        let left = world.cloud.instances();
        ensure!(left == ["own", "with-node"], "{left:?}");
        anyhow::Ok(())
    })
    .await?;
    let note = world.event("first", "OrphanCollected").await?;
    ensure!(note.contains("orphan"), "{note}");
    running.until("machine-safety", "success", 3).await?;
    ensure!(
        world.cloud.calls("delete") == ["delete orphan"],
        "{:?}",
        world.cloud.calls("delete")
    );

    Ok(())
}

/// Waits until the condition of the Worker satisfies `holds`.
async fn reported(world: &World, what: &str, holds: impl Fn(&Condition) -> bool) -> Result<()> {
    eventually(what, SOON, || async {
        let worker = world.api::<Worker>().get("strays").await?;
        let status = worker.status.unwrap_or_default();
        let condition = find_condition(&status.default.conditions, "EveryNodeReady");
        let condition = condition.context("the Worker has no condition")?;
        ensure!(holds(condition), "{condition:?}");
        anyhow::Ok(())
    })
    .await
}

pub async fn nodes_and_instances_without_a_machine_are_reported_on_the_worker(client: &Client) -> Result<()> {
    let world = World::start(client, "strays").await?;
    let worker = json!({
        "metadata": {"name": "strays"},
        "spec": {"type": "memory", "region": "r", "secretRef": {"name": "account"}, "pools": []},
    });
    create(&world.api::<Worker>(), worker).await?;
    world.cloud.add_instance("kept");
    world.machine("own", json!({})).await?;
    // The first of all Nodes by name: a report names five.
    create::<Node>(&world.nodes(), json!({"metadata": {"name": "a-stray"}})).await?;
    let _running = world.run(Timing {
        without_machine_for: Duration::from_secs(2),
        ..timing()
    });
    reported(&world, "both are reported", |condition| {
        condition.status == ConditionStatus::False
            && condition.reason == "MachineMissing"
            && condition.message.contains("a-stray")
            && condition.message.contains("memory:///i-kept (kept)")
    })
    .await?;
    let accepted =
        json!({"metadata": {"annotations": {"node.machine.sapcloud.io/not-managed-by-mcm": "true"}}});
    let accepted = Patch::Merge(accepted);
    let params = PatchParams::default();
    world.nodes().patch("a-stray", &params, &accepted).await?;
    world.cloud.take("kept");
    reported(&world, "neither is reported", |condition| {
        !condition.message.contains("a-stray") && !condition.message.contains("i-kept")
    })
    .await?;
    world.nodes().delete("a-stray", &DeleteParams::default()).await?;
    Ok(())
}
