//! The cloud-controller-manager as a Deployment beside a shoot's control plane: what it is, from what the ControlPlane says.
//!
//! A pod is made anew whenever something that it mounts changes: a checksum of each is an annotation of the pod. So a change of
//! the file of leader migration, which is read at the start only, takes effect.

use std::collections::BTreeMap;

use api::extensions::CloudControllerManager;
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::ConfigMap},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use runtime::{Error, Result};
use serde_json::{Value, json};

/// Name of the Deployment and of its container. The Secret with the kubeconfig of the shoot, which a gardenlet makes, is called
/// the same; so is its main lock in the shoot, which it has the right to.
pub const NAME: &str = "cloud-controller-manager";
/// The Secret with the account in the cloud.
pub const CLOUD_PROVIDER: &str = "cloudprovider";
/// The ConfigMap with the file of leader migration. It is there only while controllers move.
pub const MIGRATION: &str = "cloud-controller-manager-leader-migration";
/// Its key.
const FILE: &str = "leader-migration.yaml";
/// Secrets that it mounts.
pub const SECRETS: [&str; 2] = [NAME, CLOUD_PROVIDER];

/// Where Secrets and ConfigMaps are mounted, each under its name.
const MOUNTS: &str = "/srv/kubernetes";
/// User and group of the process, as in the image.
const NON_ROOT: i64 = 65532;
/// Where it says whether it lives.
const HEALTH_PORT: u16 = 8080;
/// Readable by the group that the pod runs in, and by nobody else.
const MODE: i32 = 0o440;

/// The labels by which its pods are found.
#[must_use]
pub fn labels() -> BTreeMap<String, String> {
    [("app", "kubernetes"), ("role", NAME)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// The file of leader migration; none where no controller moves.
#[must_use]
pub fn migration_file(wanted: Option<&CloudControllerManager>) -> Option<ConfigMap> {
    let migration = wanted?.leader_migration.as_ref()?;
    Some(ConfigMap {
        metadata: ObjectMeta {
            name: Some(MIGRATION.into()),
            ..ObjectMeta::default()
        },
        data: Some([(FILE.to_owned(), migration.file())].into()),
        ..ConfigMap::default()
    })
}

/// The Deployment. `cluster`: the shoot's technical id. `checksums`: of what is mounted, by the names of the objects.
pub fn deployment(
    image: &str,
    cluster: &str,
    wanted: Option<&CloudControllerManager>,
    checksums: &BTreeMap<&str, String>,
) -> Result<Deployment> {
    let mut pod_labels = labels();
    pod_labels.insert("gardener.cloud/role".into(), "controlplane".into());
    let annotations: BTreeMap<_, _> = checksums
        .iter()
        .map(|(name, sum)| (format!("checksum/{name}"), sum))
        .collect();
    let deployment = json!({
        "metadata": {"name": NAME, "labels": pod_labels},
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 1,
            "selector": {"matchLabels": labels()},
            // One at a time: it leads alone, and a second one would only wait.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": pod_labels, "annotations": annotations},
                "spec": pod(image, &arguments(cluster, wanted), wanted),
            },
        },
    });
    serde_json::from_value(deployment)
        .map_err(|e| Error::bug(format!("the Deployment {NAME} cannot be made: {e}")))
}

/// Its flags, in a fixed order.
fn arguments(cluster: &str, wanted: Option<&CloudControllerManager>) -> Vec<String> {
    let mut arguments = vec![
        format!("--kubeconfig={MOUNTS}/{NAME}/kubeconfig"),
        format!("--cloud-credentials={MOUNTS}/{CLOUD_PROVIDER}"),
        format!("--cluster-name={cluster}"),
        format!("--health-address=0.0.0.0:{HEALTH_PORT}"),
        format!("--leader-elect-resource-name={NAME}"),
    ];
    if let Some(ranges) = wanted.and_then(|wanted| wanted.node_ipam.as_ref()) {
        arguments.extend([
            "--allocate-node-cidrs".to_owned(),
            format!("--cluster-cidr={}", ranges.cluster_cidr),
            format!("--service-cluster-ip-range={}", ranges.service_cluster_ip_range),
        ]);
    }
    if wanted.is_some_and(|wanted| wanted.leader_migration.is_some()) {
        arguments.extend([
            "--enable-leader-migration".to_owned(),
            format!("--leader-migration-config={MOUNTS}/{MIGRATION}/{FILE}"),
        ]);
    }
    arguments
}

fn pod(image: &str, arguments: &[String], wanted: Option<&CloudControllerManager>) -> Value {
    let mut volumes: Vec<_> = SECRETS
        .iter()
        .map(|name| json!({"name": name, "secret": {"secretName": name, "defaultMode": MODE}}))
        .collect();
    if wanted.is_some_and(|wanted| wanted.leader_migration.is_some()) {
        volumes.push(json!({"name": MIGRATION, "configMap": {"name": MIGRATION, "defaultMode": MODE}}));
    }
    let mounts: Vec<_> = volumes
        .iter()
        .filter_map(|volume| volume["name"].as_str())
        .map(|name| json!({"name": name, "mountPath": format!("{MOUNTS}/{name}"), "readOnly": true}))
        .collect();
    let probe = |path: &str| json!({"path": path, "port": HEALTH_PORT});
    json!({
        // The rights in the seed are none of its business.
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        // It gives its locks back at once when it is told to stop.
        "terminationGracePeriodSeconds": 15,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": NON_ROOT, "runAsGroup": NON_ROOT, "fsGroup": NON_ROOT,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": NAME,
            "image": image,
            "command": ["/cloud-controller-manager-local"],
            "args": arguments,
            "ports": [{"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"}],
            "resources": {"requests": {"memory": "32Mi", "cpu": "10m"}},
            // Why it does not start is read there, see runtime::rollout.
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            },
            "readinessProbe": {"httpGet": probe("/readyz"), "periodSeconds": 1, "failureThreshold": 3, "timeoutSeconds": 5},
            "livenessProbe": {
                "httpGet": probe("/healthz"), "initialDelaySeconds": 30, "periodSeconds": 10, "failureThreshold": 6,
                "timeoutSeconds": 10,
            },
            "volumeMounts": mounts,
        }],
        "volumes": volumes,
    })
}

#[cfg(test)]
#[path = "cloud_controller_manager_tests.rs"]
mod tests;
