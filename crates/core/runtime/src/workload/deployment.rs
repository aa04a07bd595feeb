//! A process of a control plane as a Deployment: a single container without privileges, with files from
//! Secrets and ConfigMaps.
//!
//! Promises: a pod may only read the mounted files, write to `/tmp` and use the network. A pod has no
//! ServiceAccount token of the seed unless [`Workload::deployment_as`] adds a token. A pod is recreated
//! whenever a mounted object changes, because an annotation of the pod holds a checksum of each object. The
//! pod shows why the process does not start ([`crate::workload::rollout`]).

use std::collections::BTreeMap;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Capabilities, PodSecurityContext, SeccompProfile, SecurityContext},
};
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{Error, Result};

/// User and group of every process, as in the images.
pub const NON_ROOT: i64 = 65532;
/// The folder of mounted Secrets and ConfigMaps, each in a subfolder with the name of the object.
pub const MOUNTS: &str = "/srv/kubernetes";
/// Readable only by the group of the pod.
const MODE: i32 = 0o440;

/// One process.
pub struct Workload {
    /// Name of the Deployment and of the container, and the label `role` of the pods.
    pub name: &'static str,
    /// Image with tag.
    pub image: String,
    /// Path of the program.
    pub program: String,
    /// Flags, in a fixed order.
    pub args: Vec<String>,
    /// The health endpoints of the process.
    pub health: Health,
    /// The mounted objects, in a fixed order.
    pub files: Vec<Files>,
    /// Whether the process writes to `/tmp`.
    pub scratch: bool,
    /// Seconds between the request to stop and the kill.
    pub grace_seconds: i64,
    /// Whether the new process starts before the old process stops. False for a process with leader election:
    /// a second process would only wait.
    pub overlaps: bool,
    /// Least memory and share of a core.
    pub requests: [&'static str; 2],
}

/// The health endpoints of a process.
#[derive(Clone, Copy)]
pub struct Health {
    /// `HTTP` or `HTTPS`.
    pub scheme: &'static str,
    /// The port. The name of the container port is the scheme.
    pub port: u16,
    /// Path of the readiness probe.
    pub readiness: &'static str,
    /// Path of the liveness probe: a failure restarts the process.
    pub liveness: &'static str,
}

/// An object that is mounted at [`mounted`], by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// All of a Secret.
    Secret(&'static str),
    /// From the Secret of a certificate authority: the certificate without the key.
    Authority(&'static str),
    /// All of a ConfigMap.
    ConfigMap(&'static str),
}

/// Path of a file in a mounted Secret or ConfigMap.
#[must_use]
pub fn mounted(object: &str, file: &str) -> String {
    format!("{MOUNTS}/{object}/{file}")
}

/// The labels that select the pods of a process.
#[must_use]
pub fn labels(name: &str) -> BTreeMap<String, String> {
    [("app", "kubernetes"), ("role", name)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// Selects exactly the pods of a process.
#[must_use]
pub fn selected(name: &str) -> ListParams {
    let labels = labels(name);
    let labels: Vec<_> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    ListParams::default().labels(&labels.join(","))
}

/// The security context of a pod with this user: the pod may only read and write the pod's volumes and use
/// the network.
#[must_use]
pub fn pod_security(user: i64) -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(user != 0),
        run_as_user: Some(user),
        run_as_group: Some(user),
        fs_group: Some(user),
        // A volume with many files is not walked through on every start: that would be downtime.
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..PodSecurityContext::default()
    }
}

/// The security context for each container of the pod.
#[must_use]
pub fn container_security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        privileged: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        ..SecurityContext::default()
    }
}

impl Files {
    /// The name of the object.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Secret(name) | Self::Authority(name) | Self::ConfigMap(name) => name,
        }
    }

    fn volume(self) -> Value {
        match self {
            Self::Secret(name) => {
                json!({"name": name, "secret": {"secretName": name, "defaultMode": MODE}})
            }
            Self::Authority(name) => {
                let items = [json!({"key": "ca.crt", "path": "ca.crt"})];
                json!({"name": name, "secret": {"secretName": name, "defaultMode": MODE, "items": items}})
            }
            Self::ConfigMap(name) => {
                json!({"name": name, "configMap": {"name": name, "defaultMode": MODE}})
            }
        }
    }
}

impl Workload {
    /// The Deployment, without a namespace. `annotations`: pod annotations with a checksum of each mounted
    /// object.
    ///
    /// # Errors
    /// None with values that can be written here.
    pub fn deployment(&self, annotations: &BTreeMap<String, String>) -> Result<Deployment> {
        let mut pod_labels = labels(self.name);
        pod_labels.insert("gardener.cloud/role".into(), "controlplane".into());
        let [surge, unavailable] = if self.overlaps { [1, 0] } else { [0, 1] };
        serde_json::from_value(json!({
            "metadata": {"name": self.name, "labels": pod_labels},
            "spec": {
                "replicas": 1,
                "revisionHistoryLimit": 1,
                "selector": {"matchLabels": labels(self.name)},
                "strategy": {
                    "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
                },
                "template": {
                    "metadata": {"labels": pod_labels, "annotations": annotations},
                    "spec": self.pod(),
                },
            },
        }))
        .map_err(|error| Error::bug(format!("the Deployment {} cannot be made", self.name)).caused_by(error))
    }

