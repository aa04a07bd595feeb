//! The reports of a third-party provider in extension objects appear in the Shoot. A real API server serves
//! as garden and seed.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "ground/context.rs"]
mod context;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use api::{
    druid::Etcd,
    extensions::{ContainerRuntime, Extension, Network, Worker},
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, find_condition},
};
use gardenlet::care;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use testkit::{ControlPlane, eventually};
use tokio::task::JoinSet;

use context::context;

const PROJECT: &str = "garden-dev";
const NAMESPACE: &str = "shoot--dev--web";
const TIME: &str = "2026-01-01T00:00:00Z";
/// For a busy machine.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_extension_objects_report_counts_towards_the_health_of_the_shoot() -> Result<()> {
    let plane = ControlPlane::start("care").await?;
    let client = plane.admin();
    let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
    testkit::apply_crds(&client, &crds).await?;
    a_shoot(&client).await?;
    let types = ["EveryNodeReady", "MachinesPoweredByWind"];
    report::<Worker>(&client, "True", &types).await?;
    report::<Network>(&client, "True", &["SystemComponentsHealthy"]).await?;
    report::<Extension>(&client, "True", &["SystemComponentsHealthy", "PortsPolished"]).await?;
    report::<ContainerRuntime>(&client, "True", &["SystemComponentsHealthy"]).await?;
    let mut running = JoinSet::new();
    let context = context(&client, &["--care-sync-period=1s", "--condition-threshold=0s"])?;
    Box::pin(a_lost_volume_is_reported_before_the_hand_over(&client, &context)).await?;
    running.spawn(care::run(Arc::new(context)));
    is(
        &client,
        "EveryNodeReady",
        ConditionStatus::True,
        "no worker pools",
    )
    .await?;
    is(
        &client,
        "SystemComponentsHealthy",
        ConditionStatus::True,
        "Nothing is kept",
    )
    .await?;

    report::<Worker>(&client, "False", &types).await?;
    is(
        &client,
        "EveryNodeReady",
        ConditionStatus::False,
        "Worker web reports: it is False.",
    )
    .await?;
    report::<Worker>(&client, "False", &types[1..]).await?;
    is(
        &client,
        "EveryNodeReady",
        ConditionStatus::True,
        "no worker pools",
    )
    .await?;
    report::<Network>(&client, "Unknown", &["SystemComponentsHealthy"]).await?;
    let unknown = "Network web reports: it is Unknown.";
    is(
        &client,
        "SystemComponentsHealthy",
        ConditionStatus::Unknown,
        unknown,
    )
    .await?;
    report::<ContainerRuntime>(&client, "False", &["SystemComponentsHealthy"]).await?;
    let worse = "ContainerRuntime web reports: it is False.";
    is(&client, "SystemComponentsHealthy", ConditionStatus::False, worse).await?;
    report::<ContainerRuntime>(&client, "True", &["SystemComponentsHealthy"]).await?;
    report::<Network>(&client, "True", &["SystemComponentsHealthy"]).await?;
    report::<Extension>(&client, "False", &["SystemComponentsHealthy"]).await?;
    let other = "Extension web reports: it is False.";
    is(&client, "SystemComponentsHealthy", ConditionStatus::False, other).await
}

