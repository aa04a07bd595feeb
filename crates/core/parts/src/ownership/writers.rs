//! The processes that write to a shoot: kube-apiserver, kube-scheduler, and every controller manager. While
//! such a process is left, the data of etcd are not final (R7-50). No such process may restart without a
//! request (R7-54).
//!
//! The check before a hand-over reads all pods of the namespace. A pod counts by owner, name and mounts. A
//! user can remove each label. The ReplicaSet then releases the pod, and the pod runs on.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment,
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{Pod, Volume},
};
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Error, Result,
    client::{Cluster, apply},
    error::Explain,
    workload::{rollout::Rollout, selected},
};

use crate::{
    Residency,
    etcd::{ended, etcds::MAIN},
    secrets::config::{
        CLOUD_CONTROLLER_MANAGER, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER,
        MACHINE_CONTROLLER_MANAGER,
    },
    task::{ExternalSystems, NONE},
    verbs::{Destroy, Tasks},
};

/// Writers that the gardenlet deploys, in the order of the stop.
const OWN: [&str; 3] = [KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER, KUBE_APISERVER];

/// All writers, and the autoscalers that could start the pods again.
#[derive(Debug)]
pub struct Writers;

impl Destroy for Writers {
    const TASKS: Tasks = [
        "Deleting kube-apiserver deployment",
        "Waiting until kube-apiserver has been deleted",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn destroy(residency: &Residency) -> Result<()> {
        let api: Api<HorizontalPodAutoscaler> = residency.seed.namespaced(&residency.namespace);
        for scaler in scalers(residency).await? {
            apply::delete(&api, &scaler).await?;
        }
        for name in OWN {
            residency.rollout(name).delete().await?;
        }
        Ok(())
    }

    /// Waits until no process is left that could write to etcd.
    async fn gone(residency: &Residency) -> Result<()> {
        let within = residency.settings.timeouts.kube_apiserver;
        for name in OWN {
            residency.rollout(name).wait_until_gone(within).await?;
        }
        Ok(())
    }
}

impl Writers {
    /// "Making sure that nothing writes to the shoot any more": the condition for a hand-over. Checks the
    /// present objects, not the earlier requests, because a user or controller may have started a process
    /// again.
    pub async fn check_gone(residency: &Residency) -> Result<()> {
        let pods: Api<Pod> = residency.seed.namespaced(&residency.namespace);
        let list = pods.list(&ListParams::default()).await;
        let pods = list.context("could not list the pods of the shoot")?.items;
        let deployments: Api<Deployment> = residency.seed.namespaced(&residency.namespace);
        let list = deployments.list(&ListParams::default()).await;
        let deployments = list.context("could not list Deployments")?.items;
        let left = left(&pods, &deployments, &scalers(residency).await?);
        if left.is_empty() {
            return Ok(());
        }
        Err(Error::transient(format!(
            "the shoot is not handed over while something may write to it: {} in namespace {}",
            left.join(", "),
            residency.namespace
        )))
    }
}

impl Residency {
    pub(crate) fn rollout<'n>(&self, name: &'n str) -> Rollout<'n> {
        Rollout::new(&self.seed, &self.namespace, name, selected(name))
    }

    /// Waits until exactly the desired pods run and are ready.
    pub(crate) async fn component_ready(&self, name: &str, timeout: Duration) -> Result<()> {
        self.rollout(name).wait_until_done(None, timeout).await
    }

    /// Waits until no pod of the component runs any more, including terminating pods.
    pub(crate) async fn component_stopped(&self, name: &str, timeout: Duration) -> Result<()> {
        self.rollout(name).wait_until_stopped(timeout).await
    }

    pub(crate) async fn pods_of(&self, name: &str) -> Result<Vec<Pod>> {
        let api: Api<Pod> = self.seed.namespaced(&self.namespace);
        Ok(api
            .list(&selected(name))
            .await
            .context("could not list pods")?
            .items)
    }
}

/// Names of the autoscalers that scale a writer.
async fn scalers(residency: &Residency) -> Result<Vec<String>> {
    let api: Api<HorizontalPodAutoscaler> = residency.seed.namespaced(&residency.namespace);
    let scalers = api
        .list(&ListParams::default())
        .await
        .context("could not list HorizontalPodAutoscalers")?;
    Ok(scalers
        .items
        .iter()
        .filter(|scaler| scales_a_writer(scaler))
        .map(ResourceExt::name_any)
        .collect())
}

