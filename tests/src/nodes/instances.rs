//! All instances that the cloud has ever run for a cluster: an instance that was created twice shows here,
//! even after the end.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;
use tokio::{process::Command, task::JoinSet};

use crate::landscape::Landscape;

/// Namespace of the instances' pods.
pub(super) const CLOUD: &str = "cloud";
/// Prefix of an instance's labels and annotations.
pub(super) const MARKS: &str = "local.provider.extensions.gardener.cloud";

/// Records the instances of a cluster since the begin of the watch.
pub struct Instances {
    pods: Api<Pod>,
    labelled: String,
    seen: Arc<Mutex<BTreeSet<String>>>,
    _watching: JoinSet<()>,
}

impl Instances {
    /// Begins.
    pub async fn watch(landscape: &Landscape, technical_id: &str) -> Result<Self> {
        let pods: Api<Pod> = Api::namespaced(landscape.cloud().await?, CLOUD);
        let labelled = selector(technical_id);
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let mut watching = JoinSet::new();
        let (watched, told) = (pods.clone(), Arc::clone(&seen));
        let config = watcher::Config::default().labels(&labelled);
        watching.spawn(async move {
            watcher(watched, config)
                .default_backoff()
                .applied_objects()
                .for_each(|pod| {
                    let mut all = told.lock().unwrap_or_else(PoisonError::into_inner);
                    // The UID, not the name: an instance may be recreated under the same name.
                    all.extend(pod.iter().filter_map(ResourceExt::uid));
                    futures::future::ready(())
                })
                .await;
        });
        Ok(Self {
            pods,
            labelled,
            seen,
            _watching: watching,
        })
    }

    /// The number of instances since the begin of the watch, and the present number.
    pub async fn ever_and_now(&self) -> Result<[usize; 2]> {
        let labelled = ListParams::default().labels(&self.labelled);
        let now = self.pods.list(&labelled).await?.items;
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(now.iter().filter_map(ResourceExt::uid));
        Ok([all.len(), now.len()])
    }
}

/// Selects the instances of a cluster.
pub(super) fn selector(technical_id: &str) -> String {
    format!("{MARKS}/cluster={technical_id}")
}

/// The finalizer that keeps an instance from ending.
const HOLD: &str = "e2e.repot.dev/hold";

/// Holds the instances of a cluster in a zone, or releases the instances. A held instance does not end, like
/// an EC2 instance that stays `shutting-down`.
///
/// # Errors
/// No instance is in the zone, or the cloud's cluster does not answer.
pub async fn hold(landscape: &Landscape, technical_id: &str, zone: &str, is_held: bool) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(landscape.cloud().await?, CLOUD);
    let all = pods
        .list(&ListParams::default().labels(&selector(technical_id)))
        .await?;
    let mark = format!("{MARKS}/zone");
    let in_zone = all
        .iter()
        .filter(|pod| pod.annotations().get(&mark).is_some_and(|of| of == zone));
    let names: Vec<_> = in_zone.map(ResourceExt::name_any).collect();
    ensure!(!names.is_empty(), "no instance is in zone {zone}");
    let finalizers: &[&str] = if is_held { &[HOLD] } else { &[] };
    let body = json!({"metadata": {"finalizers": finalizers}});
    for name in names {
        pods.patch(&name, &PatchParams::default(), &Patch::Merge(&body))
            .await?;
    }
    Ok(())
}

/// Stops the kubelets of a cluster's machines in a zone: the Nodes stop reporting, and the pods continue.
///
/// # Errors
/// The zone has no machine, or a kubelet cannot be stopped.
pub async fn silence(landscape: &Landscape, technical_id: &str, zone: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(landscape.cloud().await?, CLOUD);
    let pods = pods
        .list(&ListParams::default().labels(&selector(technical_id)))
        .await?
        .items;
    let mark = format!("{MARKS}/zone");
    let there: Vec<_> = pods
        .iter()
        .filter(|pod| pod.annotations().get(&mark).is_some_and(|of| of == zone))
        .collect();
    ensure!(!there.is_empty(), "no machine is in zone {zone}");
    for pod in there {
        let stopped = Command::new("kubectl")
            .args([
                "--kubeconfig",
                landscape.variable("INFRA_KUBECONFIG")?,
                "-n",
                CLOUD,
            ])
            .args(["exec", &pod.name_any(), "--", "pkill", "-STOP", "-x", "kubelet"])
            .kill_on_drop(true)
            .status();
        let stopped = stopped.await?;
        ensure!(
            stopped.success(),
            "{}: its kubelet cannot be stopped",
            pod.name_any()
        );
    }
    Ok(())
}
