//! An isolated zone: the machines are drained, and no new machine comes.

use anyhow::{Result, ensure};
use api::machine::{Machine, MachineDeployment, MachineSet, labels::ISOLATED_ZONE_TAINT};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    cloud::{node, report},
    world::{SOON, World, last, phase, timing},
};

/// The template's part that marks an isolated zone.
fn isolated() -> Value {
    json!({"nodeTemplate": {"spec": {"taints": [{"key": ISOLATED_ZONE_TAINT, "effect": "NoSchedule"}]}}})
}

/// Waits until all controllers have acted on the present deployment, with so many Machines left.
async fn settled(world: &World, machines: i32) -> Result<()> {
    eventually("the deployment is acted on", SOON, || async {
        let deployment = world.api::<MachineDeployment>().get(&world.namespace).await?;
        let status = deployment.status.clone().unwrap_or_default();
        ensure!(
            status.observed_generation == deployment.metadata.generation,
            "{status:?}"
        );
        ensure!(status.replicas == Some(machines), "{status:?}");
        let sets = world.api::<MachineSet>().list(&ListParams::default()).await?;
        for set in &sets.items {
            let status = set.status.clone().unwrap_or_default();
            ensure!(status.observed_generation == set.metadata.generation, "{set:?}");
        }
        anyhow::Ok(())
    })
    .await
}

pub async fn an_isolated_zone_gets_no_new_machine(client: &Client) -> Result<()> {
    let world = World::start(client, "isolated").await?;
    world.class("second", "script").await?;
    let _running = world.run(timing());
    let template = json!({"healthTimeout": "1s"});
    world
        .deployment(3, json!({"template": {"spec": template}}))
        .await?;
    let before = world.until_done(3).await?;
    let [failing, deleted, stays] = [0, 1, 2].map(|index| before[index].name_any());

    world
        .change_deployment(json!({"template": {"spec": isolated()}}))
        .await?;
    let marked = |machine: &Machine| json!(machine.spec.node_template) == isolated()["nodeTemplate"];
    for machine in [&failing, &deleted, &stays] {
        world.until(machine, "it is marked", marked).await?;
    }
    // A Machine that fails, a Machine that the user deletes, a roll-out and an autoscaler.
    report(client, &node(&failing), "False").await?;
    world.until_gone(&failing).await?;
    world.delete_machine(&deleted).await?;
    world.until_gone(&deleted).await?;
    settled(&world, 1).await?;
    world
        .change_deployment(json!({"replicas": 5, "template": {"spec": {"class": {"name": "second"}}}}))
        .await?;
    settled(&world, 1).await?;
    ensure!(
        world.cloud.calls("create").len() == 3,
        "{:?}",
        world.cloud.calls("")
    );
    ensure!(
        world.sets().await?.len() == 1,
        "no set of another template is made"
    );
    let left = world.machines().await?;
    ensure!(left.len() == 1 && left[0].name_any() == stays && phase(&left[0]) == "Running");

    // A Machine that existed before the instance.
    world.machine("late", isolated()).await?;
    let late = world
        .until("late", "no instance is created", |machine| {
            last(machine).1.contains("the zone of the Machine is isolated")
        })
        .await?;
    ensure!(phase(&late) == "Pending" && world.cloud.calls("create late").is_empty());
    let machines: Api<Machine> = world.api();
    machines.delete("late", &DeleteParams::default()).await?;
    world.until_gone("late").await?;

    // The isolation is cancelled before the deployment was deleted.
    world
        .change_deployment(json!({"replicas": 2, "template": {"spec": {"nodeTemplate": null}}}))
        .await?;
    let after = world.until_done(2).await?;
    ensure!(
        after.iter().all(|machine| machine.name_any() != stays),
        "the roll-out goes on"
    );
    Ok(())
}
