//! Pods that leave a Node do not go to a Node that leaves next.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use api::machine::{Machine, MachineDeployment};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::{core::v1::Node, storage::v1::VolumeAttachment};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams},
    runtime::watcher::{self, watcher},
};
use serde_json::json;
use testkit::eventually;

use crate::{
    cloud::node,
    volumes::attach,
    world::{SOON, World, timing},
};

const TAINT: &str = "deployment.machine.sapcloud.io/prefer-no-schedule";

/// The Nodes of this scenario that have the soft taint, by the names of the Machines.
async fn marked(world: &World) -> Result<BTreeSet<String>> {
    let nodes = world.nodes().list(&ListParams::default()).await?;
    let prefix = format!("{}-", node(&world.namespace));
    let own = nodes
        .iter()
        .filter(|node: &&Node| node.name_any().starts_with(&prefix));
    let is_marked = |node: &&Node| {
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        taints
            .into_iter()
            .any(|taint| taint.key == TAINT && taint.effect == "PreferNoSchedule")
    };
    Ok(own
        .filter(is_marked)
        .map(|node| node.name_any().trim_start_matches("node-").to_owned())
        .collect())
}

/// The Nodes that are marked when the first of these Machines is being deleted.
async fn marked_at_first_deletion(
    world: &World,
    begin: impl Future<Output = Result<()>>,
) -> Result<BTreeSet<String>> {
    let events = watcher(world.api::<Machine>(), watcher::Config::default());
    pin_mut!(events);
    let watched = async {
        while let Some(event) = events.next().await {
            if let watcher::Event::Apply(machine) | watcher::Event::InitApply(machine) =
                event.context("the watch")?
                && machine.metadata.deletion_timestamp.is_some()
            {
                return marked(world).await;
            }
        }
        anyhow::bail!("the watch ended")
    };
    let (changed, marked) = tokio::join!(begin, tokio::time::timeout(SOON, watched));
    changed?;
    marked.context("no Machine was deleted")?
}

fn names(machines: &[Machine]) -> BTreeSet<String> {
    machines.iter().map(ResourceExt::name_any).collect()
}

/// Keeps the instances of these Machines after the deletion, by a volume on each Node.
async fn hold(world: &World, machines: &BTreeSet<String>) -> Result<()> {
    for machine in machines {
        attach(world, machine).await?;
    }
    Ok(())
}

async fn let_go(world: &World, machines: &BTreeSet<String>) -> Result<()> {
    let attachments: Api<VolumeAttachment> = Api::all(world.client.clone());
    for machine in machines {
        let name = format!("csi-{machine}");
        attachments.delete(&name, &DeleteParams::default()).await?;
    }
    Ok(())
}

pub async fn all_outgoing_nodes_are_marked_before_the_first_is_drained(client: &Client) -> Result<()> {
    let world = World::start(client, "outgoing").await?;
    world.class("second", "script").await?;
    let _running = world.run(timing());
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    world.deployment(3, json!({"strategy": strategy})).await?;
    let first = names(&world.until_done(3).await?);
    hold(&world, &first).await?;
    let class = |name: &str| json!({"template": {"spec": {"class": {"name": name}}}});
    let seen = marked_at_first_deletion(&world, world.change_deployment(class("second"))).await?;
    ensure!(seen == first, "{seen:?} of {first:?}");

    // The update is cancelled: old Nodes stay, and the new Node goes.
    world.change_deployment(class("first")).await?;
    let staying = eventually("the Nodes that stay are released", SOON, || async {
        let machines = world.machines().await?;
        let staying: BTreeSet<_> = machines
            .iter()
            .filter(|machine| machine.metadata.deletion_timestamp.is_none())
            .map(ResourceExt::name_any)
            .filter(|machine| first.contains(machine))
            .collect();
        let marked = marked(&world).await?;
        ensure!(
            !staying.is_empty() && staying.is_disjoint(&marked),
            "{staying:?} {marked:?}"
        );
        anyhow::Ok(staying)
    })
    .await?;
    let_go(&world, &first).await?;
    let second = names(&world.until_done(3).await?);
    ensure!(staying.is_subset(&second), "{staying:?} {second:?}");

    // A set that shrinks.
    hold(&world, &second).await?;
    let shrink = world.change_deployment(json!({"replicas": 1}));
    let seen = marked_at_first_deletion(&world, shrink).await?;
    ensure!(
        seen.len() == 2 && seen.is_subset(&second),
        "{seen:?} of {second:?}"
    );
    let_go(&world, &second).await?;
    world.until_done(1).await?;
    ensure!(marked(&world).await?.is_empty());

    // A deployment that goes, as for an isolated zone or a removed pool.
    world.change_deployment(json!({"replicas": 2})).await?;
    let third = names(&world.until_done(2).await?);
    hold(&world, &third).await?;
    let delete = async {
        let deployments = world.api::<MachineDeployment>();
        let params = DeleteParams::default();
        deployments.delete(&world.namespace, &params).await?;
        anyhow::Ok(())
    };
    let seen = marked_at_first_deletion(&world, delete).await?;
    ensure!(seen == third, "{seen:?} of {third:?}");
    let_go(&world, &third).await
}
