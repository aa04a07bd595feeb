//! What all processes of a control plane that run as Deployments have in common, and how they are awaited.
//!
//! A pod is made anew whenever something it mounts changes: a checksum of each is an annotation of the pod.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod},
};
use kube::{Api, Resource, api::ListParams};
use runtime::{
    Cluster, Result,
    error::Context,
    rollout::{self, Rollout},
};
use serde_json::{Value, json};

use crate::{Botanist, FIELD_MANAGER, from_json};

/// User and group of every process, as in the images.
const NON_ROOT: i64 = 65532;
/// Where Secrets and ConfigMaps are mounted, each under its name.
pub(crate) const MOUNTS: &str = "/srv/kubernetes";

/// One process of the control plane.
pub(crate) struct Component {
    /// Name of the Deployment, of its container and of the binary.
    pub name: &'static str,
    /// Image with tag.
    pub image: String,
    /// Flags, in a fixed order.
    pub args: Vec<String>,
    /// Port of its HTTPS endpoint.
    pub port: u16,
    /// Path that says whether it can serve.
    pub readiness: &'static str,
    /// Path that says whether it has to be restarted.
    pub liveness: &'static str,
    /// Secrets to mount.
    pub secrets: Vec<&'static str>,
    /// Secrets of authorities of which only the certificate is mounted, not the key.
    pub authorities: Vec<&'static str>,
    /// ConfigMaps to mount.
    pub config_maps: Vec<&'static str>,
    /// Seconds between the request to stop and the kill.
    pub grace_seconds: i64,
    /// Whether the new process starts before the old one stops.
    pub overlaps: bool,
    /// Least memory and share of a core.
    pub requests: [&'static str; 2],
}

/// Path of a file in a mounted Secret or ConfigMap.
pub(crate) fn mounted(object: &str, file: &str) -> String {
    format!("{MOUNTS}/{object}/{file}")
}

/// A process that works through the shoot's API and serves nobody: one at a time, as it leads alone, and it may stop at once.
/// Its Secret with a kubeconfig has its name.
pub(crate) fn client_of_api(name: &'static str, image: String, port: u16) -> Component {
    Component {
        name,
        image,
        args: vec![
            format!("--kubeconfig={}", mounted(name, "kubeconfig")),
            "--leader-elect=true".into(),
            "--profiling=false".into(),
        ],
        port,
        readiness: "/readyz",
        liveness: "/livez",
        secrets: vec![name],
        authorities: Vec::new(),
        config_maps: Vec::new(),
        grace_seconds: 5,
        overlaps: false,
        requests: ["64Mi", "10m"],
    }
}

/// Finds the pods.
fn of_component(name: &str) -> ListParams {
    ListParams::default().labels(&format!("app=kubernetes,role={name}"))
}

/// Labels of the pods.
pub(crate) fn labels(name: &str) -> Value {
    json!({"app": "kubernetes", "role": name})
}

impl Component {
    /// The Deployment, with checksums of what is mounted.
    pub(crate) fn deployment(
        &self,
        namespace: &str,
        checksums: &BTreeMap<String, String>,
    ) -> Result<Deployment> {
        let mut pod_labels = labels(self.name);
        pod_labels["gardener.cloud/role"] = json!("controlplane");
        let strategy = if self.overlaps {
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
        } else {
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
        };
        from_json(json!({
            "metadata": {"name": self.name, "namespace": namespace, "labels": pod_labels},
            "spec": {
                "replicas": 1,
                "revisionHistoryLimit": 1,
                "selector": {"matchLabels": labels(self.name)},
                "strategy": strategy,
                "template": {
                    "metadata": {"labels": pod_labels, "annotations": checksums},
                    "spec": self.pod(),
                },
            },
        }))
    }

    fn pod(&self) -> Value {
        json!({
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": self.grace_seconds,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": NON_ROOT, "runAsGroup": NON_ROOT, "fsGroup": NON_ROOT,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": self.name,
                "image": self.image,
                "command": [format!("/usr/local/bin/{}", self.name)],
                "args": self.args,
                "ports": [{"name": "https", "containerPort": self.port, "protocol": "TCP"}],
                "resources": {"requests": {"memory": self.requests[0], "cpu": self.requests[1]}},
                // Why it does not start is read there, see runtime::rollout.
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "securityContext": {
                    "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
                // Each second without the API is one in which nobody can write: it counts as ready at once.
                "readinessProbe": {
                    "httpGet": {"scheme": "HTTPS", "path": self.readiness, "port": self.port},
                    "periodSeconds": 1, "failureThreshold": 3, "timeoutSeconds": 5, "successThreshold": 1,
                },
                "livenessProbe": {
                    "httpGet": {"scheme": "HTTPS", "path": self.liveness, "port": self.port},
                    "initialDelaySeconds": 30, "periodSeconds": 10, "failureThreshold": 6, "timeoutSeconds": 10,
                },
                "volumeMounts": self.mounts(),
            }],
            "volumes": self.volumes(),
        })
    }

