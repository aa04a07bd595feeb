//! Machine objects in the destination, as a restore creates the objects: each case is a known way to lose
//! nodes in a move.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::{OPERATION, operation::RESTORE},
    extensions::Worker,
    machine::{
        Machine, MachineClass, MachineDeployment, MachineSet, labels,
        state::{self, collect},
    },
};
use extension::{reconciler::namespaced, worker::WorkerActuator};
use extension_contract::run_until_ready;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client, ResourceExt, api::ListParams, runtime::wait::await_condition};
use serde_json::{Value, json};

use crate::{
    machines::{MANAGER, ToyMachines},
    world::{Seeds, TEST, create, object, reconciler, set_secret},
};

const NAMESPACE: &str = "shoot--toy--restored";
/// Far longer than each step takes.
const SOON: Duration = Duration::from_secs(60);
/// On the Worker while a zone is isolated.
const SIZES: &str = r#"{"zone":"w","pools":{}}"#;
/// Annotation on the Worker once all objects exist.
const RESTORED: &str = "worker.extensions.gardener.cloud/restored-machine-state";

pub async fn are_all_there_before_anybody_acts(seeds: &Seeds) -> Result<()> {
    seeds.shoot(NAMESPACE, ("cloudprovider", &[])).await?;
    let seed = &seeds.b;
    set_secret(seed, NAMESPACE, (MANAGER, &[("kubeconfig", "k")])).await?;
    set_secret(seed, NAMESPACE, ("user-data", &[("cloud_config", "run me")])).await?;
    // An earlier restore started the manager and created one machine.
    let stale: Deployment = object(deployment_of_manager())?;
    let stale = create(&Api::namespaced(seed.clone(), NAMESPACE), &stale).await?;
    let machines: Api<Machine> = Api::namespaced(seed.clone(), NAMESPACE);
    let mut there = machine("m-1", "new", false)?;
    there.annotations_mut().insert("here".into(), "already".into());
    create(&machines, &there).await?;

    let workers: Api<Worker> = Api::namespaced(seed.clone(), NAMESPACE);
    let wanted = create(&workers, &worker()?).await?;
    let carried = json!({"state": state::encode(&carried()?)?});
    TEST.merge_status(&workers, "one", &carried).await?;
    let by = reconciler(seed, namespaced, WorkerActuator(ToyMachines));
    let made = await_condition(workers.clone(), "one", |worker: Option<&Worker>| {
        worker.is_some_and(|worker| worker.annotations().contains_key(RESTORED))
    });
    // No manager runs here: the operation waits for machines, and is dropped.
    tokio::select! {
        done = run_until_ready(&by, &wanted) => drop(done?),
        made = testkit::timeout(SOON, made) => drop(made.context("the machines were not restored")??),
    }

    check(seed, &stale).await?;
    let restored = workers.get("one").await?;
    ensure!(
        restored
            .annotations()
            .get(labels::SIZES_BEFORE_ISOLATION)
            .map(String::as_str)
            == Some(SIZES),
        "a failback would not give the zone its size"
    );
    Ok(())
}

