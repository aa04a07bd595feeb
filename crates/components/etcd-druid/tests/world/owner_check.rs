//! The owner check of an Etcd: the values that the API server refuses, and an etcd that gets and loses the
//! check.

use anyhow::{Context, Result, ensure};
use api::druid::Etcd;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use super::{World, change, create, create_raw, gone, manifest, ready, until};

/// The owner check that the gardenlet writes.
fn usual() -> Value {
    json!({"name": "owner.web.dev.internal.example.test", "id": "seed-b", "zone": "internal.example.test", "shootUID": "7e0c"})
}

fn checks_owner(pod: &Pod) -> bool {
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice());
    let mut args = containers
        .unwrap_or_default()
        .iter()
        .flat_map(|container| container.args.iter().flatten());
    args.any(|arg| arg == "--gate-listen-address=0.0.0.0:2379")
}

/// The schema rejects an impossible check, or times that contradict each other, before any pod restarts.
async fn refused(world: &World) -> Result<()> {
    for (change, sentence) in [
        (json!({"zone": null}), "spec.backup.ownerCheck.zone"),
        (json!({"shootUID": ""}), "spec.backup.ownerCheck.shootUID"),
        (json!({"zone": "other.test"}), "name must be in zone"),
        (json!({"zone": "xample.test"}), "name must be in zone"),
        (
            json!({"authorities": ["ns.example.test:53"]}),
            "spec.backup.ownerCheck.authorities",
        ),
        (
            json!({"authorities": ["192.0.2.1"]}),
            "spec.backup.ownerCheck.authorities",
        ),
        (
            json!({"interval": "2s"}),
            "interval must be at least as long as a check may take",
        ),
        (
            json!({"timeout": "5s"}),
            "interval must be at least as long as a check may take",
        ),
        (json!({"validity": "10s"}), "validity must be at least"),
        (json!({"interval": "5s"}), "validity must be at least"),
        (json!({"fence": "22s"}), "fence must be longer than"),
        (json!({"dnsCacheTTL": "1m"}), "fence must be longer than"),
        (json!({"drift": -1}), "spec.backup.ownerCheck.drift"),
        (
            json!({"eventsGate": {"port": 0, "target": "etcd-events-client:2379"}}),
            "spec.backup.ownerCheck.eventsGate.port",
        ),
        (
            json!({"eventsGate": {"port": 2381, "target": "etcd-events-client"}}),
            "spec.backup.ownerCheck.eventsGate.target",
        ),
        (
            json!({"eventsGate": {"port": 2381}}),
            "spec.backup.ownerCheck.eventsGate.target",
        ),
        (json!({"silence": "Maybe"}), "spec.backup.ownerCheck.silence"),
    ] {
        let mut manifest = manifest("etcd-main");
        let check = &mut manifest["spec"]["backup"]["ownerCheck"];
        *check = usual();
        for (key, value) in change.as_object().context("a change is an object")? {
            check[key] = value.clone();
        }
        let answer = create_raw(&world.admin, "owner", &manifest).await;
        let error = answer
            .err()
            .with_context(|| format!("{change} was accepted"))?
            .to_string();
        ensure!(error.contains(sentence), "{change}: {error}");
    }
    Ok(())
}

/// Decision 8: etcd restarts once when it gets the check, and once when it loses the check.
async fn restarted_once(world: &World) -> Result<()> {
    let (etcds, pods): (Api<Etcd>, Api<Pod>) = (world.api("owner"), world.api("owner"));
    create(&etcds, &manifest("etcd-main")).await?;
    ready(&etcds).await?;
    let mut before = pods.get("etcd-main-0").await?;
    ensure!(!checks_owner(&before));
    let all = json!({
        "name": "Owner.web.dev.internal.example.test.", "authorities": ["192.0.2.1:53", "[2001:db8::1]:53"],
        "interval": "5s", "validity": "15s", "fence": "30s", "propagation": "0s", "drift": 0, "silence": "Tolerate",
    });
    // A merge patch would keep these fields, so the patch removes them.
    let mut again = usual();
    for field in [
        "authorities",
        "interval",
        "validity",
        "fence",
        "propagation",
        "drift",
        "silence",
    ] {
        again[field] = Value::Null;
    }
    for (check, reason) in [
        (usual(), Some("NeverAnswered")),
        (all, Some("OutlastsAnyFence")),
        // No process with these settings has reported yet.
        (again, Some("OutlastsAnyFence")),
        (Value::Null, None),
    ] {
        let checks = reason.is_some();
        change(&etcds, json!({"spec": {"backup": {"ownerCheck": check}}})).await?;
        let new = until(&pods, "etcd-main-0", "a pod of the new kind", |pod| {
            pod.uid() != before.uid()
                && pod.metadata.deletion_timestamp.is_none()
                && checks_owner(pod) == checks
        })
        .await?;
        let status = ready(&etcds).await?.status.context("there is a status")?;
        // The test environment does not simulate the process's ownership report.
        let verified = status.conditions.iter().find(|c| c.type_ == "OwnershipVerified");
        let said = verified.map(|c| (c.status.as_str(), c.reason.as_str()));
        ensure!(said == reason.map(|reason| ("Unknown", reason)), "{status:?}");
        let now = json!({"metadata": {"annotations": {"druid.gardener.cloud/operation": "reconcile"}}});
        change(&etcds, now).await?;
        until(&etcds, "etcd-main", "operation taken", |etcd| {
            !etcd.annotations().contains_key("druid.gardener.cloud/operation")
        })
        .await?;
        ready(&etcds).await?;
        before = pods.get("etcd-main-0").await?;
        ensure!(before.uid() == new.uid(), "etcd was restarted once more");
    }
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    gone(&etcds).await?;
    world.nothing_left("owner").await
}

pub async fn owner(world: &World) -> Result<()> {
    Box::pin(refused(world)).await?;
    Box::pin(restarted_once(world)).await
}
