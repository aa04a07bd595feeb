//! A zone that is isolated and returns (RZ-20..22). Machines elsewhere come before the machines of the zone
//! go. No machine is replaced, and no machine is moved back.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, bail, ensure};
use api::{
    constants::{OPERATION, operation::RECONCILE},
    extensions::Worker,
    machine::{Machine, MachineDeployment, labels},
    meta::LastOperationState,
};
use extension::{ExtensionReconciler, reconciler::namespaced, worker::WorkerActuator};
use futures::{StreamExt, stream::select};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    runtime::watcher,
};
use runtime::controller::finalizer;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    machines::{MANAGER, ToyMachines},
    world::{Seeds, TEST, create, object, reconciler, set_secret},
};

const NAMESPACE: &str = "shoot--toy--isolated";
/// Far longer than each step takes.
const SOON: Duration = Duration::from_secs(60);

/// Names of machines in each zone, for each change in order.
type Story = Vec<BTreeMap<String, Vec<String>>>;

pub async fn zones_are_left_and_filled_again(seeds: &Seeds) -> Result<()> {
    seeds.shoot(NAMESPACE, ("cloudprovider", &[])).await?;
    let seed = &seeds.a;
    set_secret(seed, NAMESPACE, (MANAGER, &[("kubeconfig", "k")])).await?;
    set_secret(seed, NAMESPACE, ("user-data", &[("cloud_config", "run me")])).await?;
    let (tell, told) = tokio::sync::watch::channel(Story::new());
    let mut player = JoinSet::new();
    player.spawn(play(seed.clone(), tell));

    create(&api::<Worker>(seed), &worker()?).await?;
    let by = reconciler(seed, namespaced, WorkerActuator(ToyMachines));
    let made = done(seed, &by, &json!({})).await?;
    let before = in_zones(seed).await?;
    ensure!(before["x"].len() == 2 && before["y"].len() == 1, "{before:?}");
    ensure!(made.status.unwrap_or_default().isolated_zone_code.is_none());

    let wrong = done(seed, &by, &json!({"isolatedZoneID": "y"})).await;
    let why = wrong.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(why.contains("no zone has the ID"), "an unknown ID: {why}");
    ensure!(
        in_zones(seed).await? == before,
        "a wrong ID has changed something"
    );

    let begun = told.borrow().len();
    let left = done(seed, &by, &json!({"isolatedZoneID": "id-x"})).await?;
    let status = left.status.unwrap_or_default();
    ensure!(status.isolated_zone_code.as_deref() == Some("x"), "{status:?}");
    let of: Vec<_> = status
        .machine_deployments
        .iter()
        .map(|one| (one.minimum, one.maximum))
        .collect();
    ensure!(of == [(3, 4)], "{status:?}");
    let after = in_zones(seed).await?;
    ensure!(!after.contains_key("x") && after["y"].len() == 3, "{after:?}");
    ensure!(
        after["y"].contains(&before["y"][0]),
        "a machine elsewhere was replaced: {after:?}"
    );
    for step in &told.borrow()[begun..] {
        let [x, y] = ["x", "y"].map(|zone| step.get(zone).map_or(0, Vec::len));
        ensure!(
            x == 2 || y == 3,
            "machines of the zone went before others had come: {step:?}"
        );
    }

    // A cluster autoscaler decides on the grown capacity.
    create(&api(seed), &autoscaler()?).await?;
    let back = done(seed, &by, &json!({"isolatedZoneID": null})).await?;
    ensure!(back.status.unwrap_or_default().isolated_zone_code.is_none());
    let last = in_zones(seed).await?;
    ensure!(last["x"].len() == 2, "the zone is not filled again: {last:?}");
    ensure!(
        last["y"] == after["y"],
        "machines elsewhere were moved back: {last:?}"
    );
    ensure!(!has_sizes(seed).await?, "the failback has ended");
    api::<Deployment>(seed)
        .delete("cluster-autoscaler", &DeleteParams::default())
        .await?;
    cancelled_while_it_terminates(seed, &by, told).await
}

fn autoscaler() -> Result<Deployment> {
    let of_it = json!({"app": "cluster-autoscaler"});
    object(json!({
        "metadata": {"name": "cluster-autoscaler", "namespace": NAMESPACE},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": of_it},
            "template": {"metadata": {"labels": of_it}, "spec": {"containers": [{"name": "a", "image": "none"}]}},
        },
    }))
}

