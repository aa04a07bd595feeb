//! A shoot that moves from seed to seed and is edited all the while.

use std::{sync::Arc, time::Duration};

use api::{
    constants::condition::READY_FOR_MIGRATION,
    gardencore::{BackupBucket, Seed, Shoot, ShootSpec, shoot::MigrationApproval},
    meta::{ConditionStatus, LastOperationState as State, LastOperationType as Type, PackedExtension},
};
use clap::Parser;
use garden_controller_manager::{
    Config, Context, backup_entries,
    shoot_migration::{self, Verdict, change, decide},
    shoots,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use runtime::{clock, controller::Events, process::metrics::Metrics};
use serde_json::{Value, json};
use testkit::eventually;
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::garden::{self, Garden, NAMESPACE, allowed, operation};

/// Many times the controller's duration, also on a slow machine.
const SOON: Duration = Duration::from_secs(60);
/// Shorter than the requeue interval of a move that waits.
const AT_ONCE: Duration = Duration::from_secs(45);

/// The record of a verdict does not cover an edit that comes between the verdict and its record.
pub async fn a_verdict_never_lands_on_a_newer_specification(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot("hasty", "seed-b", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let write = |shoot: Shoot| {
        let shoots = shoots.clone();
        async move {
            let verdict = Verdict {
                ready: true,
                reason: "DestinationSeedReady",
                message: "Fine.".into(),
            };
            let decision = decide(&shoot, true).unwrap();
            let change = change(&shoot, Some(&verdict), &decision, clock::now_k8s()).unwrap();
            let patch = Patch::<()>::Json(serde_json::from_value(change.patch).unwrap());
            shoots
                .patch_status("hasty", &PatchParams::default(), &patch)
                .await
        }
    };
    let judged = shoots.get("hasty").await.unwrap();
    allowed(edit(garden, "hasty", json!({"purpose": "production"})).await);
    match write(judged).await {
        Err(kube::Error::Api(answer)) => assert!(answer.is_conflict(), "{answer:?}"),
        other => panic!("it was written: {other:?}"),
    }
    let edited = shoots.get("hasty").await.unwrap();
    assert_eq!(edited.status.as_ref().unwrap().migration, None);
    // A write on the judged version succeeds.
    let written = write(edited.clone()).await.unwrap();
    assert_eq!(
        approval(&written).unwrap().generation,
        edited.metadata.generation.unwrap()
    );
    // A later specification replaces the recorded specification as a whole: a removed field is removed there
    // too.
    allowed(edit(garden, "hasty", json!({"purpose": null})).await);
    let written = write(shoots.get("hasty").await.unwrap()).await.unwrap();
    let spec: Value = approval(&written).unwrap().spec.decode().unwrap();
    assert_eq!(spec.get("purpose"), None);
}

/// With the controller at work.
pub async fn with_the_controller(garden: &Garden) {
    for seed in ["seed-b", "seed-c"] {
        make_ready(garden, seed).await;
    }
    let work = async {
        Box::pin(the_specification_travels(garden)).await;
        a_call_off_takes_the_approval_back(garden).await;
    };
    Box::pin(beside_the_controller(garden, &[], work)).await;
}

/// The controller of moves runs beside `work`, with these flags.
pub async fn beside_the_controller(garden: &Garden, flags: &[&str], work: impl Future<Output = ()>) {
    let flags = ["garden-controller-manager"]
        .into_iter()
        .chain(flags.iter().copied());
    let client =
        runtime::client::Garden::new(garden.administrator(), &runtime::client::Permit::sole("a test"));
    let context = Context {
        shoots: shoots::watch(&client),
        backup_entries: backup_entries::watch(&client),
        garden: client,
        config: Arc::new(Config::parse_from(flags)),
        events: Events::new(garden.administrator(), "garden-controller-manager"),
        metrics: Metrics::default(),
        shutdown: CancellationToken::new(),
    };
    let mut controllers = JoinSet::new();
    controllers.spawn(shoot_migration::run(context.clone()));
    work.await;
    context.shutdown.cancel();
    controllers.shutdown().await;
}

async fn the_specification_travels(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    create(garden, "mover").await;
    // Before the begin an edit is judged again, as a whole.
    allowed(edit(garden, "mover", json!({"purpose": "testing"})).await);
    reconcile(garden, "mover").await;
    allowed(edit(garden, "mover", json!({"seedName": "seed-b"})).await);
    until(&shoots, "mover", |shoot| is_for(shoot, "seed-b")).await;
    allowed(edit(garden, "mover", version("1.34.9")).await);
    reconcile(garden, "mover").await;
    let shoot = until(&shoots, "mover", |shoot| {
        approval(shoot).is_some_and(|approval| Some(approval.generation) == shoot.metadata.generation)
    })
    .await;
    let judged = approval(&shoot).unwrap().clone();
    assert_eq!(
        (judged.source.as_str(), version_of(&judged)),
        ("seed-a", "1.34.9".to_owned())
    );
    assert_eq!(judged.spec.decode::<ShootSpec>().unwrap(), shoot.spec);
    // The source begins; a user requests an upgrade. A status change of the destination triggers the
    // controller.
    as_seed(
        garden,
        "mover",
        json!({"lastOperation": operation("Migrate", "Processing")}),
    )
    .await;
    allowed(edit(garden, "mover", version("1.35.0")).await);
    say(garden, "seed-b", "GardenletReady", ConditionStatus::Unknown).await;
    let shoot = until(&shoots, "mover", |shoot| !is_ready(shoot)).await;
    assert_eq!(approval(&shoot), Some(&judged));
    // The shoot is redirected, with the recorded specification.
    allowed(edit(garden, "mover", json!({"seedName": "seed-c"})).await);
    let shoot = until(&shoots, "mover", |shoot| is_for(shoot, "seed-c")).await;
    let redirected = approval(&shoot).unwrap();
    assert_eq!(redirected.spec, judged.spec);
    assert_eq!(Some(redirected.generation), shoot.metadata.generation);
    assert_eq!(redirected.source, "seed-a");
    say(garden, "seed-b", "GardenletReady", ConditionStatus::True).await;
    let spec = judged.spec.clone();
    a_shoot_is_handed_on(garden, &spec).await;
    // The destination begins, and ends.
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let restoring = json!({"lastOperation": operation("Restore", "Processing")});
    allowed(garden.patch_status(&b, "mover", restoring).await);
    allowed(edit(garden, "mover", json!({"purpose": "production"})).await);
    let restored = json!({"lastOperation": operation("Restore", "Succeeded")});
    let before = shoots.get("mover").await.unwrap();
    assert_eq!(approval(&before).unwrap().spec, spec);
    allowed(garden.patch_status(&b, "mover", restored).await);
    let settled = until(&shoots, "mover", |shoot| approval(shoot).is_none()).await;
    assert_eq!(settled.spec.kubernetes.version.as_deref(), Some("1.35.0"));
    a_seed_that_is_gone_is_no_former_seed(garden).await;
}

/// No process would remove the entry otherwise, and the shoot could never move to a seed of that name again.
async fn a_seed_that_is_gone_is_no_former_seed(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let seeds: Api<Seed> = Api::all(garden.administrator());
    seeds.delete("seed-c", &DeleteParams::default()).await.unwrap();
    let shoot = until(&shoots, "mover", |shoot| former(shoot).len() < 2).await;
    assert_eq!(former(&shoot), [("seed-a", 1)]);
}

fn former(shoot: &Shoot) -> Vec<(&str, i64)> {
    let former = shoot.status.iter().flat_map(|status| &status.former_seeds);
    former
        .map(|former| (former.name.as_str(), former.epoch))
        .collect()
}

/// The shoot was handed over to seed-c, which dies before it has begun. A single write hands the shoot on to
/// seed-b.
async fn a_shoot_is_handed_on(garden: &Garden, spec: &PackedExtension) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let handed_over = json!({
        "seedName": "seed-c", "lastOperation": operation("Migrate", "Succeeded"),
        "ownership": {"epoch": 2}, "formerSeeds": [{"name": "seed-a", "epoch": 1}],
    });
    as_seed(garden, "mover", handed_over).await;
    // Back to the source, which is still cleaning up: the shoot must wait, and there is no hand-over.
    allowed(edit(garden, "mover", json!({"seedName": "seed-a"})).await);
    make_ready(garden, "seed-a").await;
    let shoot = until(&shoots, "mover", |shoot| {
        reason(shoot) == Some("DestinationSeedNotCleanedUp".to_owned())
    })
    .await;
    assert_eq!(host(&shoot), "seed-c");
    allowed(edit(garden, "mover", json!({"seedName": "seed-b"})).await);
    let shoot = until(&shoots, "mover", |shoot| host(shoot) != "seed-c").await;
    let status = shoot.status.as_ref().unwrap();
    let last = status.last_operation.as_ref().unwrap();
    assert_eq!((last.type_, last.state), (Type::Migrate, State::Succeeded));
    assert_eq!((host(&shoot), status.epoch()), ("seed-b", 3));
    assert_eq!(former(&shoot), [("seed-a", 1), ("seed-c", 2)]);
    let approval = status.migration.as_ref().unwrap();
    assert_eq!(
        (
            approval.source.as_str(),
            approval.destination.as_str(),
            &approval.spec
        ),
        ("seed-c", "seed-b", spec)
    );
    assert!(status.constraint(READY_FOR_MIGRATION).is_none());
}

async fn a_call_off_takes_the_approval_back(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    create(garden, "stayer").await;
    allowed(edit(garden, "stayer", json!({"seedName": "seed-b"})).await);
    until(&shoots, "stayer", |shoot| is_for(shoot, "seed-b")).await;
    // The move has not begun: if the destination is not ready any more, the approval is withdrawn.
    say(
        garden,
        "seed-b",
        "SeedSystemComponentsHealthy",
        ConditionStatus::False,
    )
    .await;
    let shoot = until(&shoots, "stayer", |shoot| !is_ready(shoot)).await;
    assert_eq!(
        (approval(&shoot), reason(&shoot).as_deref()),
        (None, Some("DestinationSeedNotHealthy"))
    );
    say(
        garden,
        "seed-b",
        "SeedSystemComponentsHealthy",
        ConditionStatus::True,
    )
    .await;
    until(&shoots, "stayer", |shoot| is_for(shoot, "seed-b")).await;
    a_bucket_that_falls_ill_takes_the_verdict_back(garden, &shoots).await;
    as_seed(
        garden,
        "stayer",
        json!({"lastOperation": operation("Migrate", "Error")}),
    )
    .await;
    allowed(edit(garden, "stayer", json!({"seedName": "seed-a"})).await);
    let shoot = until(&shoots, "stayer", |shoot| approval(shoot).is_none()).await;
    assert_eq!((host(&shoot), reason(&shoot)), ("seed-a", None));
}

/// The destination takes a single shoot at a time here. A waiting shoot keeps running at the source, and
/// begins as soon as there is a free slot.
pub async fn one_after_the_other(garden: &Garden) {
    make_ready(garden, "seed-b").await;
    let flags = ["--concurrent-migrations=1"];
    Box::pin(beside_the_controller(garden, &flags, early_and_late(garden))).await;
    // A new process has reserved no slot.
    Box::pin(beside_the_controller(garden, &flags, late_fails(garden))).await;
}

async fn early_and_late(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    for name in ["early", "late"] {
        create(garden, name).await;
    }
    allowed(edit(garden, "early", json!({"seedName": "seed-b"})).await);
    until(&shoots, "early", |shoot| is_for(shoot, "seed-b")).await;
    let leaves = json!({"lastOperation": operation("Migrate", "Processing")});
    as_seed(garden, "early", leaves).await;
    allowed(edit(garden, "late", json!({"seedName": "seed-b"})).await);
    let busy = Some("DestinationSeedBusy".to_owned());
    let late = until(&shoots, "late", |shoot| reason(shoot) == busy).await;
    assert_eq!((approval(&late), host(&late)), (None, "seed-a"));
    allowed(edit(garden, "early", json!({"seedName": "seed-a"})).await);
    let freed = Instant::now();
    until(&shoots, "late", |shoot| is_for(shoot, "seed-b")).await;
    assert!(freed.elapsed() < AT_ONCE, "{:?}", freed.elapsed());
}

/// A shoot that fails on its way holds no slot.
async fn late_fails(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    until(&shoots, "early", |shoot| approval(shoot).is_none()).await;
    reconcile(garden, "early").await;
    let leaves = json!({"lastOperation": operation("Migrate", "Processing")});
    as_seed(garden, "late", leaves).await;
    allowed(edit(garden, "early", json!({"seedName": "seed-b"})).await);
    let busy = Some("DestinationSeedBusy".to_owned());
    until(&shoots, "early", |shoot| reason(shoot) == busy).await;
    let fails = json!({"lastOperation": operation("Migrate", "Failed")});
    as_seed(garden, "late", fails).await;
    let freed = Instant::now();
    until(&shoots, "early", |shoot| is_for(shoot, "seed-b")).await;
    assert!(freed.elapsed() < AT_ONCE, "{:?}", freed.elapsed());
    allowed(edit(garden, "early", json!({"seedName": "seed-a"})).await);
    until(&shoots, "early", |shoot| approval(shoot).is_none()).await;
    let settled = json!({"lastOperation": operation("Reconcile", "Succeeded")});
    as_seed(garden, "late", settled).await;
}

/// Neither the shoot nor the seed changes meanwhile.
async fn a_bucket_that_falls_ill_takes_the_verdict_back(garden: &Garden, shoots: &Api<Shoot>) {
    let buckets: Api<BackupBucket> = Api::all(garden.administrator());
    for (seed, obstacle) in [
        ("seed-b", "DestinationBackupBucketNotReady"),
        ("seed-a", "SourceBackupBucketNotReady"),
    ] {
        let uid = garden.bucket_of(seed).await;
        for (state, ready) in [("Error", false), ("Succeeded", true)] {
            let status = json!({"lastOperation": operation("Reconcile", state)});
            garden.status(&buckets, &uid, status).await;
            let shoot = until(shoots, "stayer", |shoot| is_ready(shoot) == ready).await;
            let told = reason(&shoot).filter(|_| !ready);
            assert_eq!(told, (!ready).then(|| obstacle.to_owned()));
            assert_eq!(approval(&shoot).is_some(), ready, "{seed}");
        }
    }
    until(shoots, "stayer", |shoot| is_for(shoot, "seed-b")).await;
}

/// A Shoot on seed-a that has backups.
pub async fn create(garden: &Garden, name: &str) {
    create_on(garden, name, "seed-a").await;
}

/// The same on this seed.
pub async fn create_on(garden: &Garden, name: &str, seed: &str) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot(name, seed, Some(seed), ("Reconcile", "Succeeded"))
        .await;
    let uid = shoots.get(name).await.unwrap().uid().unwrap();
    let id = format!("shoot--dev--{name}");
    garden
        .status(&shoots, name, json!({"technicalID": id, "uid": uid}))
        .await;
    let bucket = bring_ready_bucket(garden, seed).await;
    garden.entry(&format!("{id}--{uid}"), seed, &bucket).await;
}

