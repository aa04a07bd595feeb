//! A zone with an instance that does not end: the MachineDeployment keeps the finalizer of the machine
//! controllers. The Worker is ready at the close deadline regardless, so that the network of the zone is
//! closed (RZ-11, RZ-32). The Worker also reports machines elsewhere that are not ready.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use api::{
    constants::{ISOLATED_ZONE_CLOSE_DEADLINE, OPERATION, condition::EVERY_NODE_READY, operation::RECONCILE},
    extensions::Worker,
    machine::{Machine, MachineDeployment, labels},
    meta::{ConditionStatus, LastOperationState, find_condition},
};
use extension::{ExtensionReconciler, reconciler::namespaced, worker::WorkerActuator};
use jiff::{SignedDuration, Timestamp};
use kube::{Api, Client, ResourceExt, api::ListParams};
use runtime::{clock, controller::finalizer};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    machines::{MANAGER, ToyMachines},
    world::{Seeds, TEST, create, object, reconciler, set_secret},
};

const NAMESPACE: &str = "shoot--toy--hanging";
/// Much longer than each step takes.
const SOON: Duration = Duration::from_secs(60);

type By = ExtensionReconciler<Worker, WorkerActuator<ToyMachines>>;

/// Fails if the Worker waits for a MachineDeployment that has a finalizer before the deadline counts.
pub async fn zones_are_left_in_their_budget(seeds: &Seeds) -> Result<()> {
    seeds.shoot(NAMESPACE, ("cloudprovider", &[])).await?;
    let seed = &seeds.a;
    set_secret(seed, NAMESPACE, (MANAGER, &[("kubeconfig", "k")])).await?;
    set_secret(seed, NAMESPACE, ("user-data", &[("cloud_config", "run me")])).await?;
    let by = reconciler(seed, namespaced, WorkerActuator(ToyMachines));
    let (workers, deployments) = (api::<Worker>(seed), api::<MachineDeployment>(seed));
    let made = create(&workers, &worker()?).await?;
    let (_, comes) = tokio::join!(by.run(&made), machines_come(seed));
    comes?;
    ask(&workers, json!({}), None).await?;
    ensure!(run(seed, &by).await? == Some(LastOperationState::Succeeded));

    // Machines elsewhere do not come, and the instance of the zone does not end.
    let passed = clock::now() - SignedDuration::from_secs(1);
    ask(&workers, json!({"isolatedZoneID": "id-x"}), Some(passed)).await?;
    let state = run(seed, &by).await?;
    ensure!(
        state == Some(LastOperationState::Succeeded),
        "the Worker is not ready: {state:?}"
    );
    let hangs = in_zone(seed, "x").await?;
    ensure!(
        hangs.metadata.deletion_timestamp.is_some(),
        "it was not told to go"
    );
    let machine = api::<Machine>(seed).get("hangs").await?;
    ensure!(machine.labels()[labels::ZONE] == "x");
    let reported = condition(&workers)
        .await?
        .context("no report of the other zone")?;
    ensure!(reported.0 == ConditionStatus::False, "{reported:?}");
    let other = in_zone(seed, "y").await?.name_any();
    ensure!(reported.1.contains(&other), "{reported:?}");

    // The failover has ended: the Worker waits for machines elsewhere as in an ordinary reconciliation.
    finalizer::remove_all(&deployments, &hangs).await?;
    finalizer::remove_all(&api::<Machine>(seed), &machine).await?;
    api::<Machine>(seed)
        .delete("hangs", &kube::api::DeleteParams::default())
        .await?;
    are_ready(seed, &in_zone(seed, "y").await?).await?;
    ask(&workers, json!({"isolatedZoneID": "id-x"}), None).await?;
    ensure!(run(seed, &by).await? == Some(LastOperationState::Succeeded));
    let reported = condition(&workers).await?;
    ensure!(reported.is_none(), "{reported:?}");
    Ok(())
}

