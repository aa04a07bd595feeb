//! Probes in the cloud: pods that the cloud treats as machines of a cluster in a zone, because of the same
//! labels and annotations. The probes show the packets that the network of the zone lets pass.
//!
//! The machine controllers of a shoot would delete a probe with the shoot's name, but only after two
//! observations, a quarter of an hour apart.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
    runtime::wait::conditions,
};
use serde_json::json;
use tokio::process::Command;

use super::instances::{CLOUD, MARKS};
use crate::{landscape::Landscape, watched};

/// Longer than a pod takes to start with a present image, or to end.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// Longer than a program takes to be started in a pod.
const RUN_WITHIN: Duration = Duration::from_secs(60);
/// Maximum attempts for an answer that must come.
const TRIES: usize = 3;
/// Echoes a line, and waits for the echo: for longer than a busy machine may stand still.
const ASK: &str = "timeout 15 bash -c 'exec 3<>/dev/tcp/$0/8080 && echo hello >&3 && read -r said <&3 && [ \"$said\" = hello ]' \"$0\" \
  2>/dev/null && echo yes || echo no";

/// A probe that runs.
pub struct Probe {
    kubeconfig: String,
    pods: Api<Pod>,
    name: String,
    /// The address of the probe.
    pub address: String,
}

impl Probe {
    /// Starts a probe that the cloud treats as a machine of this cluster in this zone.
    ///
    /// # Errors
    /// The probe does not start.
    pub async fn start(landscape: &Landscape, name: &str, technical_id: &str, zone: &str) -> Result<Self> {
        let pods: Api<Pod> = Api::namespaced(landscape.cloud().await?, CLOUD);
        let pod = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {format!("{MARKS}/cluster"): technical_id},
                "annotations": {format!("{MARKS}/zone"): zone, format!("{MARKS}/instance"): name}},
            "spec": {
                "nodeSelector": {format!("zone.{MARKS}/{zone}"): "true"},
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "probe", "image": "repot/machine:dev", "imagePullPolicy": "IfNotPresent",
                    "command": ["socat", "TCP-LISTEN:8080,fork,reuseaddr", "EXEC:cat"],
                    "readinessProbe": {"exec": {"command": ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080"]}, "periodSeconds": 1},
                }],
            },
        }))?;
        pods.create(&PostParams::default(), &pod).await?;
        let pod = watched::until(&pods, name, READY_WITHIN, listens)
            .await
            .context("the probe does not listen")?;
        let address = pod.and_then(|pod| pod.status?.pod_ip);
        Ok(Self {
            kubeconfig: landscape.variable("INFRA_KUBECONFIG")?.to_owned(),
            pods,
            name: name.to_owned(),
            address: address.with_context(|| format!("the probe {name} has no address"))?,
        })
    }

    /// Whether this probe gets an answer from `other`. The command arrives through the kubelet, without the
    /// pod's network.
    ///
    /// # Errors
    /// The command cannot run.
    pub async fn reaches(&self, other: &Self) -> Result<bool> {
        let ran = Command::new("kubectl")
            .args([
                "--kubeconfig",
                &self.kubeconfig,
                "-n",
                CLOUD,
                "exec",
                &self.name,
                "--",
            ])
            .args(["bash", "-c", ASK, &other.address])
            .kill_on_drop(true)
            .output();
        let ran = testkit::timeout(RUN_WITHIN, ran).await.context("exec hangs")??;
        match String::from_utf8_lossy(&ran.stdout).trim() {
            "yes" => Ok(true),
            "no" => Ok(false),
            said => bail!("{}: {said:?} {}", self.name, String::from_utf8_lossy(&ran.stderr)),
        }
    }

    /// Whether the probes reach each other in both directions.
    ///
    /// # Errors
    /// Only one direction works.
    pub async fn exchanges_with(&self, other: &Self) -> Result<bool> {
        match tokio::try_join!(self.reaches(other), other.reaches(self))? {
            (there, back) if there == back => Ok(there),
            (there, back) => bail!("{} -> {}: {there}, back: {back}", self.name, other.name),
        }
    }

    /// Checks that the probes reach each other. A late answer on a busy machine is requested again; a closed
    /// network stays closed.
    ///
    /// # Errors
    /// No answer after all attempts.
    pub async fn meets(&self, other: &Self) -> Result<()> {
        let mut last = self.exchanges_with(other).await;
        for _ in 1..TRIES {
            if matches!(last, Ok(true)) {
                return Ok(());
            }
            last = self.exchanges_with(other).await;
        }
        let met = last?;
        ensure!(met, "{} and {} exchange nothing", self.name, other.name);
        Ok(())
    }

    /// Removes the probe.
    ///
    /// # Errors
    /// The probe does not end.
    pub async fn remove(self) -> Result<()> {
        let uid = self.pods.get(&self.name).await?.uid().unwrap_or_default();
        self.pods.delete(&self.name, &DeleteParams::default()).await?;
        watched::until(&self.pods, &self.name, READY_WITHIN, conditions::is_deleted(&uid))
            .await
            .context("the probe does not go")?;
        Ok(())
    }
}

fn listens(pod: Option<&Pod>) -> bool {
    let status = pod.and_then(|pod| pod.status.as_ref());
    let mut conditions = status
        .into_iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|one| one.type_ == "Ready" && one.status == "True")
}