/// The created and the untouched objects.
async fn check(seed: &Client, stale: &Deployment) -> Result<()> {
    let machines: Api<Machine> = Api::namespaced(seed.clone(), NAMESPACE);
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), NAMESPACE);
    let manager = deployments.get(MANAGER).await?;
    ensure!(
        manager.metadata.uid == stale.metadata.uid,
        "the manager was deleted and made anew (gardener#3520)"
    );
    ensure!(
        manager.metadata.generation > stale.metadata.generation,
        "nobody stopped the manager"
    );
    let sets = Api::<MachineSet>::namespaced(seed.clone(), NAMESPACE)
        .list(&ListParams::default())
        .await?;
    let all = machines.list(&ListParams::default()).await?.items;
    let names: Vec<_> = all.iter().map(ResourceExt::name_any).collect();
    ensure!(
        names == ["m-1", "m-2", "m-3"],
        "not all machines are there (gardener#5471): {names:?}"
    );
    for machine in all.iter().filter(|machine| machine.name_any() != "m-1") {
        let set = sets
            .iter()
            .find(|set| set.name_any() == machine.labels()[labels::TEMPLATE_HASH]);
        let owner = machine
            .owner_references()
            .first()
            .context("a machine without a set")?;
        ensure!(
            Some(&owner.uid) == set.and_then(|set| set.metadata.uid.as_ref()),
            "{machine:?}"
        );
        ensure!(
            machine.spec.provider_id.as_deref() == Some(format!("toy:///{}", machine.name_any()).as_str())
        );
        ensure!(machine.labels()[labels::NODE] == format!("node-{}", machine.name_any()));
        let going = machine.metadata.deletion_timestamp.is_some();
        ensure!(
            going == (machine.name_any() == "m-3"),
            "what was going goes, and nothing else: {machine:?}"
        );
    }
    ensure!(
        all.iter()
            .any(|machine| machine.annotations().contains_key("here")),
        "what was there was overwritten"
    );
    let classes: Api<MachineClass> = Api::namespaced(seed.clone(), NAMESPACE);
    ensure!(
        classes.get_opt("c-old").await?.is_some(),
        "the old machine cannot be deleted without its class"
    );
    let pools: Api<MachineDeployment> = Api::namespaced(seed.clone(), NAMESPACE);
    let zone = pools
        .get("d-z7")
        .await
        .context("the deployment has another name")?;
    ensure!(zone.labels()[labels::ZONE] == "x", "{:?}", zone.labels());
    Ok(())
}

fn deployment_of_manager() -> Value {
    let of_it = json!({"app": "kubernetes", "role": MANAGER});
    json!({
        "metadata": {"name": MANAGER, "namespace": NAMESPACE},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": of_it},
            "template": {"metadata": {"labels": of_it}, "spec": {"containers": [{"name": "m", "image": "old"}]}},
        },
    })
}

fn worker() -> Result<Worker> {
    object(json!({
        "metadata": {"name": "one", "namespace": NAMESPACE, "annotations": {(OPERATION): RESTORE}},
        "spec": {
            "type": "toy", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
            "pools": [{
                "name": "a", "machineType": "small", "machineImage": {"name": "os", "version": "1"}, "minimum": 2, "maximum": 3,
                "maxSurge": 1, "maxUnavailable": 0, "zones": ["w", "x"],
                "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
            }],
        },
    }))
}

fn machine(name: &str, set: &str, going: bool) -> Result<Machine> {
    let time = going.then_some("2026-01-01T00:00:00Z");
    object(json!({
        "metadata": {
            "name": name, "namespace": NAMESPACE, "deletionTimestamp": time,
            "labels": {"name": "d-z7", "machine-template-hash": set, "node": format!("node-{name}")},
        },
        "spec": {"providerID": format!("toy:///{name}"), "class": {"kind": "MachineClass", "name": format!("c-{set}")}},
        "status": {"currentStatus": {"phase": "Running"}},
    }))
}

/// The state in the middle of a rolling update: one machine of the old set is terminating.
fn carried() -> Result<state::MachineState> {
    let set = |name: &str, replicas: i32| -> Result<MachineSet> {
        let of_it = json!({"name": "d-z7", "machine-template-hash": name});
        let of_machines = json!({
            "name": "d-z7", "machine-template-hash": name, (labels::POOL): "a", (labels::ZONE): "x",
        });
        let class = json!({"class": {"kind": "MachineClass", "name": format!("c-{name}")}});
        object(json!({
            "metadata": {"name": name, "labels": of_machines},
            "spec": {
                "replicas": replicas, "selector": {"matchLabels": of_it},
                "template": {"metadata": {"labels": of_machines}, "spec": class},
            },
        }))
    };
    let class = |name: &str| object(json!({"metadata": {"name": name}, "providerSpec": {}}));
    let deployment = object(json!({"metadata": {"name": "d-z7"}, "spec": {"replicas": 2, "template": {}}}))?;
    let collected = collect(
        &[deployment],
        &[set("new", 2)?, set("old", 1)?],
        &[
            machine("m-1", "new", false)?,
            machine("m-2", "new", false)?,
            machine("m-3", "old", true)?,
        ],
        &[class("c-new")?, class("c-old")?],
    );
    Ok(state::MachineState {
        sizes_before_isolation: Some(SIZES.to_owned()),
        ..collected
    })
}