fn scales_a_writer(scaler: &HorizontalPodAutoscaler) -> bool {
    let target = scaler.spec.as_ref().map(|spec| &spec.scale_target_ref);
    target.is_some_and(|target| target.kind == "Deployment" && is_writer(&target.name))
}

/// Deployments that write to the shoot or to the cloud, by their names in the suite and in the extension
/// contract. All further Deployments of an extension end with the extension object.
const WRITERS: [&str; 5] = [
    KUBE_APISERVER,
    KUBE_SCHEDULER,
    KUBE_CONTROLLER_MANAGER,
    CLOUD_CONTROLLER_MANAGER,
    MACHINE_CONTROLLER_MANAGER,
];

fn is_writer(deployment: &str) -> bool {
    WRITERS.contains(&deployment)
}

/// The owner of a pod decides: a ReplicaSet has the name of its Deployment and a part more. Without an owner
/// the name of the pod decides: a Deployment adds at most two parts.
fn is_pod_of_writer(pod: &Pod) -> bool {
    if let Some(owner) = pod
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true))
    {
        let deployment = match owner.name.rsplit_once('-') {
            Some((deployment, _)) if owner.kind == "ReplicaSet" => deployment,
            _ => owner.name.as_str(),
        };
        return is_writer(deployment);
    }
    let name = pod.name_any();
    let is_of = |writer: &&str| match name.strip_prefix(*writer) {
        Some("") => true,
        Some(rest) => rest.starts_with('-') && rest.matches('-').count() <= 2,
        None => false,
    };
    WRITERS.iter().any(is_of)
}

/// Whether the pod can change the data of etcd-main past every component. The member of etcd-main can by
/// design. The client key does not count: tools that only read the metrics of etcd mount the key, too, and
/// must not hold back a move.
fn mounts_data_of_etcd(pod: &Pod) -> bool {
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    pod.name_any() != ended::member() && volumes.any(is_writable_data)
}

fn is_writable_data(volume: &Volume) -> bool {
    let claim = volume.persistent_volume_claim.as_ref();
    claim.is_some_and(|claim| claim.claim_name == data_claim() && claim.read_only != Some(true))
}

/// The claim of etcd-main, as the StatefulSet of etcd-druid names the claim: template and pod.
fn data_claim() -> String {
    format!("{MAIN}-{}", ended::member())
}

