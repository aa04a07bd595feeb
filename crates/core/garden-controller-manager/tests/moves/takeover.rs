//! A shoot with a silent seed is taken over on request, and a shoot with a living seed is not (R17-05,
//! R17-20).

use std::time::Duration;

use api::{
    constants::{
        BACKUP_ENTRY_ASSIGNED_IN_EPOCH, CONFIRMATION_DELETION, OPERATION, OWNERSHIP_EPOCH,
        SHOOT_FORCE_RESTORE,
    },
    gardencore::{
        BackupEntry, Seed, Shoot,
        shoot::{ApprovedBy, OwnershipPhase},
    },
    meta::{LastOperationState as State, LastOperationType as Type},
};
use garden_controller_manager::{backup_entry_placement, shoot_takeover};
use k8s_openapi::api::{coordination::v1::Lease, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use runtime::clock;
use serde_json::{Value, json};
use testkit::eventually;
use tokio::task::JoinSet;

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, operation, refused},
    journey::{create, edit, make_ready, until},
    renewal, servers, source, source_credentials, too_large,
};

/// Many times the controller's duration, also on a slow machine.
const SOON: Duration = Duration::from_secs(60);
/// Much shorter than the monitor period here, so that a machine that stalls for seconds does not make the
/// gardenlet look silent.
const RENEWED_EVERY: Duration = Duration::from_millis(250);

/// With the rights that the chart gives, and the policies in force.
pub async fn with_the_controller(garden: &Garden) {
    make_ready(garden, "seed-b").await;
    check_owners(garden, "seed-b", true).await;
    let context = garden.context(&["--seed-monitor-period-seconds=8", "--takeover-after-seconds=0"]);
    let mut controllers = JoinSet::new();
    controllers.spawn(shoot_takeover::run(context.clone()));
    controllers.spawn(backup_entry_placement::run(context.clone()));
    let of_seed_a = async {
        a_seed_that_lives_keeps_its_shoot(garden).await;
        Box::pin(without_a_fence_nothing_is_taken(garden)).await;
        a_call_off_after_the_seal_begins_a_new_epoch(garden).await;
        Box::pin(renewal::a_seed_keeps_its_shoot_in_a_new_epoch(garden)).await;
        Box::pin(a_silent_seed_loses_its_shoot(garden)).await;
        Box::pin(source::a_source_that_is_stated_to_be_off_needs_no_fence(garden)).await;
    };
    // A separate seed, whose gardenlet is alive meanwhile.
    let of_seed_d = Box::pin(source::a_source_that_fails_in_a_loop_loses_its_shoot(garden));
    futures::join!(of_seed_a, of_seed_d);
    Box::pin(source_credentials::a_bucket_without_its_secret_holds_a_takeover(
        garden,
    ))
    .await;
    Box::pin(too_large::a_takeover_of_a_shoot_that_is_too_large_is_reported(
        garden,
    ))
    .await;
    a_third_seed_takes_what_the_second_has_not_opened(garden).await;
    Box::pin(a_source_takes_back_what_the_destination_has_not_opened(garden)).await;
    renewal::the_annotation_has_worked_once(garden).await;
    let metrics = context.metrics.encode();
    assert!(
        metrics.contains("forced_hand_overs_total{by=\"operator\"} 6"),
        "{metrics}"
    );
    context.shutdown.cancel();
    controllers.shutdown().await;
}

async fn a_seed_that_lives_keeps_its_shoot(garden: &Garden) {
    create(garden, "alive").await;
    check_owners(garden, "seed-a", true).await;
    allowed(edit(garden, "alive", json!({"seedName": "seed-b"})).await);
    let refusal = async {
        // Until this process has seen the first renewal, it decides nothing.
        ask(garden, "alive").await;
        unasked(garden, "alive").await
    };
    let shoot = beside_a_gardenlet(garden, refusal).await;
    let status = shoot.status.unwrap();
    assert_eq!(
        (status.seed_name.as_deref(), status.ownership),
        (Some("seed-a"), None)
    );
}