/// The BackupBucket of the seed is ready. Returns the name of the bucket.
async fn bring_ready_bucket(garden: &Garden, seed: &str) -> String {
    let uid = garden.bucket_of(seed).await;
    let buckets: Api<BackupBucket> = Api::all(garden.administrator());
    allowed(garden.apply(&buckets, &uid, garden::bucket(&uid, seed)).await);
    let ready = json!({"lastOperation": operation("Create", "Succeeded")});
    garden.status(&buckets, &uid, ready).await;
    uid
}

/// The seed reports that it is healthy, and has a bucket.
pub async fn make_ready(garden: &Garden, seed: &str) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let backup = json!({"spec": {"backup": {"provider": "local"}}});
    allowed(garden.patch(&seeds, seed, backup).await);
    for condition in [
        "GardenletReady",
        "SeedSystemComponentsHealthy",
        "BackupBucketsReady",
    ] {
        say(garden, seed, condition, ConditionStatus::True).await;
    }
    bring_ready_bucket(garden, seed).await;
}

/// Sets a condition of a seed.
pub async fn say(garden: &Garden, seed: &str, type_: &str, status: ConditionStatus) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let mut conditions = seeds
        .get(seed)
        .await
        .unwrap()
        .status
        .unwrap_or_default()
        .conditions;
    conditions.retain(|condition| condition.type_ != type_);
    let mut conditions = json!(conditions);
    let now = "2026-01-01T00:00:00Z";
    conditions.as_array_mut().unwrap().push(json!({
        "type": type_, "status": status, "lastTransitionTime": now, "lastUpdateTime": now, "reason": "R", "message": "m",
    }));
    garden
        .status(&seeds, seed, json!({"conditions": conditions}))
        .await;
}