/// The leftovers that may write: pods that have not ended, Deployments with replicas, and autoscalers.
fn left(pods: &[Pod], deployments: &[Deployment], scalers: &[String]) -> Vec<String> {
    let has_ended = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    };
    let pods = pods.iter().filter(|pod| !has_ended(pod)).filter_map(|pod| {
        let name = pod.name_any();
        if is_pod_of_writer(pod) {
            return Some(format!("pod {name}"));
        }
        mounts_data_of_etcd(pod).then(|| format!("pod {name} with PersistentVolumeClaim {}", data_claim()))
    });
    let wants = |deployment: &Deployment| {
        deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1)
            > 0
    };
    let deployments = deployments
        .iter()
        .filter(|deployment| wants(deployment))
        .map(ResourceExt::name_any)
        .filter(|name| is_writer(name))
        .map(|name| format!("Deployment {name}"));
    let scalers = scalers
        .iter()
        .map(|name| format!("HorizontalPodAutoscaler {name}"));
    let left: BTreeSet<_> = pods.chain(deployments).chain(scalers).collect();
    left.into_iter().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::from_json;

    #[test]
    fn only_autoscalers_of_what_writes_are_deleted() {
        let scaler = |kind: &str, name: &str| -> HorizontalPodAutoscaler {
            from_json(json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": kind, "name": name}}}))
                .unwrap()
        };
        assert!(scales_a_writer(&scaler("Deployment", "kube-apiserver")));
        assert!(scales_a_writer(&scaler("Deployment", "cloud-controller-manager")));
        assert!(!scales_a_writer(&scaler("Deployment", "other")));
        assert!(!scales_a_writer(&scaler("StatefulSet", "kube-apiserver")));
    }

    #[test]
    fn a_pod_or_what_brings_one_back_holds_the_hand_over() {
        let pod = |name: &str, phase: &str| -> Pod {
            from_json(json!({"metadata": {"name": name}, "status": {"phase": phase}})).unwrap()
        };
        let deployment = |name: &str, replicas: i32| -> Deployment {
            from_json(json!({"metadata": {"name": name},
                "spec": {"replicas": replicas, "selector": {}, "template": {}}}))
            .unwrap()
        };
        assert!(left(&[pod("etcd-main-0", "Running")], &[], &[]).is_empty());
        assert!(
            left(
                &[pod("kube-scheduler-x", "Failed")],
                &[deployment("kube-scheduler", 0)],
                &[]
            )
            .is_empty()
        );
        // A pod in deletion is not gone.
        assert_eq!(
            left(&[pod("cloud-controller-manager-5", "Running")], &[], &[]),
            ["pod cloud-controller-manager-5"]
        );
        // A pod that a ReplicaSet has released: the name follows the pattern of a Deployment's ReplicaSet.
        let running = pod("machine-controller-manager-6d4b75cb6d-x2x9k", "Running");
        assert_eq!(left(&[running], &[], &[]).len(), 1);
        assert_eq!(
            left(&[], &[deployment("kube-apiserver", 1)], &["scaler".to_owned()]),
            ["Deployment kube-apiserver", "HorizontalPodAutoscaler scaler"]
        );
        // Deployments of extensions with similar names.
        for name in [
            "vpn-controller-manager",
            "kube-apiserver-proxy",
            "cloud-controller-manager-webhook",
        ] {
            assert!(left(&[], &[deployment(name, 1)], &[]).is_empty(), "{name}");
            let its_pod = pod(&format!("{name}-6d4b75cb6d-x2x9k"), "Running");
            assert!(left(&[its_pod], &[], &[]).is_empty(), "{name}");
        }
        let owned = |name: &str, kind: &str, owner: &str| -> Pod {
            let owner = json!([{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u", "controller": true}]);
            from_json(
                json!({"metadata": {"name": name, "ownerReferences": owner}, "status": {"phase": "Running"}}),
            )
            .unwrap()
        };
        let proxy = owned("kube-apiserver-proxy-0", "StatefulSet", "kube-apiserver-proxy");
        assert!(left(&[proxy], &[], &[]).is_empty());
        let writer = owned(
            "kube-apiserver-6d4b75cb6d-x2x9k",
            "ReplicaSet",
            "kube-apiserver-6d4b75cb6d",
        );
        assert_eq!(left(&[writer], &[], &[]).len(), 1);
    }

    /// A pod of any name and owner, without labels, that can change the data of etcd-main.
    #[test]
    fn a_pod_that_can_change_the_data_of_etcd_holds_the_hand_over() {
        let pod = |name: &str, volume: serde_json::Value| -> Pod {
            from_json(json!({"metadata": {"name": name}, "status": {"phase": "Running"},
                "spec": {"containers": [], "volumes": [{"name": "unrelated", "emptyDir": {}}, volume]}}))
            .unwrap()
        };
        let claim = |name: &str, read_only: bool| json!({"name": "v", "persistentVolumeClaim": {"claimName": name, "readOnly": read_only}});
        let data = Some("pod shell with PersistentVolumeClaim etcd-main-etcd-main-0");
        for (volume, expected) in [
            (claim("etcd-main-etcd-main-0", false), data),
            // A different claim, a reader of the volume, and a reader of the metrics of etcd.
            (claim("etcd-events-etcd-events-0", false), None),
            (claim("etcd-main-etcd-main-0", true), None),
            (
                json!({"name": "v", "secret": {"secretName": "etcd-client"}}),
                None,
            ),
        ] {
            let found = left(&[pod("shell", volume.clone())], &[], &[]);
            assert_eq!(found, Vec::from_iter(expected), "{volume}");
            let of_member = left(&[pod("etcd-main-0", volume.clone())], &[], &[]);
            assert!(of_member.is_empty(), "{volume}");
        }
    }
}
