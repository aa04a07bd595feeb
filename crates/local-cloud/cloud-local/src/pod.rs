//! An instance as a pod: pure.

use api::meta::ErrorCode;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use runtime::{Error, Result};
use serde_json::json;

/// Label with the cluster: the shoot's technical id.
pub(crate) const CLUSTER: &str = "local.provider.extensions.gardener.cloud/cluster";
/// Annotation with the instance's name, because the name can be longer than a label.
pub(crate) const NAME: &str = "local.provider.extensions.gardener.cloud/instance";
/// Annotation with the instance's zone.
pub(crate) const ZONE: &str = "local.provider.extensions.gardener.cloud/zone";
/// Annotation with the instance's region.
pub(crate) const REGION: &str = "local.provider.extensions.gardener.cloud/region";
/// Annotation with the instance's size.
pub(crate) const TYPE: &str = "local.provider.extensions.gardener.cloud/type";
/// Key of the Secret with the user data, and name of the mounted file.
pub(crate) const USER_DATA: &str = "userData";
/// Label of the nodes of the cluster that simulates the cloud, for each zone of a node. So a single node can
/// simulate several zones.
const ZONE_LABEL: &str = "zone.local.provider.extensions.gardener.cloud";
/// The folder of these nodes for an archive with the images that instances need and cannot pull.
const IMAGES: &str = "/var/lib/machine-images";
const BOOT: &str = include_str!("boot.sh");

/// A request for an instance.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The name of the instance and of the later Node.
    pub name: &'a str,
    /// The zone.
    pub zone: &'a str,
    /// The region.
    pub region: &'a str,
    /// The size.
    pub type_: &'a str,
    /// The system image: an image with systemd, containerd and kubelet.
    pub image: &'a str,
    /// A shell script that is run as root when the system is up.
    pub user_data: &'a str,
}

