//! The deletion of a Machine: after the pods, and without the pods when the bound has passed.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::machine::Machine;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    core::v1::{Pod, ServiceAccount},
    policy::v1::PodDisruptionBudget,
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use machine_controllers::Timing;
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    cloud::{node, report},
    world::{SOON, World, create, last, phase, timing},
};

pub async fn pod(world: &World, name: &str, machine: &str, more: Value) -> Result<()> {
    let accounts: Api<ServiceAccount> = world.api();
    eventually("the namespace takes pods", SOON, || accounts.get("default")).await?;
    let mut body = json!({
        "metadata": {"name": name, "labels": {"app": machine}},
        "spec": {
            "nodeName": node(machine), "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "none"}],
        },
    });
    json_patch::merge(&mut body, &more);
    let pods: Api<Pod> = world.api();
    create(&pods, body).await?;
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

/// A budget that prevents the eviction of a single pod.
async fn budget(world: &World, machine: &str) -> Result<Api<PodDisruptionBudget>> {
    let budgets: Api<PodDisruptionBudget> = world.api();
    let body = json!({
        "metadata": {"name": format!("budget-{machine}")},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": machine}}},
    });
    create(&budgets, body).await?;
    Ok(budgets)
}

pub async fn running(world: &World, machine: &str, spec: Value) -> Result<()> {
    world.machine(machine, spec).await?;
    world
        .until(machine, "it runs", |machine| phase(machine) == "Running")
        .await?;
    Ok(())
}

pub async fn pods_leave_first_and_budgets_are_honoured(client: &Client) -> Result<()> {
    let world = World::start(client, "drain").await?;
    let _running = world.run(timing());
    running(&world, "d1", json!({})).await?;
    running(&world, "stays", json!({})).await?;
    // A mirror pod, created by a kubelet from a file: only the kubelet can end a mirror pod.
    let mirror = json!({"metadata": {"labels": {"app": "agent"}, "annotations": {"kubernetes.io/config.mirror": "x"}}});
    pod(&world, "web", "d1", json!({})).await?;
    pod(&world, "agent", "d1", mirror).await?;
    let budgets = budget(&world, "d1").await?;
    world.delete_machine("d1").await?;
    let waits = world
        .until("d1", "the budget is named", |m| last(m).1.contains("budget-d1"))
        .await?;
    ensure!(
        phase(&waits) == "Terminating" && last(&waits).1.contains("drain/web"),
        "{waits:?}"
    );
    ensure!(!last(&waits).1.contains("agent"), "{waits:?}");
    let cordoned = world.nodes().get(&node("d1")).await?;
    ensure!(cordoned.spec.and_then(|spec| spec.unschedulable) == Some(true));
    ensure!(world.cloud.calls("delete").is_empty() && world.api::<Pod>().get_opt("web").await?.is_some());

    budgets.delete("budget-d1", &DeleteParams::default()).await?;
    world.until_gone("d1").await?;
    ensure!(world.api::<Pod>().get_opt("web").await?.is_none());
    ensure!(world.cloud.calls("delete") == ["delete d1"]);
    ensure!(world.nodes().get_opt(&node("d1")).await?.is_none());
    Ok(())
}

pub async fn a_budget_that_never_lets_go_is_told_and_waited_for_only_so_long(client: &Client) -> Result<()> {
    let world = World::start(client, "stuck").await?;
    let _running = world.run(Timing {
        kubelet_is_gone: Duration::from_secs(1),
        ..timing()
    });
    running(&world, "s1", json!({"drainTimeout": "3s"})).await?;
    running(&world, "s2", json!({})).await?;
    running(&world, "s3", json!({})).await?;
    running(&world, "stays", json!({})).await?;
    for machine in ["s1", "s2", "s3"] {
        pod(&world, &format!("web-{machine}"), machine, json!({})).await?;
        budget(&world, machine).await?;
    }
    let begun = Instant::now();
    world.delete_machine("s1").await?;
    world.delete_machine("s2").await?;
    // No kubelet can end the pods of this Node.
    report(client, &node("s3"), "Unknown").await?;
    world.delete_machine("s3").await?;
    world.until_gone("s1").await?;
    ensure!(
        begun.elapsed() >= Duration::from_secs(2),
        "it was not waited for: {:?}",
        begun.elapsed()
    );
    let note = world.event("s1", "DrainTimedOut").await?;
    ensure!(
        note.contains("stuck/web-s1") && note.contains("budget-s1"),
        "{note}"
    );
    world.until_gone("s3").await?;
    let note = world.event("s3", "DrainTimedOut").await?;
    ensure!(
        note.contains("stuck/web-s3") && note.contains("kubelet"),
        "{note}"
    );
    ensure!(world.cloud.calls("delete s2").is_empty() && world.cloud.calls("delete").len() == 2);

    // A user who does not want to wait for s2 forces the deletion.
    let force = Patch::Merge(json!({"metadata": {"labels": {"force-deletion": "True"}}}));
    world
        .api::<Machine>()
        .patch("s2", &PatchParams::default(), &force)
        .await?;
    world.until_gone("s2").await?;
    ensure!(world.cloud.calls("delete").len() == 3);
    Ok(())
}

/// A shoot that hibernates, or is deleted: the pods that a budget waits for can never come.
pub async fn no_budget_holds_where_no_machine_is_wanted(client: &Client) -> Result<()> {
    let world = World::start(client, "sleep").await?;
    let _running = world.run(timing());
    for machine in ["z1", "z2"] {
        running(&world, machine, json!({})).await?;
        pod(&world, &format!("web-{machine}"), machine, json!({})).await?;
        budget(&world, machine).await?;
    }
    world.delete_machine("z1").await?;
    world
        .until("z1", "it waits while another one stays", |machine| {
            last(machine).1.contains("budget-z1")
        })
        .await?;
    world.delete_machine("z2").await?;
    for machine in ["z1", "z2"] {
        world.until_gone(machine).await?;
        let note = world.event(machine, "DrainTimedOut").await?;
        ensure!(note.contains("no machine is wanted"), "{note}");
    }
    ensure!(world.cloud.instances().is_empty());
    Ok(())
}

/// A webhook of users without backend, on the writes of these Machines' Nodes and pods only.
pub async fn webhook(world: &World, rules: Value, names: &[String]) -> Result<()> {
    let rule = |operation: &str, resource: &str| json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]});
    let rules: Vec<_> = rules
        .as_object()
        .into_iter()
        .flatten()
        .map(|(resource, operation)| rule(operation.as_str().unwrap_or_default(), resource))
        .collect();
    let webhook = json!({
        "name": "w.example.test", "failurePolicy": "Fail", "timeoutSeconds": 1, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "default", "name": "none"}}, "rules": rules,
        "matchConditions": [{"name": "ours", "expression": format!("request.name in {names:?}")}],
    });
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(world.client.clone());
    let body = json!({"metadata": {"name": world.namespace}, "webhooks": [webhook]});
    create(&configurations, body).await?;
    // The API server reads configurations late.
    let (pods, refused): (Api<Pod>, _) = (world.api(), &names[0]);
    let dry = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    eventually("the webhook refuses", SOON, || async {
        match pods.delete(refused, &dry).await {
            Err(kube::Error::Api(status)) if status.message.contains("w.example.test") => Ok(()),
            other => Err(anyhow::anyhow!("{other:?}")),
        }
    })
    .await
}

