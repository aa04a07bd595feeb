//! An isolated zone: the machines are drained, and no new machine comes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::{
    constants::ISOLATED_ZONE_CLOSE_DEADLINE,
    extensions::Worker,
    machine::{
        Machine, MachineDeployment, MachineSet,
        labels::{ISOLATED_ZONE_TAINT, ZONE},
    },
};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    config::KubeConfigOptions,
};
use machine_controllers::Timing;
use runtime::{
    client::{Connection, Permit},
    clock,
};
use serde_json::{Value, json};
use testkit::{Relay, eventually};

use crate::{
    cloud::{node, report},
    leaving::{pod, running, webhook},
    world::{SOON, World, create, last, phase, timing},
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

/// Waits until these instances are left.
async fn instances_left(world: &World, expected: &[&str]) -> Result<()> {
    eventually("an instance ends", SOON, || async {
        let left = world.cloud.instances();
        ensure!(left == expected, "{left:?}");
        anyhow::Ok(())
    })
    .await
}

/// A Worker that leaves zone `z`, with a budget that is spent.
async fn leave_zone(world: &World) -> Result<()> {
    let workers: Api<Worker> = world.api();
    let annotations = json!({(ISOLATED_ZONE_CLOSE_DEADLINE): clock::now().to_string()});
    let spec = json!({"type": "memory", "region": "r", "secretRef": {"name": "account"}, "isolatedZoneID": "id-z",
        "pools": []});
    let worker = json!({"metadata": {"name": "silent", "annotations": annotations}, "spec": spec});
    create(&workers, worker).await?;
    let status = Patch::Merge(json!({"status": {"isolatedZoneCode": "z"}}));
    workers
        .patch_status("silent", &PatchParams::default(), &status)
        .await?;
    Ok(())
}

/// RZ-21, RZ-32: a silent API allows no drain. An instance of an isolated zone ends at the bound of the drain
/// or of the budget. A Machine of a healthy zone waits for the API.
pub async fn a_silent_api_keeps_no_instance_in_an_isolated_zone(client: &Client) -> Result<()> {
    let world = World::start(client, "silent").await?;
    let relay = Relay::start(client.clone()).await?;
    let config = Config::from_custom_kubeconfig(relay.kubeconfig()?, &KubeConfigOptions::default()).await?;
    let timing = Timing {
        kubelet_is_gone: Duration::from_secs(1),
        ..timing()
    };
    let running = world.run_as(timing, &Permit::sole("a test"), Connection::new(config)?);
    let names = ["budgeted", "drained", "elsewhere"];
    for (machine, drain) in names.into_iter().zip(["1h", "3s", "1s"]) {
        world.machine(machine, json!({"drainTimeout": drain})).await?;
        world.until(machine, "it runs", |m| phase(m) == "Running").await?;
    }
    let (machines, params): (Api<Machine>, _) = (world.api(), PatchParams::default());
    let marked = Patch::Merge(json!({"spec": isolated()}));
    machines.patch("drained", &params, &marked).await?;
    let in_zone = Patch::Merge(json!({"metadata": {"labels": {(ZONE): "z"}}}));
    machines.patch("budgeted", &params, &in_zone).await?;
    // The silence must not meet the write of the taint.
    eventually("the Node is tainted", SOON, || async {
        let taints = world
            .nodes()
            .get(&node("drained"))
            .await?
            .spec
            .unwrap_or_default()
            .taints;
        let mut taints = taints.iter().flatten();
        ensure!(taints.any(|taint| taint.key == ISOLATED_ZONE_TAINT));
        anyhow::Ok(())
    })
    .await?;

    relay.hold_after(0);
    let begun = Instant::now();
    for machine in names {
        world.delete_machine(machine).await?;
    }
    instances_left(&world, &["budgeted", "elsewhere"]).await?;
    ensure!(
        begun.elapsed() >= Duration::from_secs(2),
        "the drain had no time: {:?}",
        begun.elapsed()
    );
    let note = world.event("drained", "DrainTimedOut").await?;
    ensure!(note.contains("the shoot's API does not answer"), "{note}");
    world
        .until("drained", "its Node is left", |m| {
            last(m).1.contains("the instance is gone")
        })
        .await?;

    leave_zone(&world).await?;
    instances_left(&world, &["elsewhere"]).await?;
    running.until("machine", "NotReady", 6).await?;
    ensure!(world.cloud.instances() == ["elsewhere"]);
    ensure!(
        world.cloud.calls("delete") == ["delete drained", "delete budgeted"],
        "{:?}",
        world.cloud.calls("delete")
    );

    // The Nodes go with their Machines.
    relay.release();
    for machine in names {
        world.until_gone(machine).await?;
        ensure!(
            world.nodes().get_opt(&node(machine)).await?.is_none(),
            "{machine}"
        );
    }
    Ok(())
}

/// RZ-21, RZ-32: users of the shoot can refuse each eviction, deletion of a pod and write to a Node. An
/// instance of an isolated zone ends when the budget of the zone is spent. A Machine of a healthy zone waits
/// for the bound of the drain.
pub async fn a_refused_drain_keeps_no_instance_in_an_isolated_zone(client: &Client) -> Result<()> {
    let world = World::start(client, "refusing").await?;
    let _running = world.run(timing());
    let names = ["refused-here", "refused-there"];
    for machine in names {
        running(&world, machine, json!({"drainTimeout": "1h"})).await?;
        pod(&world, &format!("web-{machine}"), machine, json!({})).await?;
    }
    let in_zone = Patch::Merge(json!({"metadata": {"labels": {(ZONE): "z"}}}));
    let machines: Api<Machine> = world.api();
    machines
        .patch("refused-here", &PatchParams::default(), &in_zone)
        .await?;
    let rules = json!({"pods": "DELETE", "pods/eviction": "CREATE", "nodes": "*"});
    let pods = names.map(|machine| format!("web-{machine}"));
    let refused = [&pods[..], &names.map(node)[..]].concat();
    webhook(&world, rules, &refused).await?;

    for machine in names {
        world.delete_machine(machine).await?;
        world
            .until(machine, "the refusal is reported", |m| {
                last(m).1.contains("w.example.test")
            })
            .await?;
    }
    ensure!(world.cloud.instances() == names, "{:?}", world.cloud.instances());

    leave_zone(&world).await?;
    world.until_gone("refused-here").await?;
    let note = world.event("refused-here", "DrainTimedOut").await?;
    ensure!(
        note.contains("refusing/web-refused-here") && note.contains("the budget of the zone is spent"),
        "{note}"
    );
    let note = world.event("refused-here", "DeletionRefused").await?;
    ensure!(
        note.contains("node-refused-here") && note.contains("w.example.test"),
        "{note}"
    );
    ensure!(
        world.cloud.instances() == ["refused-there"],
        "{:?}",
        world.cloud.instances()
    );
    Api::<ValidatingWebhookConfiguration>::all(world.client.clone())
        .delete(&world.namespace, &DeleteParams::default())
        .await?;
    Ok(())
}
