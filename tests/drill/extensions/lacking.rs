//! A move to a seed that lacks the shoot's extensions: the preflight names the missing extensions, and no
//! further state changes (R7-46, I8). garden-controller-manager decides, and the source's gardenlet reads the
//! decision.

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::condition::READY_FOR_MIGRATION,
    extensions::Infrastructure,
    gardencore::{BackupBucket, Seed, Shoot},
    meta::{Condition, ConditionStatus},
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use runtime::clock;
use serde_json::{Value, json};
use testkit::eventually;
use tokio::task::JoinSet;

use crate::world::{SOON, World, core};

const NAME: &str = "mover";
/// The technical id of the Shoot.
const ID: &str = "shoot--dev--mover";
/// The required kinds that neither seed serves yet.
const LACKING: [(&str, &str); 6] = [
    ("BackupBucket", "metal"),
    ("BackupEntry", "metal"),
    ("ControlPlane", "metal"),
    ("Network", "mesh"),
    ("OperatingSystemConfig", "flat"),
    ("Worker", "metal"),
];

pub async fn no_move_begins(world: &World) -> Result<()> {
    make_ready(world, "seed-b").await?;
    stands_on(world, "seed-a").await?;
    wants(world, "seed-b").await?;
    let before = observe(world).await?;
    let mut running = JoinSet::new();
    running.spawn(garden_controller_manager::shoot_migration::run(
        world.manager.clone(),
    ));
    running.spawn(gardenlet::shoot::run(world.gardenlet_of_a.clone()));

    let said = is_told(world, "DestinationLacksExtensions").await?;
    for (kind, type_) in LACKING {
        ensure!(said.contains(&format!("{kind} of type {type_}")), "{said}");
    }
    ensure!(!said.contains("Infrastructure"), "it is registered: {said}");
    ensure!(observe(world).await? == before, "{:#}", observe(world).await?);

    // Registered does not mean installed: no extension runs in the destination seed.
    let resources = LACKING.map(|(kind, type_)| json!({"kind": kind, "type": type_}));
    let registered = json!({"spec": {"resources": resources, "deployment": {"seedSelector": {}}}});
    testkit::apply(
        &world.admin(),
        core("ControllerRegistration", "late", &registered),
    )
    .await?;
    is_told(world, "DestinationExtensionsNotReady").await?;
    ensure!(observe(world).await? == before, "{:#}", observe(world).await?);
    Ok(())
}

/// The seed reports healthy conditions, and has a bucket.
async fn make_ready(world: &World, seed: &str) -> Result<()> {
    let seeds: Api<Seed> = Api::all(world.admin());
    let time = "2026-01-01T00:00:00Z";
    let types = [
        "GardenletReady",
        "SeedSystemComponentsHealthy",
        "BackupBucketsReady",
    ];
    let conditions = types.map(|type_| {
        json!({"type": type_, "status": "True", "reason": "Played", "message": "", "lastTransitionTime": time,
            "lastUpdateTime": time})
    });
    let params = PatchParams::default();
    let backup = Patch::Merge(json!({"spec": {"backup": {"provider": "metal"}}}));
    let uid = seeds.patch(seed, &params, &backup).await?.uid();
    let uid = uid.context("a UID")?;
    let well = Patch::Merge(json!({"status": {"conditions": conditions}}));
    seeds.patch_status(seed, &params, &well).await?;

    let spec = json!({"provider": {"type": "metal", "region": "here"}, "seedName": seed});
    testkit::apply(&world.admin(), core("BackupBucket", &uid, &json!({"spec": spec}))).await?;
    let made = Patch::Merge(json!({"status": {"lastOperation": succeeded("Create")}}));
    let buckets: Api<BackupBucket> = Api::all(world.admin());
    buckets.patch_status(&uid, &params, &made).await?;
    Ok(())
}

/// The shoot was reconciled in the seed, and has backups and an object in the seed.
async fn stands_on(world: &World, seed: &str) -> Result<()> {
    world.shoot(NAME, seed).await?;
    let uid = shoots(world).get(NAME).await?.uid().context("a UID")?;
    let status =
        json!({"seedName": seed, "technicalID": ID, "uid": uid, "lastOperation": succeeded("Reconcile")});
    write_status(world, &status).await?;
    let spec = json!({"bucketName": "bucket-a", "seedName": seed});
    let mut entry = core("BackupEntry", &format!("{ID}--{uid}"), &json!({"spec": spec}));
    entry["metadata"]["namespace"] = json!("garden-dev");
    testkit::apply(&world.admin(), entry).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ID}});
    testkit::apply(&world.admin(), namespace).await?;
    let spec =
        json!({"type": "metal", "region": "here", "secretRef": {"name": "cloudprovider", "namespace": ID}});
    let infrastructure = json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Infrastructure",
        "metadata": {"name": NAME, "namespace": ID}, "spec": spec,
    });
    testkit::apply(&world.admin(), infrastructure).await.map(drop)
}

/// The user names the seed. The next regular reconciliation is a day away.
async fn wants(world: &World, seed: &str) -> Result<()> {
    let edit = Patch::Merge(json!({"spec": {"seedName": seed}}));
    let edited = shoots(world).patch(NAME, &PatchParams::default(), &edit).await?;
    write_status(world, &json!({"observedGeneration": edited.metadata.generation})).await
}

async fn write_status(world: &World, status: &Value) -> Result<()> {
    let status = Patch::Merge(json!({"status": status}));
    shoots(world)
        .patch_status(NAME, &PatchParams::default(), &status)
        .await?;
    Ok(())
}

/// Waits for the verdict, and until the gardenlet has passed the verdict on to the user.
async fn is_told(world: &World, reason: &str) -> Result<String> {
    let shoots = shoots(world);
    eventually(&format!("{NAME} is told {reason}"), SOON, || async {
        let shoot = shoots.get(NAME).await.map_err(|error| error.to_string())?;
        let status = shoot.status.unwrap_or_default();
        let judged = |told: &Condition| told.status == ConditionStatus::False && told.reason == reason;
        let verdict = status.constraint(READY_FOR_MIGRATION).filter(|told| judged(told));
        let said = verdict.map(|verdict| verdict.message.clone());
        match (said, status.last_errors.as_slice()) {
            (Some(said), [only]) if only.description == said => Ok(said),
            _ => Err(format!("{status:#?}")),
        }
    })
    .await
}

/// The first changes of a move: the owner of the shoot, the operation, and the Infrastructure.
async fn observe(world: &World) -> Result<Value> {
    let status = shoots(world).get(NAME).await?.status.unwrap_or_default();
    let objects: Api<Infrastructure> = Api::namespaced(world.admin(), ID);
    Ok(json!({
        "host": status.seed_name, "epoch": status.epoch(), "approval": status.migration, "last": status.last_operation,
        "formerly": status.former_seeds, "infrastructure": objects.get(NAME).await?.resource_version(),
    }))
}

fn shoots(world: &World) -> Api<Shoot> {
    Api::namespaced(world.admin(), "garden-dev")
}

fn succeeded(type_: &str) -> Value {
    json!({"type": type_, "state": "Succeeded", "progress": 100, "description": "",
        "lastUpdateTime": clock::now_rfc3339_nano()})
}