impl Launch<'_> {
    pub(crate) fn check(&self) -> Result<()> {
        for (what, value) in [
            ("a name", self.name),
            ("a zone", self.zone),
            ("an image", self.image),
        ] {
            if value.is_empty() || value.contains('/') && what != "an image" {
                return Err(Error::config(
                    ErrorCode::ErrConfigurationProblem,
                    format!(
                        "an instance needs {what} without slashes, and {value:?} was given: correct the machine class"
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// Name of the pod. Two clusters may have instances of the same name.
pub(crate) fn name_of(cluster: &str, instance: &str) -> String {
    format!("{cluster}.{instance}")
}

/// The instance's id, derived from the pod's UID and thus never reused.
pub(crate) fn id_of(pod: &impl ResourceExt) -> String {
    format!("i-{}", pod.uid().unwrap_or_default())
}

/// An annotation from the creation of the pod.
pub(crate) fn read_annotation(pod: &impl ResourceExt, key: &str) -> String {
    pod.annotations().get(key).cloned().unwrap_or_default()
}

/// The address of the pod; `None` before the assignment.
pub(crate) fn address_of(pod: &Pod) -> Option<String> {
    pod.status.as_ref()?.pod_ip.clone().filter(|ip| !ip.is_empty())
}

/// The reason why the pod does not start.
pub(crate) fn trouble_of(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let waiting = status
        .container_statuses
        .iter()
        .flatten()
        .find_map(|container| container.state.as_ref()?.waiting.as_ref());
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    match (waiting, unscheduled) {
        (Some(waiting), _) => Some(format!(
            "{}: {}",
            waiting.reason.as_deref().unwrap_or("waiting"),
            waiting.message.as_deref().unwrap_or_default()
        )),
        (None, Some(unscheduled)) => unscheduled.message.clone(),
        (None, None) => None,
    }
}

/// The pod of an instance. The pod is privileged, because the pod simulates a whole machine that runs
/// containers.
pub(crate) fn build_pod(cluster: &str, launch: &Launch<'_>) -> Result<Pod> {
    let in_memory = json!({"medium": "Memory"});
    let volumes = [
        // Not on the container's own overlay, because an overlay cannot lie on an overlay.
        (
            "containerd",
            "/var/lib/containerd",
            json!({"emptyDir": {}}),
            false,
        ),
        ("kubelet", "/var/lib/kubelet", json!({"emptyDir": {}}), false),
        ("run", "/run", json!({"emptyDir": in_memory}), false),
        ("tmp", "/tmp", json!({"emptyDir": in_memory}), false),
        (
            "modules",
            "/lib/modules",
            json!({"hostPath": {"path": "/lib/modules"}}),
            true,
        ),
        (
            "images",
            "/images",
            json!({"hostPath": {"path": IMAGES, "type": "DirectoryOrCreate"}}),
            true,
        ),
        (
            "user-data",
            "/user-data",
            json!({"secret": {"secretName": name_of(cluster, launch.name), "defaultMode": 0o400}}),
            true,
        ),
    ];
    let mounts: Vec<_> = volumes
        .iter()
        .map(|(name, path, _, read_only)| json!({"name": name, "mountPath": path, "readOnly": read_only}))
        .collect();
    let volumes: Vec<_> = volumes
        .iter()
        .map(|(name, _, source, _)| {
            let mut volume = source.clone();
            volume["name"] = json!(name);
            volume
        })
        .collect();
    let made = json!({
        "metadata": {
            "name": name_of(cluster, launch.name),
            "labels": {CLUSTER: cluster},
            "annotations": {NAME: launch.name, ZONE: launch.zone, REGION: launch.region, TYPE: launch.type_},
        },
        "spec": {
            "nodeSelector": {format!("{ZONE_LABEL}/{}", launch.zone): "true"},
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            // A simulated power cut: no process of an instance may outlive the instance.
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "machine",
                "image": launch.image,
                "imagePullPolicy": "IfNotPresent",
                // systemd writes to the console.
                "tty": true,
                "command": ["/bin/bash", "-c", "eval \"$BOOT\""],
                "env": [{"name": "container", "value": "docker"}, {"name": "BOOT", "value": BOOT}],
                "resources": {"requests": {"cpu": "50m", "memory": "200Mi"}},
                "securityContext": {"privileged": true},
                "volumeMounts": mounts,
            }],
            "volumes": volumes,
        },
    });
    serde_json::from_value(made).map_err(|e| Error::bug("an instance's pod is none").caused_by(e))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LAUNCH: Launch<'_> = Launch {
        name: "pool-a-1",
        zone: "a",
        region: "local",
        type_: "small",
        image: "repot/machine:dev",
        user_data: "true",
    };

    #[test]
    fn a_pod_stands_in_its_zone_and_carries_whose_it_is() {
        let pod = build_pod("shoot--dev--web", &LAUNCH).unwrap();
        assert_eq!(pod.name_any(), "shoot--dev--web.pool-a-1");
        assert_eq!(pod.labels()[CLUSTER], "shoot--dev--web");
        let selector = pod.spec.unwrap().node_selector.unwrap();
        assert_eq!(selector[&format!("{ZONE_LABEL}/a")], "true");
    }

    #[test]
    fn a_launch_without_a_zone_is_refused() {
        for wrong in [
            Launch { zone: "", ..LAUNCH },
            Launch {
                zone: "a/b",
                ..LAUNCH
            },
            Launch { image: "", ..LAUNCH },
        ] {
            assert_eq!(
                wrong.check().unwrap_err().codes(),
                [ErrorCode::ErrConfigurationProblem]
            );
        }
        LAUNCH.check().unwrap();
    }

    #[test]
    fn why_it_does_not_start_is_told() {
        let pod = |status| serde_json::from_value::<Pod>(json!({"metadata": {}, "status": status})).unwrap();
        let unscheduled =
            pod(json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}]}));
        assert_eq!(trouble_of(&unscheduled).as_deref(), Some("0/1 nodes"));
        let pulling = pod(
            json!({"containerStatuses": [{"name": "machine", "image": "", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}]}),
        );
        assert_eq!(trouble_of(&pulling).as_deref(), Some("ErrImagePull: not found"));
        assert_eq!(
            address_of(&pod(json!({"podIP": "10.0.0.1"}))).as_deref(),
            Some("10.0.0.1")
        );
    }
}