/// How long a refusal holds a Machine. The test must see the refusal within this time, beside all other
/// scenarios.
const HELD: Duration = Duration::from_secs(15);

pub async fn a_webhook_without_backend_holds_no_machine_for_ever(client: &Client) -> Result<()> {
    let world = World::start(client, "hooked").await?;
    let _running = world.run(Timing {
        kubelet_is_gone: HELD,
        ..timing()
    });
    for (machine, spec) in [
        ("h1", json!({"drainTimeout": format!("{}s", HELD.as_secs())})),
        ("h2", json!({})),
        ("h3", json!({})),
    ] {
        running(&world, machine, spec).await?;
        pod(&world, &format!("web-{machine}"), machine, json!({})).await?;
        budget(&world, machine).await?;
    }
    let names = ["web-h1", "web-h2", "web-h3", "node-h1", "node-h2", "node-h3"].map(str::to_owned);
    let rules = json!({"pods": "DELETE", "nodes": "*"});
    webhook(&world, rules, &names).await?;

    // Within the bound a refusal holds the Machine, because the webhook may come back.
    let begun = Instant::now();
    world.delete_machine("h1").await?;
    world
        .until("h1", "the refusal is reported", |m| {
            last(m).1.contains("w.example.test")
        })
        .await?;
    world.until_gone("h1").await?;
    ensure!(
        // The API server cuts the fraction of the second off the time of the deletion.
        begun.elapsed() + Duration::from_secs(1) >= HELD,
        "it was not waited for: {:?}",
        begun.elapsed()
    );
    let note = world.event("h1", "DrainTimedOut").await?;
    ensure!(
        note.contains("hooked/web-h1") && note.contains("w.example.test"),
        "{note}"
    );
    let note = world.event("h1", "DeletionRefused").await?;
    ensure!(
        note.contains("node-h1") && note.contains("w.example.test"),
        "{note}"
    );
    ensure!(
        world.cloud.instances() == ["h2", "h3"],
        "{:?}",
        world.cloud.instances()
    );

    // The shoot is put to sleep.
    world.delete_machine("h2").await?;
    world.delete_machine("h3").await?;
    for machine in ["h2", "h3"] {
        world.until_gone(machine).await?;
    }
    ensure!(
        world.cloud.instances().is_empty(),
        "{:?}",
        world.cloud.instances()
    );
    Api::<ValidatingWebhookConfiguration>::all(world.client.clone())
        .delete(&world.namespace, &DeleteParams::default())
        .await?;
    Ok(())
}
