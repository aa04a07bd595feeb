//! The controller against a real API server and the real controllers of StatefulSets, Jobs and garbage, with the rights
//! that its chart gives it and no more.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod rights;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use api::{constants::DRUID_REQUIRE_SNAPSHOT, druid::Etcd};
use clap::Parser;
use etcd_druid::flags::Flags;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{Namespace, PersistentVolumeClaim, Pod, Service, ServiceAccount},
};
use kube::{
    Api, Client, CustomResourceExt, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use runtime::{
    Process,
    apply::Object,
    wait::{self, Look},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Fate, Rollout, apply_crds};
use tokio::task::JoinSet;

use rights::ACCOUNT;

/// Far longer than any step takes: each takes well under five seconds on an idle machine with two cores, except the Job
/// controller's pauses, which are 10 s after the first failed pod, then 20 s, then 40 s. How many pods fail before the test
/// has noticed and mended the cause depends on how busy the machine is.
const SOON: Duration = Duration::from_secs(150);

const REFUSED: &str =
    "StoreCredentials: the object store refuses the credentials; put working ones into the Secret";

const EMPTY: &str =
    "SnapshotMissing: there is no data and no snapshot below shoot/etcd-main; bring the snapshots there";

struct World {
    admin: Client,
    /// Whether the bucket of namespace `past` holds nothing.
    bucket_is_empty: Arc<AtomicBool>,
    /// Whether the object store of namespace `copy` refuses its credentials.
    store_refuses: Arc<AtomicBool>,
}

#[tokio::test(flavor = "multi_thread")]
async fn etcds_in_a_seed() -> Result<()> {
    let seed = ControlPlane::start("seed").await?;
    let admin = seed.admin();
    apply_crds(&admin, &[Etcd::crd()]).await?;
    rights::give(&admin).await?;
    let world = World {
        admin: admin.clone(),
        bucket_is_empty: Arc::new(AtomicBool::new(true)),
        store_refuses: Arc::new(AtomicBool::new(true)),
    };
    let (refuses, empty) = (world.store_refuses.clone(), world.bucket_is_empty.clone());
    let _kubelet = Rollout::with(&admin, move |pod| match Rollout::usual(pod) {
        Fate::Runs if requires_snapshot(pod) && empty.load(Ordering::Relaxed) => {
            Fate::Fails(EMPTY.to_owned())
        }
        Fate::Succeeds if refuses.load(Ordering::Relaxed) => Fate::Fails(REFUSED.to_owned()),
        usual => usual,
    });
    let client = seed
        .client(ACCOUNT, &["system:serviceaccounts", "system:authenticated"])
        .await?;
    let flags = Flags::parse_from([
        "etcd-druid",
        "--etcd-image=etcd:test",
        "--etcd-backup-restore-image=backup:test",
    ]);
    let mut process = Process::new("etcd-druid");
    etcd_druid::start(&mut process, client, &flags);
    let stop = process.shutdown.clone();
    let mut running = JoinSet::new();
    running.spawn(process.run());

    for namespace in ["life", "wrong", "copy", "past"] {
        create(
            &Api::all(admin.clone()),
            &json!({"metadata": {"name": namespace}}),
        )
        .await
        .map(|_: Namespace| ())?;
    }
    tokio::try_join!(life(&world), wrong(&world), copy(&world), past(&world))?;

    stop.cancel();
    running.join_next().await.context("the process was lost")???;
    Ok(())
}

async fn life(world: &World) -> Result<()> {
    let etcds = world.api::<Etcd>("life");
    create(&etcds, &manifest("etcd-main")).await?;
    ready(&etcds).await?;
    let sets = world.api::<StatefulSet>("life");
    let set = sets.get("etcd-main").await?;
    ensure!(
        set.owner_references()
            .iter()
            .any(|owner| owner.kind == "Etcd" && owner.controller == Some(true))
    );
    for service in ["etcd-main-client", "etcd-main-peer"] {
        world.api::<Service>("life").get(service).await?;
    }

    // What others change is taken back, what they delete is made again.
    let by_hand = PatchParams {
        field_manager: Some("somebody".to_owned()),
        ..PatchParams::default()
    };
    sets.patch(
        "etcd-main",
        &by_hand,
        &Patch::Merge(json!({"spec": {"replicas": 2}})),
    )
    .await?;
    until(&sets, "etcd-main", "one replica again", |set| {
        // The third generation: made, changed by hand, taken back.
        set.metadata.generation >= Some(3) && set.spec.as_ref().unwrap().replicas == Some(1)
    })
    .await?;
    let services = world.api::<Service>("life");
    let old = services.get("etcd-main-client").await?;
    services
        .delete("etcd-main-client", &DeleteParams::default())
        .await?;
    until(&services, "etcd-main-client", "made again", |service| {
        service.uid() != old.uid()
    })
    .await?;

    // An operation is taken, a stop and a start are carried out.
    let asked = json!({"metadata": {"annotations": {"druid.gardener.cloud/operation": "reconcile"}}});
    etcds
        .patch("etcd-main", &PatchParams::default(), &Patch::Merge(asked))
        .await?;
    until(&etcds, "etcd-main", "operation taken", |etcd| {
        !etcd.annotations().contains_key("druid.gardener.cloud/operation")
    })
    .await?;
    for replicas in [0, 1] {
        change(&etcds, json!({"spec": {"replicas": replicas}})).await?;
        ready(&etcds).await?;
        let status = etcds.get("etcd-main").await?.status.unwrap();
        ensure!(status.ready_replicas == Some(replicas), "{status:?}");
        ensure!(world.pods("life").await? == usize::try_from(replicas)?);
    }

    // A suspended specification is not acted on.
    let suspend = |value: Value| json!({"metadata": {"annotations": {"druid.gardener.cloud/suspend-etcd-spec-reconcile": value}}});
    change(&etcds, suspend(json!(""))).await?;
    change(&etcds, json!({"spec": {"etcd": {"quota": "1Gi"}}})).await?;
    change(&etcds, suspend(Value::Null)).await?;
    until(&sets, "etcd-main", "the new quota", |set| {
        serde_json::to_string(set)
            .unwrap()
            .contains("--quota-backend-bytes=1073741824")
    })
    .await?;
    ready(&etcds).await?;

    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    wait::until_gone(&etcds, "etcd-main", SOON).await?;
    world.nothing_left("life").await
}

async fn wrong(world: &World) -> Result<()> {
    let etcds = world.api::<Etcd>("wrong");
    for (pointer, value, field) in [
        ("/spec/replicas", json!(-1), "spec.replicas"),
        (
            "/spec/backup/deltaSnapshotPeriod",
            json!("five minutes"),
            "spec.backup.deltaSnapshotPeriod",
        ),
        (
            "/spec/backup/garbageCollectionPolicy",
            json!("None"),
            "spec.backup.garbageCollectionPolicy",
        ),
    ] {
        let mut manifest = manifest("etcd-main");
        *manifest.pointer_mut(pointer).unwrap() = value;
        let error = create_raw(&world.admin, "wrong", &manifest)
            .await
            .unwrap_err()
            .to_string();
        ensure!(error.contains(field), "{field}: {error}");
    }

    let mut manifest = manifest("etcd-main");
    manifest["spec"]["backup"]["store"]
        .as_object_mut()
        .unwrap()
        .remove("provider");
    create(&etcds, &manifest).await?;
    let etcd = until(&etcds, "etcd-main", "an error", |etcd| {
        etcd.status.as_ref().is_some_and(|s| !s.last_errors.is_empty())
    })
    .await?;
    let status = etcd.status.unwrap();
    ensure!(
        status.last_errors[0].code == "ERR_CONFIGURATION_PROBLEM",
        "{status:?}"
    );
    ensure!(
        status.last_errors[0]
            .description
            .contains("spec.backup.store.provider is missing"),
        "{status:?}"
    );
    ensure!(
        status.ready == Some(false) && status.observed_generation.is_none(),
        "{status:?}"
    );
    ensure!(
        world
            .api::<StatefulSet>("wrong")
            .get_opt("etcd-main")
            .await?
            .is_none()
    );

    // Once it is mended it goes on by itself.
    change(&etcds, json!({"spec": {"backup": {"store": {"provider": "S3"}}}})).await?;
    ready(&etcds).await?;
    ensure!(
        etcds
            .get("etcd-main")
            .await?
            .status
            .unwrap()
            .last_errors
            .is_empty()
    );
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    wait::until_gone(&etcds, "etcd-main", SOON).await?;
    world.nothing_left("wrong").await
}

async fn copy(world: &World) -> Result<()> {
    let etcds = world.api::<Etcd>("copy");
    let mut manifest = manifest("etcd-main");
    let mut source = manifest["spec"]["backup"]["store"].clone();
    source["secretRef"]["name"] = json!("source-etcd-backup");
    source["container"] = json!("source");
    manifest["spec"]["backup"]["sourceStore"] = source;
    create(&etcds, &manifest).await?;
    let jobs = world.api::<Job>("copy");
    let failed = until(&etcds, "etcd-main", "the refusal", |etcd| {
        etcd.status.as_ref().is_some_and(|s| !s.last_errors.is_empty())
    })
    .await?;
    let status = failed.status.unwrap();
    ensure!(
        status.last_errors[0].code == "ERR_INFRA_UNAUTHENTICATED",
        "{status:?}"
    );
    ensure!(
        status.last_errors[0].description == format!("backup-restore: {REFUSED}"),
        "{status:?}"
    );
    ensure!(
        world
            .api::<StatefulSet>("copy")
            .get_opt("etcd-main")
            .await?
            .is_none()
    );

    // The cause is gone, and nobody does anything else.
    world.store_refuses.store(false, Ordering::Relaxed);
    ready(&etcds).await?;
    let status = etcds.get("etcd-main").await?.status.unwrap();
    ensure!(
        status
            .conditions
            .iter()
            .any(|c| c.type_ == "BackupsCopied" && c.status == "True"),
        "{status:?}"
    );
    ensure!(status.last_errors.is_empty(), "{status:?}");

    // Without the source it is an etcd like any other, and the Job goes first.
    change(&etcds, json!({"spec": {"backup": {"sourceStore": null}}})).await?;
    ready(&etcds).await?;
    ensure!(jobs.get_opt("etcd-copy").await?.is_none());
    // And a source is not taken any more.
    change(
        &etcds,
        json!({"spec": {"backup": {"sourceStore": manifest["spec"]["backup"]["sourceStore"]}}}),
    )
    .await?;
    until(&etcds, "etcd-main", "a refusal", |etcd| {
        etcd.status.as_ref().is_some_and(|s| {
            s.last_errors
                .iter()
                .any(|e| e.description.contains("only be copied before"))
        })
    })
    .await?;
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    wait::until_gone(&etcds, "etcd-main", SOON).await?;
    world.nothing_left("copy").await
}

/// An etcd that had data is told to have lost it, instead of starting empty.
async fn past(world: &World) -> Result<()> {
    let etcds = world.api::<Etcd>("past");
    let mut manifest = manifest("etcd-main");
    manifest["metadata"]["annotations"] = json!({(DRUID_REQUIRE_SNAPSHOT): "true"});
    create(&etcds, &manifest).await?;
    let refused = until(&etcds, "etcd-main", "the refusal", |etcd| {
        etcd.status.as_ref().is_some_and(|s| !s.last_errors.is_empty())
    })
    .await?;
    let status = refused.status.unwrap();
    ensure!(
        status.last_errors[0].code == "ERR_RETRYABLE_CONFIGURATION_PROBLEM"
            && status.last_errors[0].description.ends_with(EMPTY)
            && status.ready == Some(false),
        "{status:?}"
    );
    // The backups are brought there, and nobody does anything else.
    world.bucket_is_empty.store(false, Ordering::Relaxed);
    let status = ready(&etcds).await?.status.unwrap();
    ensure!(status.last_errors.is_empty(), "{status:?}");
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    wait::until_gone(&etcds, "etcd-main", SOON).await?;
    world.nothing_left("past").await
}

fn requires_snapshot(pod: &Pod) -> bool {
    let first = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.init_containers.as_ref()?.first());
    first
        .and_then(|container| container.args.as_ref())
        .is_some_and(|args| args.iter().any(|arg| arg == "--require-snapshot"))
}