    /// As [`Self::deployment`], for a process that acts in the seed: the pod has the token of this
    /// ServiceAccount in the pod's namespace.
    ///
    /// # Errors
    /// As for [`Self::deployment`].
    pub fn deployment_as(&self, account: &str, annotations: &BTreeMap<String, String>) -> Result<Deployment> {
        let mut deployment = self.deployment(annotations)?;
        let template = deployment.spec.as_mut().map(|spec| &mut spec.template);
        if let Some(pod) = template.and_then(|template| template.spec.as_mut()) {
            pod.service_account_name = Some(account.to_owned());
            pod.automount_service_account_token = Some(true);
        }
        Ok(deployment)
    }

    fn pod(&self) -> Value {
        let (mut volumes, mut mounts) = (Vec::new(), Vec::new());
        for files in &self.files {
            let name = files.name();
            volumes.push(files.volume());
            mounts.push(json!({"name": name, "mountPath": format!("{MOUNTS}/{name}"), "readOnly": true}));
        }
        if self.scratch {
            volumes.push(json!({"name": "tmp", "emptyDir": {}}));
            mounts.push(json!({"name": "tmp", "mountPath": "/tmp"}));
        }
        json!({
            // The process needs no rights in the seed.
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": self.grace_seconds,
            "securityContext": pod_security(NON_ROOT),
            "containers": [self.container(&mounts)],
            "volumes": volumes,
        })
    }

    fn container(&self, mounts: &[Value]) -> Value {
        let Health {
            scheme,
            port,
            readiness,
            liveness,
        } = self.health;
        let look = |path: &str| json!({"scheme": scheme, "path": path, "port": port});
        let [memory, cpu] = self.requests;
        json!({
            "name": self.name,
            "image": self.image,
            "command": [self.program],
            "args": self.args,
            "ports": [{"name": scheme.to_lowercase(), "containerPort": port, "protocol": "TCP"}],
            "resources": {"requests": {"memory": memory, "cpu": cpu}},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": container_security(),
            // Each second without a control plane counts: the pod becomes ready as soon as the probe
            // succeeds.
            "readinessProbe": {
                "httpGet": look(readiness), "periodSeconds": 1, "failureThreshold": 3, "timeoutSeconds": 5,
                "successThreshold": 1,
            },
            "livenessProbe": {
                "httpGet": look(liveness), "initialDelaySeconds": 30, "periodSeconds": 10, "failureThreshold": 6,
                "timeoutSeconds": 10,
            },
            "volumeMounts": mounts,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn pod(overlaps: bool) -> Value {
        let workload = Workload {
            name: "kube-scheduler",
            image: "i".into(),
            program: "/p".into(),
            args: Vec::new(),
            health: Health {
                scheme: "HTTPS",
                port: 10259,
                readiness: "/readyz",
                liveness: "/livez",
            },
            files: vec![
                Files::Secret("client"),
                Files::Authority("ca"),
                Files::ConfigMap("file"),
            ],
            scratch: true,
            grace_seconds: 5,
            overlaps,
            requests: ["64Mi", "10m"],
        };
        let deployment = workload.deployment(&[("checksum/client".to_owned(), "1".to_owned())].into());
        serde_json::to_value(deployment.unwrap()).unwrap()
    }

    /// Without this policy, an error could only report that the process crashes repeatedly.
    #[test]
    fn what_a_process_wrote_last_can_be_read_in_its_pod() {
        let container = &pod(false)["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["terminationMessagePolicy"], "FallbackToLogsOnError");
    }

    #[test]
    fn no_process_gets_the_key_of_an_authority() {
        let volumes = pod(false)["spec"]["template"]["spec"]["volumes"].clone();
        let items = json!([{"key": "ca.crt", "path": "ca.crt"}]);
        assert_eq!(volumes[1]["secret"]["items"], items);
        assert_eq!(volumes[1]["secret"]["defaultMode"], MODE);
    }

    #[test]
    fn one_that_leads_alone_stops_before_the_next_starts() {
        let update = |overlaps| pod(overlaps)["spec"]["strategy"]["rollingUpdate"].clone();
        assert_eq!(update(false), json!({"maxSurge": 0, "maxUnavailable": 1}));
        assert_eq!(update(true), json!({"maxSurge": 1, "maxUnavailable": 0}));
    }

    #[test]
    fn no_pod_has_a_privilege_or_an_account() {
        let spec = pod(false)["spec"]["template"]["spec"].clone();
        assert_eq!(spec["automountServiceAccountToken"], false);
        assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
        assert_eq!(
            spec["securityContext"]["seccompProfile"]["type"],
            "RuntimeDefault"
        );
        let may = &spec["containers"][0]["securityContext"];
        assert_eq!(may["readOnlyRootFilesystem"], true);
        assert_eq!(may["capabilities"]["drop"], json!(["ALL"]));
        assert_eq!(may["allowPrivilegeEscalation"], false);
    }
}