async fn has_sizes(seed: &Client) -> Result<bool> {
    let worker = api::<Worker>(seed).get("one").await?;
    Ok(worker.annotations().contains_key(labels::SIZES_BEFORE_ISOLATION))
}

/// A MachineDeployment keeps the finalizer until the machines have ended. A cancelled failover does not write
/// to the terminating deployment, waits for the end, and recreates the deployment. Without an autoscaler, the
/// remaining zone, which has grown from 3 to 4, shrinks to the former size.
async fn cancelled_while_it_terminates(
    seed: &Client,
    by: &ExtensionReconciler<Worker, WorkerActuator<ToyMachines>>,
    mut told: tokio::sync::watch::Receiver<Story>,
) -> Result<()> {
    let (workers, deployments) = (api::<Worker>(seed), api::<MachineDeployment>(seed));
    let name = format!("{NAMESPACE}-a-z1");
    let hold = json!({"metadata": {"finalizers": ["test/instance"]}});
    TEST.merge(&deployments, &name, &hold).await?;
    let ask = async |zone: Value| {
        let asked =
            json!({"metadata": {"annotations": {(OPERATION): RECONCILE}}, "spec": {"isolatedZoneID": zone}});
        TEST.merge(&workers, "one", &asked).await
    };
    let failover = ask(json!("id-x")).await?;
    let is_going = |found: &MachineDeployment| found.metadata.deletion_timestamp.is_some();
    let going = tokio::select! {
        done = by.run(&failover) => bail!("it did not wait for the deployment: {done:?}"),
        going = until(&deployments, &name, is_going) => going?,
    };

    let failback = ask(Value::Null).await?;
    let is_told = |found: &Worker| {
        let status = found.status.as_ref();
        status.is_some_and(|status| status.isolated_zone_code.is_none())
    };
    let ends = async {
        until(&workers, "one", is_told).await?;
        let still = deployments.get(&name).await?;
        ensure!(
            still.metadata.generation == going.metadata.generation,
            "it was written while it terminates: {still:?}"
        );
        finalizer::remove_all(&deployments, &still).await?;
        anyhow::Ok(())
    };
    let (_, ended) = tokio::join!(by.run(&failback), ends);
    ended?;
    done(seed, by, &json!({"isolatedZoneID": null})).await?;
    ensure!(deployments.get(&name).await?.uid() != going.uid());
    ensure!(!has_sizes(seed).await?, "the failback has ended");
    testkit::timeout(
        SOON,
        told.wait_for(|story| {
            let size = |zone: &str| story.last()?.get(zone).map(Vec::len);
            (size("x"), size("y")) == (Some(2), Some(3))
        }),
    )
    .await??;
    let grown = |step: &BTreeMap<String, Vec<String>>| step.get("y").map(Vec::len) == Some(4);
    let story = told.borrow().clone();
    let from = story.iter().rposition(grown).unwrap_or_default();
    ensure!(
        story[from].get("x").map(Vec::len) == Some(2),
        "the other zone shrank before the zone had its machines: {story:?}"
    );
    Ok(())
}

async fn until<K: runtime::client::wait::Watched>(
    api: &Api<K>,
    name: &str,
    is_so: impl Fn(&K) -> bool + Send + Sync,
) -> Result<K> {
    let look = |found: Option<&K>| match found {
        Some(found) if is_so(found) => runtime::client::wait::WaitState::Done,
        _ => runtime::client::wait::WaitState::Wait("it is not so".into()),
    };
    let found = testkit::measured("the object changes", SOON, |bound| {
        runtime::client::wait::until(api, name, bound, look)
    });
    found.await?.ok_or_else(|| anyhow::anyhow!("{name} is gone"))
}
/// Requests a reconciliation with this change, and runs the reconciler until success.
async fn done(
    seed: &Client,
    by: &ExtensionReconciler<Worker, WorkerActuator<ToyMachines>>,
    change: &Value,
) -> Result<Worker> {
    let workers = api::<Worker>(seed);
    let asked = json!({"metadata": {"annotations": {(OPERATION): RECONCILE}}, "spec": change});
    let asked = TEST.merge(&workers, "one", &asked).await?;
    testkit::timeout(SOON, async {
        loop {
            let worker = workers.get("one").await?;
            let status = worker.status.clone().unwrap_or_default().default;
            let has_seen = status.observed_generation == asked.metadata.generation;
            match status.last_operation.map(|last| last.state) {
                Some(LastOperationState::Succeeded)
                    if has_seen && !worker.annotations().contains_key(OPERATION) =>
                {
                    return Ok(worker);
                }
                Some(LastOperationState::Error | LastOperationState::Failed)
                    if !worker.annotations().contains_key(OPERATION) =>
                {
                    bail!(
                        "{}",
                        status
                            .last_error
                            .map(|error| error.description)
                            .unwrap_or_default()
                    )
                }
                _ => {}
            }
            if let Err(error) = by.run(&worker).await
                && error.is_failure()
            {
                bail!("{error}");
            }
        }
    })
    .await?
}