impl World {
    fn api<K: Object + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>>(
        &self,
        namespace: &str,
    ) -> Api<K> {
        Api::namespaced(self.admin.clone(), namespace)
    }

    async fn pods(&self, namespace: &str) -> Result<usize> {
        Ok(self
            .api::<Pod>(namespace)
            .list(&ListParams::default())
            .await?
            .items
            .len())
    }

    async fn nothing_left(&self, namespace: &str) -> Result<()> {
        let all = ListParams::default();
        let mut left: Vec<String> = Vec::new();
        left.extend(
            self.api::<StatefulSet>(namespace)
                .list(&all)
                .await?
                .iter()
                .map(ResourceExt::name_any),
        );
        left.extend(
            self.api::<Job>(namespace)
                .list(&all)
                .await?
                .iter()
                .map(ResourceExt::name_any),
        );
        left.extend(
            self.api::<Pod>(namespace)
                .list(&all)
                .await?
                .iter()
                .map(ResourceExt::name_any),
        );
        left.extend(
            self.api::<Service>(namespace)
                .list(&all)
                .await?
                .iter()
                .map(ResourceExt::name_any),
        );
        left.extend(
            self.api::<PersistentVolumeClaim>(namespace)
                .list(&all)
                .await?
                .iter()
                .map(ResourceExt::name_any),
        );
        let accounts = self.api::<ServiceAccount>(namespace).list(&all).await?;
        left.extend(
            accounts
                .iter()
                .map(ResourceExt::name_any)
                .filter(|name| name != "default"),
        );
        ensure!(left.is_empty(), "left in {namespace}: {left:?}");
        Ok(())
    }
}