/// The Worker's condition with status and message.
async fn condition(workers: &Api<Worker>) -> Result<Option<(ConditionStatus, String)>> {
    let status = workers.get("one").await?.status.unwrap_or_default();
    let reported = find_condition(&status.default.conditions, EVERY_NODE_READY);
    Ok(reported.map(|condition| (condition.status, condition.message.clone())))
}

/// Requests a reconciliation with this change. Without a deadline, the annotation is removed.
async fn ask(workers: &Api<Worker>, change: Value, deadline: Option<Timestamp>) -> Result<()> {
    let deadline = deadline.map(|deadline| deadline.to_string());
    let annotations = json!({(OPERATION): RECONCILE, (ISOLATED_ZONE_CLOSE_DEADLINE): deadline});
    let body = json!({"metadata": {"annotations": annotations}, "spec": change});
    TEST.merge(workers, "one", &body).await?;
    Ok(())
}

/// Runs an operation and returns the resulting state.
async fn run(seed: &Client, by: &By) -> Result<Option<LastOperationState>> {
    let workers = api::<Worker>(seed);
    let worker = workers.get("one").await?;
    // The result is in the status.
    drop(testkit::timeout(SOON, by.run(&worker)).await?);
    let status = workers.get("one").await?.status.unwrap_or_default();
    Ok(status.default.last_operation.map(|last| last.state))
}

/// Both deployments get the finalizer of the machine controllers, and one deployment has a Machine whose
/// instance will not end.
async fn machines_come(seed: &Client) -> Result<()> {
    let deployments = api::<MachineDeployment>(seed);
    let all = eventually("both deployments are there", SOON, || async {
        let found = deployments.list(&ListParams::default()).await;
        let found = found.map_err(|error| error.to_string())?.items;
        if found.len() == 2 {
            Ok(found)
        } else {
            Err(format!("{} deployments", found.len()))
        }
    })
    .await?;
    for deployment in all {
        let held = json!({"metadata": {"finalizers": [labels::FINALIZER]}});
        let held = TEST.merge(&deployments, &deployment.name_any(), &held).await?;
        are_ready(seed, &held).await?;
    }
    let of_machine = in_zone(seed, "x").await?.spec.template;
    let hangs: Machine = object(json!({
        "metadata": {
            "name": "hangs", "finalizers": [labels::FINALIZER], "labels": of_machine.metadata.unwrap_or_default().labels,
        },
        "spec": of_machine.spec,
    }))?;
    create(&api::<Machine>(seed), &hangs).await?;
    Ok(())
}

/// As if all machines had come.
async fn are_ready(seed: &Client, deployment: &MachineDeployment) -> Result<()> {
    let count = deployment.spec.replicas;
    let status = json!({
        "observedGeneration": deployment.metadata.generation, "replicas": count, "updatedReplicas": count,
        "readyReplicas": count, "availableReplicas": count,
    });
    let deployments = api::<MachineDeployment>(seed);
    TEST.merge_status(&deployments, &deployment.name_any(), &status)
        .await?;
    Ok(())
}

async fn in_zone(seed: &Client, zone: &str) -> Result<MachineDeployment> {
    let selected = ListParams::default().labels(&format!("{}={zone}", labels::ZONE));
    let found = api::<MachineDeployment>(seed).list(&selected).await?.items;
    match <[MachineDeployment; 1]>::try_from(found) {
        Ok([only]) => Ok(only),
        Err(found) => bail!("{} deployments are in zone {zone}", found.len()),
    }
}

fn api<K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>>(
    seed: &Client,
) -> Api<K> {
    Api::namespaced(seed.clone(), NAMESPACE)
}

fn worker() -> Result<Worker> {
    object(json!({
        "metadata": {"name": "one", "namespace": NAMESPACE, "annotations": {(OPERATION): RECONCILE}},
        "spec": {
            "type": "toy", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
            "pools": [{
                "name": "a", "machineType": "small", "machineImage": {"name": "os", "version": "1"}, "minimum": 2, "maximum": 2,
                "maxSurge": 1, "maxUnavailable": 0, "zones": ["x", "y"],
                "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
            }],
        },
    }))
}
