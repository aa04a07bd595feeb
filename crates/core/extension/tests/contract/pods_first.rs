//! A zone that is left in the order `PodsFirst`: the machines of the zone go although machines elsewhere do
//! not come.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::{
        ISOLATED_ZONE_CLOSE_DEADLINE, ISOLATED_ZONE_PODS_FIRST, OPERATION, SHOOT_ISOLATED_ZONE_ORDER,
        condition::EVERY_NODE_READY, operation::RECONCILE,
    },
    extensions::{Cluster, Worker},
    machine::{MachineDeployment, labels},
    meta::{LastOperationState, find_condition},
};
use extension::{reconciler::namespaced, worker::WorkerActuator};
use jiff::SignedDuration;
use kube::{Api, Client};
use runtime::clock;
use serde_json::json;

use crate::{
    machines::{MANAGER, ToyMachines},
    world::{Seeds, TEST, create, object, reconciler, set_secret},
};

const NAMESPACE: &str = "shoot--toy--podsfirst";
/// Much longer than a reconciliation takes.
const SOON: Duration = Duration::from_secs(60);

/// Fails if the Worker waits for machines elsewhere before the MachineDeployment of the zone is deleted.
pub async fn pods_leave_before_capacity_is_awaited(seeds: &Seeds) -> Result<()> {
    seeds.shoot(NAMESPACE, ("cloudprovider", &[])).await?;
    let seed = &seeds.a;
    set_secret(seed, NAMESPACE, (MANAGER, &[("kubeconfig", "k")])).await?;
    set_secret(seed, NAMESPACE, ("user-data", &[("cloud_config", "run me")])).await?;
    let order = json!({"metadata": {"annotations": {SHOOT_ISOLATED_ZONE_ORDER: ISOLATED_ZONE_PODS_FIRST}}});
    let clusters: Api<Cluster> = Api::all(seed.clone());
    TEST.merge(&clusters, NAMESPACE, &json!({"spec": {"shoot": order}}))
        .await?;
    let deployments = api::<MachineDeployment>(seed);
    for zone in ["x", "y"] {
        create(&deployments, &deployment(zone)?).await?;
    }
    let worker = create(&api::<Worker>(seed), &worker()?).await?;
    let by = reconciler(seed, namespaced, WorkerActuator(ToyMachines));
    drop(testkit::timeout(SOON, by.run(&worker)).await?);

    ensure!(
        deployments.get_opt("in-x").await?.is_none(),
        "the zone waits for machines elsewhere"
    );
    let elsewhere = deployments.get("in-y").await?;
    ensure!(elsewhere.spec.replicas == Some(3), "{elsewhere:?}");
    let status = api::<Worker>(seed)
        .get("one")
        .await?
        .status
        .unwrap_or_default()
        .default;
    let last = status.last_operation.context("nothing was done")?;
    ensure!(last.state == LastOperationState::Succeeded, "{last:?}");
    let reported =
        find_condition(&status.conditions, EVERY_NODE_READY).context("no report of the other zone")?;
    ensure!(
        reported.message.contains("machinedeployments/in-y"),
        "{reported:?}"
    );
    Ok(())
}

fn api<K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>>(
    seed: &Client,
) -> Api<K> {
    Api::namespaced(seed.clone(), NAMESPACE)
}

/// A deployment without machine controllers.
fn deployment(zone: &str) -> Result<MachineDeployment> {
    let name = format!("in-{zone}");
    let place = json!({(labels::POOL): "a", (labels::ZONE): zone});
    object(json!({
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": place},
        "spec": {
            "replicas": if zone == "x" { 2 } else { 1 }, "selector": {"matchLabels": {(labels::NAME): name}},
            "template": {"metadata": {"labels": {(labels::NAME): name}}, "spec": {}},
        },
    }))
}

fn worker() -> Result<Worker> {
    let deadline = clock::now() + SignedDuration::from_mins(15);
    object(json!({
        "metadata": {"name": "one", "namespace": NAMESPACE, "annotations": {
            (OPERATION): RECONCILE, (ISOLATED_ZONE_CLOSE_DEADLINE): deadline.to_string(),
        }},
        "spec": {
            "type": "toy", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
            "isolatedZoneID": "id-x",
            "pools": [{
                "name": "a", "machineType": "small", "machineImage": {"name": "os", "version": "1"}, "minimum": 3, "maximum": 4,
                "maxSurge": 1, "maxUnavailable": 0, "zones": ["x", "y"],
                "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
            }],
        },
    }))
}
