//! The seed whose controllers move: the two managers, their processes and locks, and upgrades of both. The
//! home (the gardenlet) is upgraded by Helm, the guest (provider-local) by the ControllerDeployment.

use std::{collections::BTreeMap, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, ensure};
use api::gardencore::ControllerDeployment;
use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use repot_tests::{landscape::Landscape, lifecycle, proof};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::SEED;

/// Bounds an upgrade with the following rollout: three processes in sequence, on a slow machine.
const UPGRADED_WITHIN: Duration = Duration::from_secs(180);

/// A controller manager of the seed.
#[derive(Debug, PartialEq)]
pub struct Manager {
    pub name: &'static str,
    pub namespace: &'static str,
    pub port: u16,
    pub replicas: i32,
}

pub const HOME: Manager = Manager {
    name: "gardenlet",
    namespace: "garden",
    port: 2728,
    replicas: 3,
};
pub const GUEST: Manager = Manager {
    name: "provider-local",
    namespace: "extension-provider-local",
    port: 8080,
    replicas: 2,
};

/// The metrics of every process of both managers, by pod.
pub async fn processes(seed: &Client) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for manager in [&HOME, &GUEST] {
        for pod in pods(seed, manager).await? {
            let (name, port) = (pod.name_any(), manager.port);
            let path = format!(
                "/api/v1/namespaces/{}/pods/{name}:{port}/proxy/metrics",
                manager.namespace
            );
            let text = seed
                .request_text(http::Request::get(path).body(Vec::new())?)
                .await
                .with_context(|| format!("no metrics of {name}"))?;
            found.insert(name, text);
        }
    }
    Ok(found)
}

/// The sum of all samples that begin so.
pub fn sum(metrics: &str, sample: &str) -> f64 {
    let values = metrics
        .lines()
        .filter(|line| line.starts_with(sample))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum()
}

/// The holder of a lock of the seed; empty without a holder.
pub async fn holder(seed: &Client, lock: &str) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(seed.clone(), HOME.namespace);
    let spec = leases.get_opt(lock).await?.and_then(|lease| lease.spec);
    Ok(spec.and_then(|spec| spec.holder_identity).unwrap_or_default())
}

/// The identity of a process is the pod's name with a random suffix.
pub fn is_of(holder: &str, pod: &str) -> bool {
    holder.strip_prefix(pod).is_some_and(|rest| rest.starts_with('_'))
}

/// Waits until a process of this manager holds the lock.
pub async fn held_by(seed: &Client, lock: &str, manager: &Manager) -> Result<()> {
    until(&format!("{lock} is held by {}", manager.name), || async move {
        let holder = holder(seed, lock).await?;
        let lives = pods(seed, manager)
            .await?
            .iter()
            .any(|pod| is_of(&holder, &pod.name_any()));
        Ok((!lives).then(|| format!("it is held by {holder:?}")))
    })
    .await
}

/// The restarts of each container of both managers: a process that loses the lock on a stalled machine ends,
/// and a second process takes over.
pub async fn starts(seed: &Client) -> Result<Vec<(String, String, i32)>> {
    let mut all = pods(seed, &HOME).await?;
    all.extend(pods(seed, &GUEST).await?);
    Ok(lifecycle::starts(all))
}

pub async fn pods(seed: &Client, manager: &Manager) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(seed.clone(), manager.namespace);
    let labelled = ListParams::default().labels(&format!("app.kubernetes.io/name={}", manager.name));
    Ok(pods.list(&labelled).await?.items)
}

/// Waits until only processes of the newest template run, and the replaced processes have ended.
pub async fn rolled_out(seed: &Client, manager: &Manager, replicas: i32) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), manager.namespace);
    let deployments = &deployments;
    until(&format!("{} is rolled out", manager.name), || async move {
        let found = deployments.get(manager.name).await?;
        let status = found.status.unwrap_or_default();
        let there = pods(seed, manager).await?.len();
        let done = status.observed_generation == found.metadata.generation
            && status.updated_replicas == Some(replicas)
            && status.available_replicas == Some(replicas)
            && i32::try_from(there)? == replicas;
        Ok((!done).then(|| format!("{there} pods; {status:?}")))
    })
    .await
}

/// Checks until `look` returns no complaint. The conditions depend on several objects, so no single watch
/// covers a condition.
pub async fn until<F>(what: &str, look: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = Result<Option<String>>>,
{
    let left = proof::until_nothing(UPGRADED_WITHIN, || async {
        Ok(look().await?.into_iter().collect())
    })
    .await?;
    ensure!(
        left.is_empty(),
        "not in {UPGRADED_WITHIN:?}: {what}: {}",
        left.join(", ")
    );
    Ok(())
}

/// Sets the guest's values for this seed, on top of the values for all seeds: in the ControllerDeployment in
/// the garden.
pub async fn upgrade_guest(landscape: &Landscape, values: &Value) -> Result<()> {
    let deployments: Api<ControllerDeployment> = Api::all(landscape.garden.clone());
    let deployment = json!({
        "apiVersion": "core.gardener.cloud/v1", "kind": "ControllerDeployment", "metadata": {"name": GUEST.name},
        "helm": {"values": {"seeds": {SEED: values}}},
    });
    let by_test = PatchParams::apply("repot-test").force();
    deployments
        .patch(GUEST.name, &by_test, &Patch::Apply(deployment))
        .await
        .context("the ControllerDeployment cannot be changed")?;
    Ok(())
}

/// Waits until the guest's Deployment has so many replicas, and has these flags or not. The gardenlet renders
/// the chart with the values, and the resource-manager applies the objects.
pub async fn guest_is_told(seed: &Client, replicas: i32, flags: [(&str, bool); 2]) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), GUEST.namespace);
    let deployments = &deployments;
    until("provider-local is told what its values say", || async move {
        let spec = deployments.get(GUEST.name).await?.spec.unwrap_or_default();
        let containers = spec.template.spec.map(|pod| pod.containers).unwrap_or_default();
        let args: Vec<String> = containers
            .into_iter()
            .flat_map(|container| container.args.unwrap_or_default())
            .collect();
        let has = |flag: &str| args.iter().any(|arg| arg.starts_with(flag));
        let told = spec.replicas == Some(replicas) && flags.iter().all(|&(flag, wanted)| has(flag) == wanted);
        Ok((!told).then(|| format!("it has {:?} replicas and {args:?}", spec.replicas)))
    })
    .await
}

/// `helm upgrade` of the seed with the values of the installation, and these values on top.
pub async fn upgrade(landscape: &Landscape, values: &Value) -> Result<()> {
    let state = landscape.variable("LANDSCAPE_STATE")?;
    let mut helm = Command::new("helm")
        .arg("--kubeconfig")
        .arg(landscape.variable("SEED_B_KUBECONFIG")?)
        .args(["upgrade", "seed", "--namespace", HOME.namespace, "--values"])
        .arg(format!("{state}/install/{SEED}.values.yaml"))
        .args(["--values", "-"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/seed"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("helm does not start; run: hack/tools.sh helm")?;
    let mut input = helm.stdin.take().context("no pipe to helm")?;
    input.write_all(values.to_string().as_bytes()).await?;
    drop(input);
    let ended = testkit::timeout(UPGRADED_WITHIN, helm.wait_with_output())
        .await
        .context("helm does not end")??;
    ensure!(
        ended.status.success(),
        "helm upgrade: {}",
        String::from_utf8_lossy(&ended.stderr)
    );
    Ok(())
}