/// Writes a status as the gardenlet of seed-a.
pub async fn as_seed(garden: &Garden, name: &str, status: Value) {
    let shoots: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    allowed(garden.patch_status(&shoots, name, status).await);
}

/// The source reconciles the present specification.
pub async fn reconcile(garden: &Garden, name: &str) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let shoot = shoots.get(name).await.unwrap();
    let reconciled = json!({
        "observedGeneration": shoot.metadata.generation, "reconciledSpecHash": placement::spec_hash(&shoot.spec),
        "lastOperation": operation("Reconcile", "Succeeded"),
    });
    as_seed(garden, name, reconciled).await;
}

pub async fn edit(garden: &Garden, name: &str, spec: Value) -> Result<(), kube::Error> {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden.patch(&shoots, name, json!({"spec": spec})).await
}

fn version(version: &str) -> Value {
    json!({"kubernetes": {"version": version}})
}

pub fn approval(shoot: &Shoot) -> Option<&MigrationApproval> {
    shoot.status.as_ref()?.migration.as_ref()
}

fn version_of(approval: &MigrationApproval) -> String {
    let spec: ShootSpec = approval.spec.decode().unwrap();
    spec.kubernetes.version.unwrap()
}

pub fn is_for(shoot: &Shoot, seed: &str) -> bool {
    approval(shoot).is_some_and(|approval| approval.destination == seed)
}

fn is_ready(shoot: &Shoot) -> bool {
    let constraint = shoot
        .status
        .as_ref()
        .and_then(|s| s.constraint(READY_FOR_MIGRATION));
    constraint.is_some_and(|constraint| constraint.status == ConditionStatus::True)
}

pub fn reason(shoot: &Shoot) -> Option<String> {
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    Some(constraint.reason.clone())
}

fn host(shoot: &Shoot) -> &str {
    shoot
        .status
        .as_ref()
        .and_then(|s| s.seed_name.as_deref())
        .unwrap_or_default()
}

pub async fn until(api: &Api<Shoot>, name: &str, holds: impl Fn(&Shoot) -> bool) -> Shoot {
    eventually(&format!("{name} is as awaited"), SOON, || async {
        let shoot = api.get(name).await.map_err(|e| e.to_string())?;
        if holds(&shoot) {
            Ok(shoot)
        } else {
            Err(format!("it is {:?}", shoot.status))
        }
    })
    .await
    .unwrap()
}
