//! The controller against a real API server and the real controllers of StatefulSets, Jobs and garbage, with
//! exactly the rights that its chart grants.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod retained_volume;
mod world;

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result, ensure};
use api::{constants::DRUID_REQUIRE_SNAPSHOT, druid::Etcd};
use clap::Parser;
use etcd_druid::flags::Flags;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{Namespace, Pod, Service},
};
use kube::{
    Api, CustomResourceExt, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use runtime::{
    client::{Permit, Seed},
    process::Process,
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Fate, PlayedKubelet, apply_crds};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use world::{
    World, change, create, create_raw, gone, manifest, owner_check, ready, refused, requires_snapshot, until,
};

/// The account of the controller.
const ACCOUNT: &str = "system:serviceaccount:garden:etcd-druid";

const REFUSED: &str =
    "StoreCredentials: the object store refuses the credentials; put working ones into the Secret";

const EMPTY: &str =
    "SnapshotMissing: there is no data and no snapshot below shoot/etcd-main; bring the snapshots there";

/// A seed with a running etcd-druid.
struct Fixture {
    world: World,
    stop: CancellationToken,
    running: JoinSet<Result<()>>,
    _kubelet: PlayedKubelet,
    _seed: ControlPlane,
}

impl Fixture {
    async fn start() -> Result<Self> {
        let seed = ControlPlane::start("seed").await?;
        let admin = seed.admin();
        apply_crds(&admin, &[Etcd::crd()]).await?;
        testkit::grant_chart(&admin, "etcd-druid", ACCOUNT).await?;
        let world = World {
            admin: admin.clone(),
            bucket_is_empty: Arc::new(AtomicBool::new(true)),
            store_refuses: Arc::new(AtomicBool::new(true)),
        };
        let (stop, running) = run_etcd_druid(&seed).await?;
        for namespace in ["life", "wrong", "copy", "past", "once", "kept", "owner"] {
            create(
                &Api::all(admin.clone()),
                &json!({"metadata": {"name": namespace}}),
            )
            .await
            .map(|_: Namespace| ())?;
        }
        Ok(Self {
            _kubelet: play_pods(&world),
            world,
            stop,
            running,
            _seed: seed,
        })
    }

    /// etcd-druid ends without an error.
    async fn end(mut self) -> Result<()> {
        self.stop.cancel();
        self.running.join_next().await.context("the process was lost")??
    }
}

impl Deref for Fixture {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

fn play_pods(world: &World) -> PlayedKubelet {
    let (refuses, empty) = (world.store_refuses.clone(), world.bucket_is_empty.clone());
    PlayedKubelet::with(&world.admin, move |pod| match PlayedKubelet::usual(pod) {
        Fate::Runs
            if pod.namespace().as_deref() == Some("past")
                && requires_snapshot(pod)
                && empty.load(Ordering::Relaxed) =>
        {
            Fate::Fails(EMPTY.to_owned())
        }
        Fate::Succeeds if refuses.load(Ordering::Relaxed) => Fate::Fails(REFUSED.to_owned()),
        usual => usual,
    })
}

async fn run_etcd_druid(seed: &ControlPlane) -> Result<(CancellationToken, JoinSet<Result<()>>)> {
    let client = seed
        .client(ACCOUNT, &["system:serviceaccounts", "system:authenticated"])
        .await?;
    let flags = Flags::parse_from([
        "etcd-druid",
        "--etcd-image=etcd:test",
        "--etcd-backup-restore-image=backup:test",
    ]);
    let mut process = Process::new("etcd-druid");
    let druid = etcd_druid::run(
        Seed::new(client, &Permit::sole("a test")),
        flags,
        process.metrics.clone(),
        process.shutdown.clone(),
    );
    process.part("etcd controller", druid);
    let stop = process.shutdown.clone();
    let mut running = JoinSet::new();
    running.spawn(async move { Ok(process.run().await?) });
    Ok((stop, running))
}

// At the same time, each scenario in a separate namespace.
testkit::scenarios! {
    mod etcds_in_a_seed for Fixture = Fixture::start() => Fixture::end;
    at_once:
    life,
    wrong,
    copy,
    past,
    once,
    retained_volume::{retained},
    owner_check::{owner};
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

    // The controller reverts changes of other users, and recreates deleted objects.
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
        // The third generation: created, changed by a user, reverted.
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
        let status = ready(&etcds).await?.status.unwrap();
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
    // A new quota is a reason to restart the pod.
    until(
        &world.api::<Pod>("life"),
        "etcd-main-0",
        "a pod with the new quota",
        |pod| {
            serde_json::to_string(pod)
                .unwrap()
                .contains("--quota-backend-bytes=1073741824")
        },
    )
    .await?;
    ready(&etcds).await?;

    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    gone(&etcds).await?;
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
    let missing = |words: &str| words.contains("spec.backup.store.provider is missing");
    let status = refused(&etcds, missing).await?.status.unwrap();
    ensure!(
        status.last_errors[0].code == "ERR_CONFIGURATION_PROBLEM",
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

    // After the specification is fixed, the controller continues without further action.
    change(&etcds, json!({"spec": {"backup": {"store": {"provider": "S3"}}}})).await?;
    ready(&etcds).await?;
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    gone(&etcds).await?;
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
    let words = format!("backup-restore: {REFUSED}");
    let status = refused(&etcds, |first| first == words).await?.status.unwrap();
    ensure!(
        status.last_errors[0].code == "ERR_INFRA_UNAUTHENTICATED",
        "{status:?}"
    );
    ensure!(
        world
            .api::<StatefulSet>("copy")
            .get_opt("etcd-main")
            .await?
            .is_none()
    );

    // The cause is fixed, and the controller continues without further action.
    world.store_refuses.store(false, Ordering::Relaxed);
    let status = ready(&etcds).await?.status.unwrap();
    ensure!(
        status
            .conditions
            .iter()
            .any(|c| c.type_ == "BackupsCopied" && c.status == "True"),
        "{status:?}"
    );

    // Without the source the Etcd is a normal etcd, and the Job is deleted first.
    change(&etcds, json!({"spec": {"backup": {"sourceStore": null}}})).await?;
    ready(&etcds).await?;
    ensure!(jobs.get_opt("etcd-copy").await?.is_none());
    // Afterwards a source is rejected.
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
    gone(&etcds).await?;
    world.nothing_left("copy").await
}

/// An etcd that had data reports the loss, instead of starting empty.
async fn past(world: &World) -> Result<()> {
    let etcds = world.api::<Etcd>("past");
    let mut manifest = manifest("etcd-main");
    manifest["metadata"]["annotations"] = json!({(DRUID_REQUIRE_SNAPSHOT): "true"});
    create(&etcds, &manifest).await?;
    let empty = |words: &str| words.ends_with(EMPTY);
    let status = refused(&etcds, empty).await?.status.unwrap();
    ensure!(
        status.last_errors[0].code == "ERR_RETRYABLE_CONFIGURATION_PROBLEM" && status.ready == Some(false),
        "{status:?}"
    );
    // The backups are put back, and the controller continues without further action.
    world.bucket_is_empty.store(false, Ordering::Relaxed);
    ready(&etcds).await?;
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    gone(&etcds).await?;
    world.nothing_left("past").await
}

/// An etcd that was ready once does not start empty any more, and does not restart for that.
async fn once(world: &World) -> Result<()> {
    let (etcds, pods) = (world.api::<Etcd>("once"), world.api::<Pod>("once"));
    create(&etcds, &manifest("etcd-main")).await?;
    ready(&etcds).await?;
    let pod = pods.get("etcd-main-0").await?;
    let sets = world.api::<StatefulSet>("once");
    until(&sets, "etcd-main", "the flag of an etcd with a past", |set| {
        let seen = set.status.as_ref().and_then(|status| status.observed_generation);
        seen == set.metadata.generation && serde_json::to_string(set).unwrap().contains("--require-snapshot")
    })
    .await?;
    // The operation annotation makes the controller evaluate the new template.
    let now = json!({"metadata": {"annotations": {"druid.gardener.cloud/operation": "reconcile"}}});
    change(&etcds, now).await?;
    until(&etcds, "etcd-main", "operation taken", |etcd| {
        !etcd.annotations().contains_key("druid.gardener.cloud/operation")
    })
    .await?;
    ready(&etcds).await?;
    let same = pods.get("etcd-main-0").await?;
    ensure!(
        same.uid() == pod.uid() && !requires_snapshot(&same),
        "etcd was restarted"
    );
    pods.delete("etcd-main-0", &DeleteParams::default()).await?;
    until(&pods, "etcd-main-0", "a pod that does not start empty", |new| {
        new.uid() != pod.uid() && requires_snapshot(new)
    })
    .await?;
    etcds.delete("etcd-main", &DeleteParams::default()).await?;
    gone(&etcds).await?;
    world.nothing_left("once").await
}