fn api<K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>>(
    seed: &Client,
) -> Api<K> {
    Api::namespaced(seed.clone(), NAMESPACE)
}

async fn in_zones(seed: &Client) -> Result<BTreeMap<String, Vec<String>>> {
    let mut zones = BTreeMap::<String, Vec<String>>::new();
    for machine in api::<Machine>(seed).list(&ListParams::default()).await? {
        zones
            .entry(machine.labels()[labels::ZONE].clone())
            .or_default()
            .push(machine.name_any());
    }
    Ok(zones)
}

/// Simulates the manager of machines: acts on each change.
async fn play(seed: Client, tell: tokio::sync::watch::Sender<Story>) {
    let deployments = watcher(api::<MachineDeployment>(&seed), watcher::Config::default()).map(drop);
    let machines = watcher(api::<Machine>(&seed), watcher::Config::default()).map(drop);
    let mut woken = select(deployments.boxed(), machines.boxed());
    while woken.next().await.is_some() {
        // A conflicting write is repeated at the next change.
        if let Err(error) = act(&seed, &tell).await {
            tracing::debug!(%error, "the played manager of machines");
        }
    }
}

async fn act(seed: &Client, tell: &tokio::sync::watch::Sender<Story>) -> Result<()> {
    let machines = api::<Machine>(seed);
    let deployments = api::<MachineDeployment>(seed)
        .list(&ListParams::default())
        .await?
        .items;
    let there = machines.list(&ListParams::default()).await?.items;
    for machine in &there {
        let of = &machine.labels()[labels::NAME];
        let is_wanted = deployments.iter().any(|deployment| deployment.name_any() == *of);
        match &machine.metadata.deletion_timestamp {
            Some(_) => finalizer::remove_all(&machines, machine).await.map(drop)?,
            None if !is_wanted => drop(
                machines
                    .delete(&machine.name_any(), &DeleteParams::default())
                    .await?,
            ),
            None => {}
        }
    }
    for deployment in &deployments {
        let name = deployment.name_any();
        let own = there
            .iter()
            .filter(|machine| machine.labels()[labels::NAME] == name)
            .count();
        let wanted = usize::try_from(deployment.spec.replicas.unwrap_or_default())?;
        for number in own..wanted {
            let machine: Machine = object(json!({
                "metadata": {
                    "name": format!("{name}-{number}"), "finalizers": [labels::FINALIZER],
                    "labels": deployment.spec.template.metadata.clone().unwrap_or_default().labels,
                },
                "spec": deployment.spec.template.spec,
            }))?;
            machines.create(&PostParams::default(), &machine).await?;
        }
        let of_it = there
            .iter()
            .filter(|machine| machine.labels()[labels::NAME] == name);
        for surplus in of_it.skip(wanted) {
            machines
                .delete(&surplus.name_any(), &DeleteParams::default())
                .await?;
        }
        let status = json!({
            "observedGeneration": deployment.metadata.generation, "replicas": own, "updatedReplicas": own, "readyReplicas": own,
            "availableReplicas": own,
        });
        if json!(deployment.status) != status {
            TEST.merge_status(&api::<MachineDeployment>(seed), &name, &status)
                .await?;
        }
    }
    let now = in_zones(seed).await?;
    tell.send_modify(|story| {
        if story.last() != Some(&now) {
            story.push(now);
        }
    });
    Ok(())
}

fn worker() -> Result<Worker> {
    object(json!({
        "metadata": {"name": "one", "namespace": NAMESPACE, "annotations": {(OPERATION): RECONCILE}},
        "spec": {
            "type": "toy", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
            "pools": [{
                "name": "a", "machineType": "small", "machineImage": {"name": "os", "version": "1"}, "minimum": 3, "maximum": 4,
                "maxSurge": 1, "maxUnavailable": 0, "zones": ["x", "y"],
                "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
            }],
        },
    }))
}