/// The seed is silent by now, and an authorized user requests a takeover.
async fn without_a_fence_nothing_is_taken(garden: &Garden) {
    check_owners(garden, "seed-a", false).await;
    ask(garden, "alive").await;
    let shoot = unasked(garden, "alive").await;
    assert_eq!(shoot.status.unwrap().ownership, None);
    check_owners(garden, "seed-a", true).await;
    // The seed was cut off before the setting arrived: its etcd has no owner check.
    ask(garden, "alive").await;
    let shoot = unasked(garden, "alive").await;
    assert_eq!(shoot.status.unwrap().ownership, None);
    tells(garden, "alive", "conditions", "OwnershipVerified").await;
    servers::the_shoot_stays_where_a_server_list_is_not_shared(garden, "alive").await;
    // The seed died before it had saved any key.
    ask(garden, "alive").await;
    let shoot = unasked(garden, "alive").await;
    assert_eq!(shoot.status.unwrap().ownership, None);
    tells(garden, "alive", "constraints", "ShootStateUpToDate").await;
}

/// The conditions that the gardenlet of a seed with owner checks and a current ShootState reports for each
/// shoot.
pub async fn tells(garden: &Garden, name: &str, list: &str, type_: &str) {
    let told = json!({"type": type_, "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
    garden
        .status::<Shoot>(&garden.admin(NAMESPACE), name, json!({list: [told]}))
        .await;
}

async fn taint_seed_b(garden: &Garden, taints: Value) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let spec = json!({"spec": {"taints": taints}});
    allowed(garden.patch(&seeds, "seed-b", spec).await);
}

async fn a_silent_seed_loses_its_shoot(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let spec = shoots.get("alive").await.unwrap().spec;
    backups_are_on_seed_a(garden).await;
    seed_a_fills_the_shoot(garden).await;
    let left = seed_a_deletes_backups_of_an_earlier_move(garden).await;
    // A planned move would be refused.
    taint_seed_b(garden, json!([{"key": "protected"}])).await;
    let shoot = taken_over(garden, "alive", "seed-b").await;
    taint_seed_b(garden, Value::Null).await;
    assert!(!shoot.annotations().contains_key(SHOOT_FORCE_RESTORE));
    let status = shoot.status.unwrap();
    let record = status.ownership.clone().unwrap();
    assert_eq!((record.epoch, record.phase), (2, Some(OwnershipPhase::Claiming)));
    let source = record.source.unwrap();
    assert_eq!((source.name.as_str(), source.epoch), ("seed-a", 1));
    assert_eq!((record.chain, record.drained), (None, false));
    let approval = record.approval.unwrap();
    assert_eq!((approval.epoch, approval.by), (1, ApprovedBy::Operator));
    let last = status.last_operation.unwrap();
    assert_eq!((last.type_, last.state), (Type::Migrate, State::Aborted));
    assert!(
        last.description.starts_with("An operator asked"),
        "{}",
        last.description
    );
    let former: Vec<_> = status
        .former_seeds
        .iter()
        .map(|f| (f.name.as_str(), f.epoch))
        .collect();
    assert_eq!(former, [("seed-a", 1)]);
    let travels = status.migration.unwrap();
    assert_eq!(
        (travels.source.as_str(), travels.destination.as_str()),
        ("seed-a", "seed-b")
    );
    assert_eq!(travels.spec.decode::<api::gardencore::ShootSpec>().unwrap(), spec);
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let name = format!("{}--{}", status.technical_id, status.uid);
    eventually("the backups follow", SOON, || async {
        let entry = entries.get(&name).await.map_err(|error| error.to_string())?;
        let on = entry
            .status
            .as_ref()
            .and_then(|status| status.seed_name.as_deref());
        match (entry.spec.seed_name.as_deref(), on) {
            (Some("seed-b"), Some("seed-b")) => Ok(()),
            other => Err(format!("they are on {other:?}")),
        }
    })
    .await
    .unwrap();
    let entry = entries.get(&name).await.unwrap();
    // No operation that was asked for stays, and no annotation of the former seed.
    let annotations: Vec<_> = entry.annotations().keys().map(String::as_str).collect();
    assert_eq!(annotations, [BACKUP_ENTRY_ASSIGNED_IN_EPOCH]);
    assert_eq!(entry.status.unwrap().last_error, None);
    seed_b_has_room(garden, &name).await;
    eventually("the source entry is released", SOON, || {
        is_released(garden, &left)
    })
    .await
    .unwrap();
}

/// A retention protects the backups, and the seed dies before the retention ends.
async fn seed_a_deletes_backups_of_an_earlier_move(garden: &Garden) -> String {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let status = shoots.get("alive").await.unwrap().status.unwrap();
    let name = format!("source-{}--{}", status.technical_id, status.uid);
    garden.entry(&name, "seed-a", "bucket-of-seed-z").await;
    let entries: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    garden.finalizer(&entries, &name).await;
    let error = json!({"description": "the retention has not ended", "codes": ["ERR_INFRA_UNAUTHORIZED"]});
    garden
        .status(&entries, &name, json!({"seedName": "seed-a", "lastError": error}))
        .await;
    entries.delete(&name, &DeleteParams::default()).await.unwrap();
    name
}

/// Then a new entry of the same name names the bucket of the source, and a user learns which backups stay.
async fn is_released(garden: &Garden, name: &str) -> Result<(), String> {
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let found = entries.get_opt(name).await.map_err(|error| error.to_string())?;
    let bucket = garden.bucket_of("seed-a").await;
    if found.is_none_or(|found| found.spec.bucket_name != bucket) {
        return Err(format!("BackupEntry {name} does not name bucket {bucket}"));
    }
    let events: Api<Event> = garden.admin(NAMESPACE);
    let all = events.list(&ListParams::default()).await;
    let all = all.map_err(|error| error.to_string())?;
    let is_report = |event: &Event| {
        let note = event.note.as_deref().unwrap_or_default();
        event.reason.as_deref() == Some("SourceBackupEntryReleased")
            && ["alive", "seed-a", "bucket-of-seed-z"]
                .iter()
                .all(|part| note.contains(part))
    };
    all.items
        .iter()
        .any(is_report)
        .then_some(())
        .ok_or_else(|| "no Event".to_owned())
}

/// The BackupEntry in the state in which the gardenlet left it. R7-02: the seed will not release the entry.
async fn backups_are_on_seed_a(garden: &Garden) {
    let (shoots, entries): (Api<Shoot>, Api<BackupEntry>) =
        (garden.admin(NAMESPACE), garden.admin(NAMESPACE));
    let status = shoots.get("alive").await.unwrap().status.unwrap();
    let name = format!("{}--{}", status.technical_id, status.uid);
    garden
        .status(&entries, &name, json!({"seedName": "seed-a"}))
        .await;
}

/// As its last act, a hostile host fills the status up to the bound of seeds. The next seed has the same
/// bound.
async fn seed_a_fills_the_shoot(garden: &Garden) {
    let shoots: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let status = shoots.get("alive").await.unwrap().status.unwrap();
    let fill = async |length: usize| {
        let mut conditions = json!(status.conditions);
        let padding = json!({"type": "X", "status": "True", "reason": "X", "message": "x".repeat(length),
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
        // Of the times that a schema accepts, these are the first and the last.
        let extreme = json!({"type": "ObservabilityComponentsHealthy", "status": "True", "reason": "R", "message": "m",
            "lastTransitionTime": "7999-12-31T23:59:59-23:59", "lastUpdateTime": "0000-01-01T00:00:00Z"});
        conditions.as_array_mut().unwrap().extend([padding, extreme]);
        let conditions = json!({"conditions": conditions});
        garden.patch_status(&shoots, "alive", conditions).await
    };
    let (mut fits, mut refused_from) = (0, 70_000);
    while refused_from - fits > 4 {
        let length = usize::midpoint(fits, refused_from);
        match fill(length).await {
            Ok(()) => fits = length,
            Err(_) => refused_from = length,
        }
    }
    assert!(fits > 40_000, "{fits}");
    refused(
        garden.patch_status(&shoots, "alive", first_write()).await,
        "may not write a status of",
    );
    // A version without the policy for annotations let the seed write these.
    let name = format!("{}--{}", status.technical_id, status.uid);
    let annotations =
        json!({"x": "y".repeat(65_000), (CONFIRMATION_DELETION): "true", (OPERATION): "migrate"});
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let annotated = json!({"metadata": {"annotations": annotations}});
    allowed(garden.patch(&entries, &name, annotated).await);
    let error = json!({"lastError": {"description": "x".repeat(65_000)}});
    let entries: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    allowed(garden.patch_status(&entries, &name, error).await);
}

/// Fields of the first write of a restore.
fn first_write() -> Value {
    json!({"gardener": {"id": "gardenlet-0", "name": "gardenlet", "version": "1.0.0"},
        "retryCycleStartTime": "2026-01-01T00:00:00Z"})
}

async fn seed_b_has_room(garden: &Garden, entry: &str) {
    let shoots: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    allowed(garden.patch_status(&shoots, "alive", first_write()).await);
    let entries: Api<BackupEntry> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let asked = json!({"metadata": {"annotations": {(OPERATION): "restore", (OWNERSHIP_EPOCH): "2"}}});
    allowed(garden.patch(&entries, entry, asked).await);
    let begun = json!({"lastOperation": operation("Restore", "Processing")});
    allowed(garden.patch_status(&entries, entry, begun).await);
}

/// The destination dies before it has opened any data: the data are still at the source.
async fn a_third_seed_takes_what_the_second_has_not_opened(garden: &Garden) {
    garden.bring(&garden::seed("seed-c")).await.unwrap();
    make_ready(garden, "seed-c").await;
    check_owners(garden, "seed-c", true).await;
    allowed(edit(garden, "alive", json!({"seedName": "seed-c"})).await);
    let status = taken_over(garden, "alive", "seed-c").await.status.unwrap();
    let record = status.ownership.unwrap();
    assert_eq!((record.epoch, record.phase), (3, Some(OwnershipPhase::Claiming)));
    let source = record.source.unwrap();
    assert_eq!((source.name.as_str(), source.epoch), ("seed-a", 1));
    let former = status.former_seeds.iter();
    let former: Vec<_> = former
        .map(|former| (former.name.as_str(), former.epoch))
        .collect();
    assert_eq!(former, [("seed-a", 1), ("seed-b", 2)]);
}

/// Waits until the entry is of this seed. A source entry names the bucket of seed-a.
async fn backups_are_with(garden: &Garden, shoot: &str, seed: &str, prefix: &str) {
    let (shoots, entries): (Api<Shoot>, Api<BackupEntry>) =
        (garden.admin(NAMESPACE), garden.admin(NAMESPACE));
    let status = shoots.get(shoot).await.unwrap().status.unwrap();
    let name = format!("{prefix}{}--{}", status.technical_id, status.uid);
    let bucket = garden
        .bucket_of(if prefix.is_empty() { seed } else { "seed-a" })
        .await;
    eventually("the entry is of the seed", SOON, || async {
        let spec = entries.get(&name).await.map_err(|error| error.to_string())?.spec;
        let is_assigned = spec.seed_name.as_deref() == Some(seed) && spec.bucket_name == bucket;
        is_assigned
            .then_some(())
            .ok_or_else(|| format!("{name}: {spec:?}"))
    })
    .await
    .unwrap();
}

/// The destination dies after the hand-over, and no third seed exists.
async fn a_source_takes_back_what_the_destination_has_not_opened(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    make_ready(garden, "seed-a").await;
    for seed in ["seed-a", "seed-b"] {
        check_owners(garden, seed, true).await;
    }
    create(garden, "returned").await;
    allowed(edit(garden, "returned", json!({"seedName": "seed-b"})).await);
    let source = json!({"name": "seed-a", "epoch": 1});
    let handed_over = json!({
        "seedName": "seed-b", "lastOperation": operation("Migrate", "Succeeded"), "formerSeeds": [source],
        "ownership": {"epoch": 2, "phase": "Claiming", "drained": true, "source": source},
    });
    garden.status(&shoots, "returned", handed_over).await;
    backups_are_with(garden, "returned", "seed-b", "source-").await;
    tells(garden, "returned", "constraints", "ShootStateUpToDate").await;
    allowed(edit(garden, "returned", json!({"seedName": "seed-a"})).await);
    let status = taken_over(garden, "returned", "seed-a").await.status.unwrap();
    let record = status.ownership.unwrap();
    assert_eq!((record.epoch, record.phase), (3, Some(OwnershipPhase::Claiming)));
    let source = record.source.unwrap();
    assert_eq!((source.name.as_str(), source.epoch), ("seed-a", 1));
    // The seed deletes the source entry of the destination, and may write only an entry of its own.
    for prefix in ["", "source-"] {
        backups_are_with(garden, "returned", "seed-a", prefix).await;
    }
    // The destination is fenced, although the source has handed the shoot over.
    assert!(!record.drained);
    let former = status.former_seeds.iter();
    let former: Vec<_> = former
        .map(|former| (former.name.as_str(), former.epoch))
        .collect();
    assert_eq!(former, [("seed-a", 1), ("seed-b", 2)]);
    // The destination wakes up: the restore is refused.
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let late = json!({"ownership": {"phase": "Opening", "chain": "Final"}});
    let words = "may only take its own entry out of status.formerSeeds";
    refused(garden.patch_status(&b, "returned", late).await, words);
    // The restore of the source ends the former residency of the source alone.
    let left = json!([{"name": "seed-b", "epoch": 2}]);
    let ended = json!({"formerSeeds": left, "lastOperation": operation("Restore", "Succeeded")});
    allowed(garden.patch_status(&a, "returned", ended).await);
}

async fn a_call_off_after_the_seal_begins_a_new_epoch(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    create(garden, "sealed").await;
    let sealing = json!({"ownership": {"epoch": 4, "phase": "Sealing"}, "lastOperation": operation("Migrate", "Processing")});
    garden.status(&shoots, "sealed", sealing).await;
    let shoot = until(&shoots, "sealed", |shoot| {
        shoot.status.as_ref().is_some_and(|status| status.epoch() > 4)
    })
    .await;
    let status = shoot.status.unwrap();
    let record = status.ownership.unwrap();
    assert_eq!((record.epoch, record.phase), (5, Some(OwnershipPhase::Claiming)));
    let source = record.source.unwrap();
    assert_eq!((source.name.as_str(), source.epoch), ("seed-a", 4));
    assert_eq!(status.seed_name.as_deref(), Some("seed-a"));
    assert!(status.former_seeds.is_empty());
    assert_eq!(status.last_operation.unwrap().type_, Type::Migrate);
}

/// Repeats the request until the takeover: the request is refused while the last sign of life is recent.
pub async fn taken_over(garden: &Garden, name: &str, to: &str) -> Shoot {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    eventually("it is taken over", SOON, || async {
        let shoot = shoots.get(name).await.map_err(|error| error.to_string())?;
        let host = shoot.status.as_ref().and_then(|status| status.seed_name.clone());
        if host.as_deref() == Some(to) {
            return Ok(shoot);
        }
        let ownership = shoot.status.as_ref().and_then(|status| status.ownership.as_ref());
        let consented = ownership.is_some_and(|ownership| {
            let approval = ownership.approval.as_ref();
            approval.is_some_and(|approval| approval.epoch == ownership.epoch)
        });
        if !consented && !shoot.annotations().contains_key(SHOOT_FORCE_RESTORE) {
            ask_again(garden, name).await;
        }
        Err(format!("it is {:?}", shoot.status))
    })
    .await
    .unwrap()
}

pub async fn check_owners(garden: &Garden, seed: &str, enabled: bool) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let settings = json!({"spec": {"settings": {"ownerChecks": {"enabled": enabled}}}});
    allowed(garden.patch(&seeds, seed, settings).await);
}

pub async fn ask(garden: &Garden, name: &str) {
    ask_for(garden, name, (SHOOT_FORCE_RESTORE, "true")).await;
}

/// As a person with all rights does.
pub async fn ask_for(garden: &Garden, name: &str, (annotation, value): (&str, &str)) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let asked = json!({"metadata": {"annotations": {annotation: value}}});
    allowed(garden.patch(&shoots, name, asked).await);
}

/// The shoot may have been handed over meanwhile, and then the request is moot.
async fn ask_again(garden: &Garden, name: &str) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let asked = json!({"metadata": {"annotations": {(SHOOT_FORCE_RESTORE): "true"}}});
    drop(garden.patch(&shoots, name, asked).await);
}

pub async fn unasked(garden: &Garden, name: &str) -> Shoot {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    until(&shoots, name, |shoot| {
        !shoot.annotations().contains_key(SHOOT_FORCE_RESTORE)
    })
    .await
}

/// The gardenlet of seed-a is alive while `work` runs.
async fn beside_a_gardenlet<T>(garden: &Garden, work: impl Future<Output = T>) -> T {
    beside_the_gardenlet_of(garden, "seed-a", work).await
}

/// The gardenlet of this seed is alive while `work` runs.
pub async fn beside_the_gardenlet_of<T>(garden: &Garden, seed: &str, work: impl Future<Output = T>) -> T {
    let renewals = async {
        loop {
            allowed(renew(garden, seed).await);
            tokio::time::sleep(RENEWED_EVERY).await;
        }
    };
    tokio::select! {
        done = work => done,
        () = renewals => unreachable!("it never ends"),
    }
}

async fn renew(garden: &Garden, seed: &str) -> Result<(), kube::Error> {
    let leases: Api<Lease> = garden.admin("gardener-system-seed-lease");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": seed},
        "spec": {"renewTime": format!("{:.6}", clock::now())},
    });
    garden.apply(&leases, seed, lease).await
}
