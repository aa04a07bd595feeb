//! A Machine that is deleted on request of a user of the shoot, and a Machine that is deleted before the
//! first write of the instance's id.

use anyhow::{Result, ensure};
use kube::{
    Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    cloud::node,
    world::{World, create, timing},
};

pub async fn an_annotation_of_the_node_deletes_its_machine(client: &Client) -> Result<()> {
    let world = World::start(client, "requested").await?;
    let _running = world.run(timing());
    world.deployment(2, json!({})).await?;
    let before = world.until_done(2).await?;
    let annotate = async |machine: &str, value: &str| {
        let annotations = json!({"node.machine.sapcloud.io/trigger-deletion-by-mcm": value});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        world
            .nodes()
            .patch(&node(machine), &PatchParams::default(), &patch)
            .await
    };
    let (stays, goes) = (before[0].name_any(), before[1].name_any());
    annotate(&stays, "false").await?;
    annotate(&goes, "true").await?;
    world.until_gone(&goes).await?;
    let note = world.event(&goes, "DeletionRequested").await?;
    ensure!(note.contains(&node(&goes)), "{note}");
    let after = world.until_done(2).await?;
    ensure!(
        after.iter().any(|machine| machine.name_any() == stays),
        "{after:?}"
    );
    ensure!(world.cloud.calls("delete") == [format!("delete {goes}")]);
    ensure!(world.nodes().get_opt(&node(&goes)).await?.is_none());
    Ok(())
}

/// The process ended between the launch of the instance and the first write of the instance's ID.
pub async fn the_node_of_a_machine_that_never_knew_its_instance_goes_too(client: &Client) -> Result<()> {
    let world = World::start(client, "unknown").await?;
    for machine in ["before", "late"] {
        let body = json!({
            "metadata": {"name": machine, "finalizers": ["machine.sapcloud.io/machine-controller-manager"]},
            "spec": {"class": {"kind": "MachineClass", "name": "first"}},
        });
        create(&world.api::<api::machine::Machine>(), body).await?;
        world.cloud.add_instance(machine);
        world.delete_machine(machine).await?;
    }
    world.cloud.register("before", "True").await?;
    // The kubelet of this instance registers while the instance is being deleted.
    world.cloud.registers_at_the_end("late");
    let _running = world.run(timing());
    for machine in ["before", "late"] {
        world.until_gone(machine).await?;
        let left = world.nodes().get_opt(&node(machine)).await?;
        ensure!(left.is_none(), "{left:?}");
    }
    ensure!(
        world.cloud.instances().is_empty(),
        "{:?}",
        world.cloud.instances()
    );
    Ok(())
}
