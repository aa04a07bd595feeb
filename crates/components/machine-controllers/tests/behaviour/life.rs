//! Machines come, are equipped, are scaled and go; and those that were there before stay.

use anyhow::{Context as _, Result, ensure};
use api::machine::{MachineClass, MachineDeployment};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use testkit::eventually;

use crate::{
    cloud::{id, node},
    world::{SOON, World, create, phase, timing},
};

pub async fn machines_come_and_go(client: &Client) -> Result<()> {
    let world = World::start(client, "life").await?;
    let _running = world.run(timing());
    let equipment = json!({
        "metadata": {"labels": {"pool": "life"}, "annotations": {"a": "b"}},
        "spec": {"taints": [{"key": "dedicated", "value": "life", "effect": "NoSchedule"}]},
    });
    world
        .deployment(2, json!({"template": {"spec": {"nodeTemplate": equipment}}}))
        .await?;
    let machines = world.until_done(2).await?;
    ensure!(
        world.cloud.calls("create").len() == 2,
        "{:?}",
        world.cloud.calls("")
    );
    for machine in &machines {
        let name = machine.name_any();
        ensure!(phase(machine) == "Running", "{name}");
        ensure!(machine.spec.provider_id == Some(id(&name)) && machine.labels()["node"] == node(&name));
        let script = world.cloud.user_data(&name).context("it was given nothing")?;
        let token = script
            .strip_prefix(&format!("join as {name} with "))
            .context(script.clone())?;
        let (public, secret) = token.split_once('.').context("no token")?;
        ensure!(public.len() == 6 && secret.len() == 16, "{token}");
        let secrets: Api<Secret> = Api::namespaced(client.clone(), "kube-system");
        eventually("nobody can join with it any more", SOON, || async {
            let left = secrets.get_opt(&format!("bootstrap-token-{public}")).await?;
            ensure!(left.is_none());
            anyhow::Ok(())
        })
        .await?;
        let equipped = eventually("the Node is equipped", SOON, || async {
            let node = world.nodes().get(&node(&name)).await?;
            ensure!(node.labels().get("pool").is_some(), "{:?}", node.labels());
            anyhow::Ok(node)
        })
        .await?;
        let taints = equipped.spec.and_then(|spec| spec.taints).unwrap_or_default();
        ensure!(taints.iter().any(|taint| taint.key == "dedicated"), "{taints:?}");
    }

    world.change_deployment(json!({"replicas": 1})).await?;
    let left = world.until_done(1).await?;
    ensure!(
        machines
            .iter()
            .any(|machine| machine.name_any() == left[0].name_any())
    );
    ensure!(world.cloud.instances() == [left[0].name_any()]);

    let deployments: Api<MachineDeployment> = world.api();
    let classes: Api<MachineClass> = world.api();
    // The class is needed until the last instance is gone.
    classes.delete("first", &DeleteParams::default()).await?;
    deployments.delete("life", &DeleteParams::default()).await?;
    eventually("all is gone", SOON, || async {
        let left = (
            deployments.list(&ListParams::default()).await?.items.len(),
            world.sets().await?.len(),
            world.machines().await?.len(),
            classes.list(&ListParams::default()).await?.items.len(),
        );
        ensure!(left == (0, 0, 0, 0), "{left:?}");
        anyhow::Ok(())
    })
    .await?;
    ensure!(
        world.cloud.instances().is_empty(),
        "{:?}",
        world.cloud.instances()
    );
    ensure!(
        world.cloud.calls("delete").len() == 2,
        "{:?}",
        world.cloud.calls("")
    );
    let nodes = world.nodes().list(&ListParams::default()).await?;
    let kept = nodes.iter().find(|node| node.name_any().contains("life"));
    ensure!(kept.is_none(), "{kept:?}");
    Ok(())
}

/// R7-03, gardener/gardener#5423, #5471, #8742: objects as after a restore, without status, from a different
/// manager.
pub async fn restored_machines_are_the_same_machines(client: &Client) -> Result<()> {
    let world = World::start(client, "restored").await?;
    let labels = json!({"pool": "restored", "machine-template-hash": "1234567890"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"class": {"name": "first"}}});
    let set = json!({
        "metadata": {"name": "restored-12345", "labels": labels},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
    });
    create(&world.api::<api::machine::MachineSet>(), set).await?;
    let before = ["restored-12345-a", "restored-12345-b", "restored-12345-c"];
    for name in before {
        world.cloud.add_instance(name);
        world.cloud.register(name, "True").await?;
        let mut machine = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"class": {"name": "first"}, "providerID": id(name)},
        });
        match name.chars().last() {
            Some('a') => machine["metadata"]["labels"]["node"] = json!(node(name)),
            // Machine b lost the label; Machine c lost the label and the provider id.
            Some('b') => {}
            _ => machine["spec"]["providerID"] = json!(""),
        }
        create(&world.api::<api::machine::Machine>(), machine).await?;
    }
    let uids = |nodes: Vec<k8s_openapi::api::core::v1::Node>| {
        let own = nodes
            .into_iter()
            .filter(|node| node.name_any().contains("restored"));
        own.map(|node| (node.name_any(), node.uid())).collect::<Vec<_>>()
    };
    let nodes_before = uids(world.nodes().list(&ListParams::default()).await?.items);
    world.deployment(3, json!({})).await?;

    let running = world.run(timing());
    let machines = world.until_done(3).await?;
    let names: Vec<_> = machines.iter().map(ResourceExt::name_any).collect();
    ensure!(names == before, "{names:?}");
    ensure!(machines.iter().all(|machine| phase(machine) == "Running"));
    ensure!(
        machines
            .iter()
            .all(|machine| machine.spec.provider_id == Some(id(&machine.name_any())))
    );
    ensure!(world.sets().await?.len() == 1, "another set was made");
    running.until("machine-safety", "success", 3).await?;
    for call in ["create", "delete"] {
        ensure!(
            world.cloud.calls(call).is_empty(),
            "{:?}",
            world.cloud.calls(call)
        );
    }
    let mut asked = world.cloud.calls("status");
    // The controller asks again while the watch does not show the write after the first answer.
    asked.dedup();
    ensure!(
        asked == ["status restored-12345-c"],
        "only the one of which nothing was known: {asked:?}"
    );
    ensure!(uids(world.nodes().list(&ListParams::default()).await?.items) == nodes_before);
    // An instance that the cloud does not know is not created again either.
    world
        .machine(
            "lost",
            json!({"providerID": "memory:///i-lost", "creationTimeout": "1s"}),
        )
        .await?;
    eventually("it is looked for also when its time is over", SOON, || async {
        let looks = world.cloud.calls("status lost").len();
        ensure!(looks >= 3, "{looks}");
        anyhow::Ok(())
    })
    .await?;
    let lost = world.api::<api::machine::Machine>().get("lost").await?;
    let told = crate::world::last(&lost).1;
    ensure!(
        phase(&lost) == "CrashLoopBackOff" && told.contains("memory:///i-lost"),
        "{lost:?}"
    );
    ensure!(world.cloud.calls("create").is_empty());
    Ok(())
}
