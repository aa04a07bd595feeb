//! The reports of a Worker while machines differ from the wanted state: the user sees the Worker's words in
//! the Shoot, and never the machines.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use api::{
    constants::{OPERATION, operation::RECONCILE},
    extensions::Worker,
    machine::Machine,
    meta::{ErrorCode, LastOperationState},
};
use extension::{ExtensionReconciler, reconciler::namespaced, worker::WorkerActuator};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::{
    machines::{MANAGER, ToyMachines},
    world::{Seeds, TEST, create, object, reconciler, set_secret},
};

const NAMESPACE: &str = "shoot--toy--told";
/// Far longer than each step takes.
const SOON: Duration = Duration::from_secs(60);

pub async fn what_keeps_machines_is_told(seeds: &Seeds) -> Result<()> {
    seeds.shoot(NAMESPACE, ("cloudprovider", &[])).await?;
    let seed = &seeds.a;
    set_secret(seed, NAMESPACE, (MANAGER, &[("kubeconfig", "k")])).await?;
    set_secret(seed, NAMESPACE, ("user-data", &[("cloud_config", "run me")])).await?;
    let by = reconciler(seed, namespaced, WorkerActuator(ToyMachines));
    create(&workers(seed), &worker()?).await?;

    a_refused_pool(seed, &by).await?;
    // No manager creates machines here: these machines stand as a manager has left the objects.
    let joins = "the instance toy:///1 is there; its Node is awaited";
    let budget =
        "pods leave its Node: default/web-0 (the PodDisruptionBudget web needs 1 healthy pods and has 1)";
    machine(seed, "joins-never", &waits("Create", joins)).await?;
    machine(seed, "goes-never", &waits("Delete", budget)).await?;
    machines_that_wait(seed, &by, &[joins, budget]).await?;
    let gave_up = "it did not join the cluster within 20m: its Node is awaited";
    let failed =
        json!({"type": "Create", "state": "Failed", "description": gave_up, "errorCode": "InvalidArgument"});
    machine(seed, "was-refused", &failed).await?;
    a_machine_that_failed(seed, &by, gave_up).await
}

type By = ExtensionReconciler<Worker, WorkerActuator<ToyMachines>>;

async fn a_refused_pool(seed: &Client, by: &By) -> Result<()> {
    let worker = asked(seed, by, &pool("ManualInPlaceUpdate")).await?;
    let told = worker.status.unwrap_or_default().default.last_error;
    let told = told.context("a refused pool is not told")?;
    ensure!(told.codes == [ErrorCode::ErrConfigurationProblem], "{told:?}");
    ensure!(
        told.description
            .contains("set updateStrategy of pool a to AutoRollingUpdate"),
        "{told:?}"
    );
    Ok(())
}

/// A wait is not an error, however long: the operation reports the awaited event.
async fn machines_that_wait(seed: &Client, by: &By, words: &[&str]) -> Result<()> {
    until_told(seed, by, |worker| {
        let told = worker.status.clone().unwrap_or_default().default.last_operation;
        told.is_some_and(|told| {
            let says = |words: &&str| told.description.contains(&format!("waits: {words}"));
            told.state == LastOperationState::Processing && words.iter().all(says)
        })
    })
    .await
}

async fn a_machine_that_failed(seed: &Client, by: &By, words: &str) -> Result<()> {
    until_told(seed, by, |worker| {
        let told = worker.status.clone().unwrap_or_default().default.last_error;
        told.is_some_and(|told| {
            told.codes == [ErrorCode::ErrConfigurationProblem] && told.description.contains(words)
        })
    })
    .await
}

/// An operation first waits for the manager's pod, possibly longer than one operation lasts.
async fn until_told(seed: &Client, by: &By, holds: impl Fn(&Worker) -> bool) -> Result<()> {
    let mut last = None;
    let told = async {
        loop {
            let worker = asked(seed, by, &pool("AutoRollingUpdate")).await?;
            if holds(&worker) {
                return Ok(());
            }
            last = worker.status;
        }
    };
    let told = testkit::timeout(SOON, told).await;
    told.unwrap_or_else(|_| bail!("it is not told: {last:?}"))
}

/// The Worker after an operation with this specification.
async fn asked(seed: &Client, by: &By, spec: &Value) -> Result<Worker> {
    let workers = workers(seed);
    let body = json!({"metadata": {"annotations": {(OPERATION): RECONCILE}}, "spec": spec});
    let worker: Worker = TEST.merge(&workers, "one", &body).await?;
    ensure!(by.run(&worker).await.is_err(), "it has machines that nobody made");
    Ok(workers.get("one").await?)
}

async fn machine(seed: &Client, name: &str, last_operation: &Value) -> Result<()> {
    let machines: Api<Machine> = Api::namespaced(seed.clone(), NAMESPACE);
    let made: Machine = object(json!({
        "metadata": {"name": name},
        "spec": {"class": {"kind": "MachineClass", "name": "any"}, "providerID": "toy:///1"},
    }))?;
    create(&machines, &made).await?;
    let status = json!({"lastOperation": last_operation});
    TEST.merge_status(&machines, name, &status).await?;
    Ok(())
}

fn waits(what: &str, why: &str) -> Value {
    json!({"type": what, "state": "Processing", "description": why})
}

fn workers(seed: &Client) -> Api<Worker> {
    Api::namespaced(seed.clone(), NAMESPACE)
}

fn pool(strategy: &str) -> Value {
    json!({"pools": [{
        "name": "a", "machineType": "small", "machineImage": {"name": "os", "version": "1"}, "minimum": 1, "maximum": 1,
        "maxSurge": 1, "maxUnavailable": 0, "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
        "updateStrategy": strategy,
    }]})
}

fn worker() -> Result<Worker> {
    let mut spec = pool("AutoRollingUpdate");
    spec["type"] = json!("toy");
    spec["region"] = json!("r");
    spec["secretRef"] = json!({"name": "cloudprovider", "namespace": NAMESPACE});
    object(json!({"metadata": {"name": "one", "namespace": NAMESPACE}, "spec": spec}))
}
