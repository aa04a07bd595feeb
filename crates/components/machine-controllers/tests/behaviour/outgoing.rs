//! Pods that leave a Node do not go to a Node that leaves next.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use api::machine::{Machine, MachineDeployment};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::Node,
    storage::v1::VolumeAttachment,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    runtime::watcher::{self, watcher},
};
use serde_json::json;
use testkit::eventually;

use crate::{
    cloud::node,
    volumes::attach,
    world::{SOON, World, create, timing},
};

const TAINT: &str = "deployment.machine.sapcloud.io/prefer-no-schedule";
/// The policy refuses each Node with this annotation, so that a dry run shows the policy in force.
const PROBE: &str = "test.example/probe";

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
    let (changed, marked) = tokio::join!(begin, testkit::timeout(SOON, watched));
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

/// A policy of users refuses each update that removes the taint from a Node of this scenario.
async fn refuse_releases(world: &World, probed: &str) -> Result<()> {
    let is_marked = |node: &str| format!("{node}.?spec.?taints.orValue([]).exists(t, t.key == '{TAINT}')");
    let stays = format!("!({}) || {}", is_marked("oldObject"), is_marked("object"));
    let is_no_probe = format!("!('{PROBE}' in object.metadata.?annotations.orValue({{}}))");
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"],
        "operations": ["UPDATE"]});
    let name = &world.namespace;
    let own = format!("request.name.startsWith('{}-')", node(name));
    let policy = json!({"metadata": {"name": name}, "spec": {
        "failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "own", "expression": own}],
        "validations": [{"expression": stays}, {"expression": is_no_probe}],
    }});
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(world.client.clone());
    create(&policies, policy).await?;
    let spec = json!({"policyName": name, "validationActions": ["Deny"]});
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(world.client.clone());
    create(&bindings, json!({"metadata": {"name": name}, "spec": spec})).await?;
    // The API server reads policies late.
    let dry = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let probe = Patch::Merge(json!({"metadata": {"annotations": {(PROBE): "1"}}}));
    let nodes = world.nodes();
    eventually("the policy is in force", SOON, || async {
        match nodes.patch(probed, &dry, &probe).await {
            Err(kube::Error::Api(status)) if status.message.contains("ValidatingAdmissionPolicy") => Ok(()),
            other => Err(anyhow::anyhow!("{other:?}")),
        }
    })
    .await
}

async fn accept_releases(world: &World) -> Result<()> {
    let params = DeleteParams::default();
    Api::<ValidatingAdmissionPolicyBinding>::all(world.client.clone())
        .delete(&world.namespace, &params)
        .await?;
    Api::<ValidatingAdmissionPolicy>::all(world.client.clone())
        .delete(&world.namespace, &params)
        .await?;
    Ok(())
}

/// The admission of the shoot refuses the release of a Node: the deployment works on, and repeats the release
/// until the shoot accepts the release.
pub async fn a_refused_release_is_repeated_and_stops_no_other_work(client: &Client) -> Result<()> {
    let world = World::start(client, "unreleased").await?;
    let running = world.run(timing());
    world.deployment(2, json!({})).await?;
    let first = names(&world.until_done(2).await?);
    let staying = first.first().context("there is no Machine")?;
    refuse_releases(&world, &node(staying)).await?;
    let refusals = || running.outcomes("machine-deployment", "NotReady");
    let before = refusals();
    // As after a move in the middle of an update that was cancelled.
    let taint = json!({"key": TAINT, "value": "True", "effect": "PreferNoSchedule"});
    let taint = Patch::Merge(json!({"spec": {"taints": [taint]}}));
    let params = PatchParams::default();
    world.nodes().patch(&node(staying), &params, &taint).await?;

    world.change_deployment(json!({"replicas": 3})).await?;
    let second = names(&world.until_done(3).await?);
    ensure!(first.is_subset(&second), "{first:?} {second:?}");
    eventually("the release is refused", SOON, || async {
        ensure!(refusals() > before, "no step has ended with the refusal");
        anyhow::Ok(())
    })
    .await?;
    let marked_meanwhile = marked(&world).await?;
    ensure!(marked_meanwhile.contains(staying), "{marked_meanwhile:?}");
    // The replacement of a Machine is work after the refusal.
    let replaced = first.last().context("there is no Machine")?;
    world.delete_machine(replaced).await?;
    world.until_gone(replaced).await?;
    let third = names(&world.until_done(3).await?);
    ensure!(third.contains(staying) && !third.contains(replaced), "{third:?}");

    accept_releases(&world).await?;
    // The refused release is repeated after a minute.
    eventually("the Node is released", 2 * SOON, || async {
        let left = marked(&world).await?;
        ensure!(left.is_empty(), "{left:?}");
        anyhow::Ok(())
    })
    .await
}
