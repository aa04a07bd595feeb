//! Simulates the kubelet's part of a pod's status in a cluster without nodes.
//!
//! The controllers of Deployments, StatefulSets and Jobs are real and create real Pod objects. This module
//! only writes the status that a kubelet would report, without running the pods. So a Deployment becomes
//! ready through the real controller. Pods stay unassigned, hence the API server removes pods immediately on
//! deletion.
//!
//! Such a test does not cover the processes in pods; the clusters of `make e2e` do.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Maximum attempts to write a status: a busy or stopped API server refuses the write.
const WRITES: usize = 60;
/// The pause in between.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// The simulated course of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// All containers run and are ready.
    Runs,
    /// All containers run and are not ready.
    RunsUnready,
    /// All containers end with exit code 0.
    Succeeds,
    /// As `Succeeds`, and the first container leaves this message.
    Reports(String),
    /// The first container ends with exit code 1 and this message.
    Fails(String),
    /// No status is written.
    StaysPending,
}

/// Reports on the pods of a cluster until dropped.
pub struct PlayedKubelet {
    _tasks: JoinSet<()>,
}

type Decide = Arc<dyn Fn(&Pod) -> Fate + Send + Sync>;

impl PlayedKubelet {
    /// Pods of Jobs succeed, all further pods run.
    #[must_use]
    pub fn start(client: &Client) -> Self {
        Self::with(client, usual_fate)
    }

    /// Decides for each pod, each time the pod changes. For irrelevant pods, `decide` should call
    /// [`PlayedKubelet::usual`].
    #[must_use]
    pub fn with(client: &Client, decide: impl Fn(&Pod) -> Fate + Send + Sync + 'static) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(report(client.clone(), Arc::new(decide)));
        Self { _tasks: tasks }
    }

    /// The decision of [`PlayedKubelet::start`] for a pod.
    #[must_use]
    pub fn usual(pod: &Pod) -> Fate {
        usual_fate(pod)
    }
}

fn usual_fate(pod: &Pod) -> Fate {
    let of_job = pod.owner_references().iter().any(|owner| owner.kind == "Job");
    if of_job { Fate::Succeeds } else { Fate::Runs }
}

async fn report(client: Client, decide: Decide) {
    let pods = watcher(Api::<Pod>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .applied_objects();
    pods.for_each_concurrent(8, |pod| {
        let (client, decide) = (client.clone(), decide.clone());
        async move {
            match pod {
                Ok(pod) => write(client, &pod, &decide(&pod)).await,
                // A stopped or busy API server ends the watch. The watcher starts again, with all pods.
                Err(error) => tracing::debug!(%error, "the watch of pods was interrupted"),
            }
        }
    })
    .await;
}

async fn write(client: Client, pod: &Pod, fate: &Fate) {
    if pod.metadata.deletion_timestamp.is_none()
        && let Some(status) = status(pod, fate)
    {
        let api: Api<Pod> = Api::namespaced(client, &pod.namespace().unwrap_or_default());
        let patch = Patch::Merge(json!({"metadata": {"uid": pod.uid()}, "status": status}));
        let (name, params) = (pod.name_any(), PatchParams::default());
        for _ in 0..WRITES {
            let Err(error) = api.patch_status(&name, &params, &patch).await else {
                return;
            };
            tracing::debug!(%error, pod = name, "pod status was not written");
            // The pod is gone, was replaced by a pod of the same name, or can never get this status.
            if matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 409 | 422)) {
                return;
            }
            tokio::time::sleep(WRITE_EVERY).await;
        }
    }
}

/// The status that a kubelet would report; `None` if the pod already has the status.
fn status(pod: &Pod, fate: &Fate) -> Option<Value> {
    let (phase, ready) = match fate {
        Fate::StaysPending => return None,
        Fate::Runs => ("Running", true),
        Fate::RunsUnready => ("Running", false),
        Fate::Succeeds | Fate::Reports(_) => ("Succeeded", false),
        Fate::Fails(_) => ("Failed", false),
    };
    let known = pod.status.as_ref();
    let was_ready = known
        .and_then(|status| status.conditions.as_ref())
        .is_some_and(|conditions| {
            conditions
                .iter()
                .any(|c| c.type_ == "Ready" && c.status == "True")
        });
    if known.and_then(|status| status.phase.as_deref()) == Some(phase) && was_ready == ready {
        return None;
    }
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers).enumerate();
    let containers: Vec<Value> = containers
        .map(|(i, container)| {
            json!({
                "name": container.name,
                "image": container.image,
                "imageID": "",
                "restartCount": 0,
                "ready": ready,
                "started": phase == "Running",
                "state": state(fate, i == 0),
            })
        })
        .collect();
    let conditions: Vec<Value> = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .into_iter()
        .map(|kind| {
            let holds = ready || !matches!(kind, "ContainersReady" | "Ready");
            json!({"type": kind, "status": if holds { "True" } else { "False" }})
        })
        .collect();
    let address = address(&pod.uid().unwrap_or_default());
    Some(json!({
        "phase": phase,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": conditions,
        "containerStatuses": containers,
    }))
}

fn state(fate: &Fate, first: bool) -> Value {
    match fate {
        Fate::Fails(message) if first => {
            json!({"terminated": {"exitCode": 1, "reason": "Error", "message": message}})
        }
        Fate::Reports(message) if first => {
            json!({"terminated": {"exitCode": 0, "reason": "Completed", "message": message}})
        }
        Fate::Fails(_) | Fate::Succeeds | Fate::Reports(_) => {
            json!({"terminated": {"exitCode": 0, "reason": "Completed"}})
        }
        _ => json!({"running": {}}),
    }
}

/// A stable address of a pod, as Services list the address. No process listens at the address.
fn address(uid: &str) -> String {
    let sum = uid.bytes().fold(0_u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    format!("10.250.{}.{}", (sum >> 8) % 256, sum % 254 + 1)
}