fn manifest(name: &str) -> Value {
    let tls = json!({
        "tlsCASecretRef": {"name": "ca-etcd"},
        "serverTLSSecretRef": {"name": "etcd-server"},
        "clientTLSSecretRef": {"name": "etcd-client"},
    });
    json!({
        "apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "labels": {"gardener.cloud/role": "controlplane"},
            "etcd": {"clientUrlTls": tls},
            "backup": {
                "deltaSnapshotPeriod": "5m",
                "garbageCollectionPolicy": "Exponential",
                "store": {
                    "provider": "S3", "container": "bucket", "prefix": "shoot/etcd-main", "secretRef": {"name": "etcd-backup"},
                },
            },
        },
    })
}

async fn ready(etcds: &Api<Etcd>) -> Result<Etcd> {
    until(etcds, "etcd-main", "ready", |etcd| {
        etcd.status
            .as_ref()
            .is_some_and(|s| s.ready == Some(true) && s.observed_generation == etcd.metadata.generation)
    })
    .await
}

async fn until<K: Object>(
    api: &Api<K>,
    name: &str,
    what: &str,
    holds: impl Fn(&K) -> bool + Send + Sync,
) -> Result<K> {
    let look = |object: Option<&K>| match object {
        Some(object) if holds(object) => Look::Done,
        other => Look::Wait(format!(
            "awaiting: {what}; it is {}",
            serde_json::to_string(&other).unwrap()
        )),
    };
    Ok(wait::until(api, name, SOON, look).await?.unwrap())
}

async fn create<K: Object>(api: &Api<K>, manifest: &Value) -> Result<K> {
    Ok(api
        .create(&PostParams::default(), &serde_json::from_value(manifest.clone())?)
        .await?)
}

/// For manifests that the types would not even take.
async fn create_raw(client: &Client, namespace: &str, manifest: &Value) -> Result<Value> {
    let path = format!("/apis/druid.gardener.cloud/v1alpha1/namespaces/{namespace}/etcds");
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(manifest)?)?;
    Ok(client.request(request).await?)
}

async fn change(etcds: &Api<Etcd>, body: Value) -> Result<()> {
    etcds
        .patch("etcd-main", &PatchParams::default(), &Patch::Merge(body))
        .await?;
    Ok(())
}