    fn mounts(&self) -> Vec<Value> {
        let objects = self
            .secrets
            .iter()
            .chain(&self.authorities)
            .chain(&self.config_maps);
        let mut mounts: Vec<_> = objects
            .map(|name| json!({"name": name, "mountPath": format!("{MOUNTS}/{name}"), "readOnly": true}))
            .collect();
        mounts.push(json!({"name": "tmp", "mountPath": "/tmp"}));
        mounts
    }

    fn volumes(&self) -> Vec<Value> {
        // Readable by the group that the pod runs in, and by nobody else.
        const MODE: i32 = 0o440;
        let secrets = self
            .secrets
            .iter()
            .map(|name| json!({"name": name, "secret": {"secretName": name, "defaultMode": MODE}}));
        let config_maps = self
            .config_maps
            .iter()
            .map(|name| json!({"name": name, "configMap": {"name": name, "defaultMode": MODE}}));
        let authorities = self.authorities.iter().map(|name| {
            let items = [json!({"key": "ca.crt", "path": "ca.crt"})];
            json!({"name": name, "secret": {"secretName": name, "defaultMode": MODE, "items": items}})
        });
        let mut volumes: Vec<_> = secrets.chain(authorities).chain(config_maps).collect();
        volumes.push(json!({"name": "tmp", "emptyDir": {}}));
        volumes
    }
}

impl Botanist {
    /// Writes the Deployment of a process.
    pub(crate) async fn deploy_component(&self, component: &Component) -> Result<()> {
        let mut checksums = BTreeMap::new();
        for name in component.secrets.iter().chain(&component.authorities) {
            let data = self.secret_data(name).await?;
            checksums.insert(format!("checksum/secret-{name}"), rollout::checksum(&data));
        }
        for name in &component.config_maps {
            let api: Api<ConfigMap> = self.seed.namespaced(&self.namespace);
            let found = api
                .get_opt(name)
                .await
                .context(format_args!("could not read ConfigMap {name}"))?;
            let data = found.and_then(|found| found.data).unwrap_or_default();
            checksums.insert(format!("checksum/configmap-{name}"), rollout::checksum(&data));
        }
        let api: Api<Deployment> = self.seed.namespaced(&self.namespace);
        FIELD_MANAGER
            .apply(&api, &component.deployment(&self.namespace, &checksums)?)
            .await
            .map(|_| ())
    }

    fn rollout<'n>(&self, name: &'n str) -> Rollout<'n> {
        Rollout::new(&self.seed, &self.namespace, name, of_component(name))
    }

    /// Waits until exactly the wanted pods run and are ready.
    pub(crate) async fn wait_until_component_ready(&self, name: &str, timeout: Duration) -> Result<()> {
        self.rollout(name).wait_until_done(None, timeout).await
    }

    /// Deletes the Deployment; it is there until its pods are gone.
    pub(crate) async fn delete_component(&self, name: &str) -> Result<()> {
        self.rollout(name).delete().await
    }

    /// Waits until the Deployment and every pod of it are gone: what has no object any more may still have a process.
    pub(crate) async fn wait_until_component_deleted(&self, name: &str, timeout: Duration) -> Result<()> {
        self.rollout(name).wait_until_gone(timeout).await
    }

    /// Whether the Deployment is there and is not being deleted.
    pub(crate) async fn component_exists(&self, name: &str) -> Result<bool> {
        let api: Api<Deployment> = self.seed.namespaced(&self.namespace);
        let found = api
            .get_opt(name)
            .await
            .context(format_args!("could not read Deployment {name}"))?;
        Ok(found.is_some_and(|found| found.meta().deletion_timestamp.is_none()))
    }

    pub(crate) async fn pods_of(&self, name: &str) -> Result<Vec<Pod>> {
        let api: Api<Pod> = self.seed.namespaced(&self.namespace);
        Ok(api
            .list(&of_component(name))
            .await
            .context("could not list pods")?
            .items)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Or an error could only say that it ends again and again.
    #[test]
    fn what_a_process_wrote_last_can_be_read_in_its_pod() {
        let component = client_of_api("kube-scheduler", "i".into(), 1);
        let made = component.deployment("shoot--dev--web", &BTreeMap::new()).unwrap();
        let pod = made.spec.unwrap().template.spec.unwrap();
        assert_eq!(
            pod.containers[0].termination_message_policy.as_deref(),
            Some("FallbackToLogsOnError")
        );
    }
}
