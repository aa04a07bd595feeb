//! The reads of a Shoot by the controller of shoots: each pass reads the Shoot once from the garden, also a
//! pass that runs an operation and reports the progress of the operation. A real API server serves as garden
//! and seed; a proxy records the requests of the gardenlet.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::sync::Arc;

use anyhow::{Result, ensure};
use gardenlet::shoot;
use http::Method;
use kube::api::{Patch, PatchParams};
use runtime::{client::wait, clock, process::metrics::Metrics};
use serde_json::{Value, json};
use testkit::{Asked, Relay, apply, eventually};
use tokio::task::JoinSet;

use ground::{CORE, Ground, NAMESPACE, PROJECT, SOON, context::context};

/// Passes that the test starts by edits of the Shoot.
const EDITS: usize = 3;

/// A gardenlet, with its requests and metrics.
struct ObservedGardenlet {
    relay: Relay,
    metrics: Metrics,
    _tasks: JoinSet<()>,
}

impl ObservedGardenlet {
    async fn start(ground: &Ground) -> Result<Self> {
        let relay = Relay::start(ground.client.clone()).await?;
        let context = context(&relay.client().await?, &[])?;
        let metrics = context.metrics.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(Box::pin(shoot::run(Arc::new(context))));
        Ok(Self {
            relay,
            metrics,
            _tasks: tasks,
        })
    }

    /// The passes of the controller of shoots that have ended.
    fn passes(&self) -> usize {
        let text = self.metrics.encode();
        let counts = text.lines().filter_map(|line| {
            let labels = line.strip_prefix("controller_reconciles_total{")?;
            let is_of_shoots = labels.contains("controller=\"shoot\"");
            let count = labels.rsplit(' ').next()?;
            is_of_shoots.then(|| count.parse::<usize>().ok())?
        });
        counts.sum()
    }

    fn requests(&self, is_counted: impl Fn(&Asked) -> bool) -> usize {
        self.relay
            .asked()
            .iter()
            .filter(|asked| is_counted(asked))
            .count()
    }

    /// Reads of the Shoot `web`, without lists and watches.
    fn reads(&self) -> usize {
        self.requests(|asked| asked.method == Method::GET && path(asked) == shoot_path())
    }

    /// Writes of the status of the Shoot `web`.
    fn reports(&self) -> usize {
        let status = format!("{}/status", shoot_path());
        self.requests(|asked| asked.method == Method::PATCH && path(asked) == status)
    }

    /// Waits until at least so many passes have ended, with a single read each. A pass that has not ended may
    /// have read already.
    async fn until_passes(&self, count: usize) -> Result<()> {
        eventually("each pass has read the Shoot once", SOON, || {
            let (passes, reads) = (self.passes(), self.reads());
            std::future::ready(if passes >= count && passes == reads {
                Ok(())
            } else {
                Err(format!("{passes} passes have ended after {reads} reads"))
            })
        })
        .await
    }
}

fn shoot_path() -> String {
    format!("/apis/{CORE}/namespaces/{PROJECT}/shoots/web")
}

fn path(asked: &Asked) -> &str {
    asked.path.split('?').next().unwrap_or_default()
}

#[test]
fn a_pass_without_an_operation_reads_the_shoot_once() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("reads-idle", false)).await?;
        let written = apply(&ground.client, the_shoot(&json!({}))).await?;
        let last = json!({"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "",
            "lastUpdateTime": clock::now_k8s()});
        let status = json!({"status": {"technicalID": NAMESPACE, "uid": written.metadata.uid, "seedName": "seed-a",
            "observedGeneration": written.metadata.generation, "hibernated": false, "lastOperation": last}});
        let params = PatchParams::default();
        ground
            .shoots
            .patch_status("web", &params, &Patch::Merge(status))
            .await?;
        let gardenlet = ObservedGardenlet::start(&ground).await?;
        gardenlet.until_passes(1).await?;
        for number in 0..EDITS {
            let before = gardenlet.passes();
            let edit = json!({"metadata": {"annotations": {"test.example/edit": number.to_string()}}});
            ground.shoots.patch("web", &params, &Patch::Merge(edit)).await?;
            gardenlet.until_passes(before + 1).await?;
        }
        ensure!(gardenlet.reports() == 0, "the Shoot needs no operation");
        Ok(())
    })
}

/// The writes of the status use the version that the pass has read or written last. No other process writes
/// the Shoot during the deletion.
#[test]
fn a_pass_with_an_operation_reads_the_shoot_once() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("reads-operation", false)).await?;
        ground.create_and_delete(the_shoot(&json!({}))).await?;
        let gardenlet = ObservedGardenlet::start(&ground).await?;
        testkit::measured("the object is gone", SOON, |bound| {
            wait::until_gone(&ground.shoots, "web", bound)
        })
        .await?;
        gardenlet.until_passes(1).await?;
        let reports = gardenlet.reports();
        // The begin, the progress, and the end.
        ensure!(reports >= 3, "only {reports} reports of a deletion");
        Ok(())
    })
}

fn the_shoot(annotations: &Value) -> Value {
    json!({"apiVersion": CORE, "kind": "Shoot",
        "metadata": {"name": "web", "namespace": PROJECT, "finalizers": ["gardener"], "annotations": annotations},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}})
}
