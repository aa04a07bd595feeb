//! Converts the pools of a Shoot to the pools of the provider's Worker. Pure.

use api::{
    extensions::{
        OperatingSystemConfig, WorkerPool,
        worker::{NodeTemplate, WorkerMachineImage},
    },
    gardencore::{
        CloudProfile,
        shoot::{KubeletConfig, Worker},
    },
};
use k8s_openapi::{api::core::v1::SecretKeySelector, apimachinery::pkg::util::intstr::IntOrString};
use kube::ResourceExt;
use runtime::{Result, workload::rollout::checksum};
use serde_json::json;

use super::{kubelet, machine_image};
use crate::configuration_problem;

/// Key of the Secret that the provider of an OperatingSystemConfig writes.
const CLOUD_CONFIG: &str = "cloud_config";
/// Label of nodes: name of the pool.
pub(super) const POOL: &str = "worker.gardener.cloud/pool";
/// Prefix of node labels for a further container runtime on the node.
const CONTAINER_RUNTIME: &str = "containerruntime.worker.gardener.cloud";
/// Label of nodes on which the shoot's own components may run.
const SYSTEM_COMPONENTS: &str = "worker.gardener.cloud/system-components";

/// Inputs for a pool.
pub(super) struct PoolInputs<'a> {
    pub(super) profile: &'a CloudProfile,
    /// The full version.
    pub(super) kubernetes_version: &'a str,
    /// Kubelet configuration of the Shoot, for all pools.
    pub(super) kubelet: Option<&'a KubeletConfig>,
}

/// A pool whose machines start with the user data of `first`.
pub(super) fn pool(
    worker: &Worker,
    first: &OperatingSystemConfig,
    given: &PoolInputs<'_>,
) -> Result<WorkerPool> {
    let image = machine_image::select_image(worker, given.profile)?;
    let version = worker
        .kubernetes
        .as_ref()
        .and_then(|kubernetes| kubernetes.version.clone())
        .unwrap_or_else(|| given.kubernetes_version.to_owned());
    let user = kubelet::wanted(given.kubelet, worker);
    let mut labels = worker.labels.clone();
    labels.insert(POOL.to_owned(), worker.name.clone());
    if worker
        .system_components
        .as_ref()
        .is_none_or(|components| components.allow)
    {
        labels.insert(SYSTEM_COMPONENTS.to_owned(), "true".to_owned());
    }
    for runtime in worker.cri.iter().flat_map(|cri| &cri.container_runtimes) {
        labels.insert(
            format!("{CONTAINER_RUNTIME}/{}", runtime.type_),
            "true".to_owned(),
        );
    }
    Ok(WorkerPool {
        name: worker.name.clone(),
        machine_type: worker.machine.type_.clone(),
        machine_image: WorkerMachineImage {
            name: image.name,
            version: image.version,
        },
        minimum: worker.minimum,
        maximum: worker.maximum,
        max_surge: worker.max_surge.clone().unwrap_or(IntOrString::Int(1)),
        max_unavailable: worker.max_unavailable.clone().unwrap_or(IntOrString::Int(0)),
        annotations: worker.annotations.clone(),
        labels,
        taints: worker.taints.clone(),
        node_agent_secret_name: Some(rolls_with(worker, user.as_ref())),
        user_data_secret_ref: user_data(first)?,
        provider_config: worker.provider_config.clone(),
        volume: worker.volume.clone(),
        data_volumes: worker.data_volumes.clone(),
        kubelet_data_volume_name: worker.kubelet_data_volume_name.clone(),
        zones: worker.zones.clone(),
        machine_controller_manager: worker.machine_controller_manager.clone(),
        kubernetes_version: Some(version),
        kubelet_config: user,
        node_template: node_template(&worker.machine.type_, given.profile)?,
        architecture: worker.machine.architecture.clone(),
        priority: worker.priority,
        update_strategy: worker.update_strategy,
        ..WorkerPool::default()
    })
}

/// The name of the node agent Secret; a changed name replaces the machines. The name covers the configuration
/// of kubelet and container runtime. A renewed certificate, or a changed text of the suite, replaces no
/// machine.
fn rolls_with(worker: &Worker, kubelet: Option<&KubeletConfig>) -> String {
    // The default container runtime.
    let runtime = worker.cri.as_ref().map_or("containerd", |cri| cri.name.as_str());
    let mut sum = checksum([
        ("kubelet", json!(kubelet).to_string()),
        ("cri", runtime.to_owned()),
    ]);
    sum.truncate(8);
    format!("gardener-node-agent-{}-{sum}", worker.name)
}

fn user_data(first: &OperatingSystemConfig) -> Result<SecretKeySelector> {
    let status = first.status.as_ref();
    let config = status.and_then(|status| status.cloud_config.as_ref());
    let name = config.and_then(|config| config.secret_ref.name.clone());
    Ok(SecretKeySelector {
        name: name.ok_or_else(|| {
            configuration_problem(format!(
                "the provider of OperatingSystemConfig {} is done and has told no Secret in status.cloudConfig: it does not \
                 keep to the contract",
                first.name_any()
            ))
        })?,
        key: CLOUD_CONFIG.to_owned(),
        optional: None,
    })
}

