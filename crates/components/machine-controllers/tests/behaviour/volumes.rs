//! Volumes of a Node that is deleted: the instance waits for the detachment, but not for ever.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Api, Client, api::DeleteParams};
use machine_controllers::Timing;
use serde_json::json;

use crate::{
    cloud::node,
    world::{World, create, last, phase, timing},
};

/// Creates a VolumeAttachment like the attach-detach controller of kube-controller-manager.
pub async fn attach(world: &World, machine: &str) -> Result<Api<VolumeAttachment>> {
    let attachments: Api<VolumeAttachment> = Api::all(world.client.clone());
    let attachment = json!({
        "metadata": {"name": format!("csi-{machine}")},
        "spec": {
            "attacher": "ebs.csi.aws.com", "nodeName": node(machine),
            "source": {"persistentVolumeName": format!("pv-{machine}")},
        },
    });
    create(&attachments, attachment).await?;
    Ok(attachments)
}

pub async fn an_instance_waits_for_its_volumes_and_not_for_ever(client: &Client) -> Result<()> {
    let world = World::start(client, "volumes").await?;
    let patient = world.run(timing());
    for machine in ["v1", "v2", "v3", "stays"] {
        world.machine(machine, json!({})).await?;
        world.until(machine, "it runs", |m| phase(m) == "Running").await?;
    }
    let attachments = attach(&world, "v1").await?;
    // The volume of a Node that stays holds no Machine of a different Node.
    attach(&world, "stays").await?;
    world.delete_machine("v1").await?;
    world
        .until("v1", "the volume is named", |m| last(m).1.contains("pv-v1"))
        .await?;
    world.delete_machine("v2").await?;
    world.until_gone("v2").await?;
    ensure!(
        world.cloud.calls("delete") == ["delete v2"],
        "{:?}",
        world.cloud.calls("delete")
    );
    attachments.delete("csi-v1", &DeleteParams::default()).await?;
    world.until_gone("v1").await?;
    drop(patient);

    // A driver that does not detach.
    let _running = world.run(Timing {
        detach: Duration::from_secs(2),
        ..timing()
    });
    attach(&world, "v3").await?;
    let began = Instant::now();
    world.delete_machine("v3").await?;
    world.until_gone("v3").await?;
    ensure!(
        began.elapsed() >= Duration::from_secs(2),
        "it was not waited for: {:?}",
        began.elapsed()
    );
    let note = world.event("v3", "VolumesNotDetached").await?;
    ensure!(note.contains("pv-v3") && note.contains("node-v3"), "{note}");
    for attachment in ["csi-v3", "csi-stays"] {
        attachments.delete(attachment, &DeleteParams::default()).await?;
    }
    Ok(())
}