/// A move may end before the next check of the shoot. The clean-up after the move deletes the Etcd with the
/// report, and the Shoot keeps the report.
async fn a_lost_volume_is_reported_before_the_hand_over(
    client: &Client,
    context: &gardenlet::Context,
) -> Result<()> {
    let shoots: Api<Shoot> = Api::namespaced(client.clone(), PROJECT);
    let etcds: Api<Etcd> = Api::namespaced(client.clone(), NAMESPACE);
    let spec = json!({"labels": {}, "etcd": {}, "backup": {}, "replicas": 1});
    let etcd = Etcd::new("etcd-main", serde_json::from_value(spec)?);
    etcds.create(&PostParams::default(), &etcd).await?;
    let loss =
        json!({"epoch": 1, "lastRevision": 832, "revision": 100_000_832, "saved": TIME, "restored": TIME});
    let condition = json!({"type": "DataComplete", "status": "False", "reason": "VolumeLost",
        "message": "etcd was restored.", "lastTransitionTime": TIME, "lastUpdateTime": TIME});
    let status = Patch::Merge(json!({"status": {"volumeLoss": loss, "conditions": [condition]}}));
    etcds
        .patch_status("etcd-main", &PatchParams::default(), &status)
        .await?;
    for is_deleted in [false, true] {
        if is_deleted {
            etcds.delete("etcd-main", &DeleteParams::default()).await?;
        }
        care::report_before_hand_over(context, &shoots.get("web").await?).await?;
        let constraints = shoots.get("web").await?.status.unwrap_or_default().constraints;
        let found = find_condition(&constraints, "DataComplete").context("the loss is not reported")?;
        assert_eq!(
            found.message, "Etcd etcd-main: etcd was restored.",
            "{is_deleted}"
        );
    }
    Ok(())
}

/// A provider reports these conditions of the object `web`.
async fn report<K>(client: &Client, status: &str, types: &[&str]) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let conditions: Vec<_> = types
        .iter()
        .map(|type_| {
            json!({"type": type_, "status": status, "reason": "R", "message": format!("it is {status}."),
            "lastTransitionTime": TIME, "lastUpdateTime": TIME})
        })
        .collect();
    let status = json!({"conditions": conditions, "state": {"of": ["the", "provider"]},
        "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "",
            "lastUpdateTime": TIME}});
    let api: Api<K> = Api::namespaced(client.clone(), NAMESPACE);
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status("web", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until the Shoot's condition is this.
async fn is(client: &Client, type_: &str, status: ConditionStatus, words: &str) -> Result<()> {
    let shoots: Api<Shoot> = Api::namespaced(client.clone(), PROJECT);
    eventually(&format!("{type_} is {status:?}"), SOON, || async {
        let found = shoots.get("web").await?.status.unwrap_or_default();
        let found = find_condition(&found.conditions, type_).context("no such condition")?;
        let is_so = |condition: &Condition| condition.status == status && condition.message.contains(words);
        anyhow::ensure!(is_so(found), "{found:?}");
        Ok(())
    })
    .await
}

/// A Shoot without nodes that was created, with an object of each kind that a third party serves.
async fn a_shoot(client: &Client) -> Result<()> {
    let core = "core.gardener.cloud/v1beta1";
    for name in [PROJECT, NAMESPACE] {
        testkit::apply(
            client,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        )
        .await?;
    }
    testkit::apply(
        client,
        json!({"apiVersion": core, "kind": "Seed", "metadata": {"name": "seed-a"},
        "spec": {"networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"}, "dns": {},
            "provider": {"type": "local", "region": "local"}}}),
    )
    .await?;
    testkit::apply(
        client,
        json!({"apiVersion": core, "kind": "Shoot", "metadata": {"name": "web", "namespace": PROJECT},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}}),
    )
    .await?;
    let shoots: Api<Shoot> = Api::namespaced(client.clone(), PROJECT);
    let status = json!({"status": {"technicalID": NAMESPACE, "uid": "u", "seedName": "seed-a",
        "lastOperation": {"type": "Create", "state": "Succeeded", "progress": 100, "description": "",
            "lastUpdateTime": TIME}}});
    shoots
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    let range = "10.3.0.0/16";
    for (kind, mut spec) in [
        (
            "Worker",
            json!({"region": "local", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE}, "pools": []}),
        ),
        ("Network", json!({"podCIDR": range, "serviceCIDR": range})),
        ("Extension", json!({})),
        (
            "ContainerRuntime",
            json!({"binaryPath": "/bin", "workerPool": {"name": "a", "selector": {}}}),
        ),
    ] {
        spec["type"] = json!("third-party");
        testkit::apply(
            client,
            json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": kind,
            "metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec}),
        )
        .await
        .context(kind)?;
    }
    Ok(())
}