fn node_template(machine_type: &str, profile: &CloudProfile) -> Result<Option<NodeTemplate>> {
    let all = &profile.spec.machine_types;
    let Some(known) = all.iter().find(|known| known.name == machine_type) else {
        let offered: Vec<_> = all.iter().map(|known| known.name.as_str()).collect();
        return Err(configuration_problem(format!(
            "CloudProfile {} has no machine type {machine_type:?}: it has {}",
            profile.name_any(),
            offered.join(", ")
        )));
    };
    let capacity = [
        ("cpu", &known.cpu),
        ("gpu", &known.gpu),
        ("memory", &known.memory),
    ];
    Ok(Some(NodeTemplate {
        capacity: capacity
            .map(|(name, quantity)| (name.to_owned(), quantity.clone()))
            .into(),
        ..NodeTemplate::default()
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::Value;

    use super::*;

    fn worker(over: &Value) -> Worker {
        let mut worker = json!({"name": "pool", "minimum": 1, "maximum": 3, "zones": ["a"],
            "machine": {"type": "small", "image": {"name": "local", "version": "1.0.0"}}});
        worker
            .as_object_mut()
            .unwrap()
            .extend(over.as_object().unwrap().clone());
        serde_json::from_value(worker).unwrap()
    }

    fn profile() -> CloudProfile {
        serde_json::from_value(json!({"metadata": {"name": "profile"}, "spec": {"type": "local", "regions": [],
            "kubernetes": {"versions": []}, "machineImages": [{"name": "local", "versions": [{"version": "1.0.0"}]}],
            "machineTypes": [{"name": "small", "cpu": "1", "gpu": "0", "memory": "1Gi"}]}}))
        .unwrap()
    }

    fn first(secret: &str) -> OperatingSystemConfig {
        serde_json::from_value(json!({"metadata": {"name": "cloud-config-pool"}, "spec": {"type": "local", "purpose": "provision"},
            "status": {"cloudConfig": {"secretRef": {"name": secret, "namespace": "shoot--dev--web"}}}}))
        .unwrap()
    }

    fn made(over: &Value, first: &OperatingSystemConfig) -> Result<WorkerPool> {
        let given = PoolInputs {
            profile: &profile(),
            kubernetes_version: "1.34.4",
            kubelet: None,
        };
        pool(&worker(over), first, &given)
    }

    /// I4: a write by a different seed, by a different client, or a repeated write replaces no machine; a
    /// changed kubelet setting does.
    #[test]
    fn machines_are_replaced_for_what_they_run_and_not_for_where_it_is_written() {
        let of = |over: &Value, secret: &str| made(over, &first(secret)).unwrap().node_agent_secret_name;
        let before = of(&json!({}), "osc-result-1");
        assert_eq!(
            before,
            of(&json!({"maximum": 7, "labels": {"a": "b"}}), "osc-result-2")
        );
        assert_ne!(
            before,
            of(
                &json!({"kubernetes": {"kubelet": {"maxPods": 50}}}),
                "osc-result-1"
            )
        );
        assert_eq!(
            before,
            of(&json!({"cri": {"name": "containerd"}}), "osc-result-1")
        );
        assert_ne!(before, of(&json!({"cri": {"name": "another"}}), "osc-result-1"));
        // A further runtime is added to existing nodes.
        let further = json!({"cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}});
        assert_eq!(before, of(&further, "osc-result-1"));
    }

    #[test]
    fn a_pool_has_what_its_nodes_need() {
        let gvisor = json!({"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]});
        let over = json!({"labels": {"a": "b"}, "cri": gvisor});
        let pool = made(&over, &first("osc-result")).unwrap();
        assert_eq!(pool.labels["a"], "b");
        assert_eq!(
            pool.labels["containerruntime.worker.gardener.cloud/gvisor"],
            "true"
        );
        assert_eq!(pool.labels[POOL], "pool");
        assert_eq!(pool.user_data_secret_ref.name, "osc-result");
        assert_eq!(pool.kubernetes_version.as_deref(), Some("1.34.4"));
        assert_eq!(
            (pool.max_surge, pool.max_unavailable),
            (IntOrString::Int(1), IntOrString::Int(0))
        );
    }

    #[test]
    fn what_nobody_offers_is_told_with_what_there_is() {
        let told = |over: &Value, first: &OperatingSystemConfig| made(over, first).unwrap_err().to_string();
        let open = json!({"machine": {"type": "small", "image": {"name": "local"}}});
        let sentence = told(&open, &first("osc-result"));
        assert!(sentence.contains("offers local 1.0.0"), "{sentence}");
        let unknown = json!({"machine": {"type": "huge", "image": {"name": "local", "version": "1.0.0"}}});
        let sentence = told(&unknown, &first("osc-result"));
        assert!(sentence.contains("it has small"), "{sentence}");
        let mut silent = first("osc-result");
        silent.status = None;
        let sentence = told(&json!({}), &silent);
        assert!(sentence.contains("status.cloudConfig"), "{sentence}");
    }
}
