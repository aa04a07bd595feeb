//! Grants to prepare, with the controller at work, and with the rights of the controller by the chart.

use api::{
    constants::{MIGRATION_PREPARE, condition::PREPARED},
    gardencore::{
        Shoot,
        shoot::{LiveMigrationStatus, MigrationPreparation},
    },
    meta::{ConditionStatus, find_condition},
};
use garden_controller_manager::shoot_preparation;
use kube::{Api, ResourceExt};
use runtime::clock;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    garden::{self, Garden, NAMESPACE, allowed},
    journey::{create, make_ready, say, until},
};

pub async fn with_the_controller(garden: &Garden) {
    garden.bring(&garden::seed("seed-prep")).await.unwrap();
    garden.bring(&garden::seed_namespace("seed-prep")).await.unwrap();
    for seed in ["seed-b", "seed-prep"] {
        make_ready(garden, seed).await;
    }
    for name in ["readied", "queued"] {
        create(garden, name).await;
    }
    let work = async {
        a_request_gets_a_grant(garden).await;
        Box::pin(a_seed_prepares_for_few_shoots(garden)).await;
        Box::pin(a_grant_follows_the_destination(garden)).await;
        a_grant_expires(garden).await;
        Box::pin(a_host_ends_the_request(garden)).await;
    };
    Box::pin(beside_the_controller(
        garden,
        &["--preparations-per-seed=1"],
        work,
    ))
    .await;
    Box::pin(beside_the_controller(garden, &[], without_the_setting(garden))).await;
}

async fn beside_the_controller(garden: &Garden, flags: &[&str], work: impl Future<Output = ()>) {
    let context = garden.context(flags);
    let mut controllers = JoinSet::new();
    controllers.spawn(shoot_preparation::run(context.clone()));
    work.await;
    context.shutdown.cancel();
    controllers.shutdown().await;
}

/// The grant is for the present residency, with an end.
async fn a_request_gets_a_grant(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    ask(garden, "readied", json!("seed-b")).await;
    let shoot = until(&shoots, "readied", |shoot| granted(shoot).is_some()).await;
    let grant = granted(&shoot).unwrap();
    assert_eq!(
        (grant.source.as_str(), grant.destination.as_str(), grant.epoch),
        ("seed-a", "seed-b", 1)
    );
    assert_eq!(Some(&grant.uid), shoot.uid().as_ref());
    assert!(grant.expiry.0 > clock::now());
    assert_eq!(reason(&shoot), "Granted");
    assert!(!is_prepared(&shoot));
}

async fn a_seed_prepares_for_few_shoots(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    ask(garden, "queued", json!("seed-b")).await;
    let held = until(&shoots, "queued", |shoot| !reason(shoot).is_empty()).await;
    assert_eq!((granted(&held), reason(&held)), (None, "DestinationSeedBusy"));
    // The cancellation leaves no field.
    ask(garden, "readied", Value::Null).await;
    until(&shoots, "readied", |shoot| live_migration(shoot).is_none()).await;
    ask(garden, "queued", Value::Null).await;
    until(&shoots, "queued", |shoot| live_migration(shoot).is_none()).await;
    ask(garden, "queued", json!("seed-b")).await;
    until(&shoots, "queued", |shoot| is_for(shoot, "seed-b")).await;
}

/// A change of the destination, and a destination that is silent for a time.
async fn a_grant_follows_the_destination(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    ask(garden, "queued", json!("seed-prep")).await;
    let first = until(&shoots, "queued", |shoot| is_for(shoot, "seed-prep")).await;
    let ready = "GardenletReady";
    say(garden, "seed-prep", ready, ConditionStatus::Unknown).await;
    let silent = until(&shoots, "queued", |shoot| granted(shoot).is_none()).await;
    assert_eq!(reason(&silent), "DestinationSeedNotReady");
    say(garden, "seed-prep", ready, ConditionStatus::True).await;
    let again = until(&shoots, "queued", |shoot| is_for(shoot, "seed-prep")).await;
    // The destination reports the condition of its own Seed, and so prolongs no grant.
    let expiry = |shoot: &Shoot| granted(shoot).unwrap().expiry.0;
    assert!(expiry(&again) < expiry(&first));
    // No such seed.
    ask(garden, "queued", json!("seed-nowhere")).await;
    let lost = until(&shoots, "queued", |shoot| granted(shoot).is_none()).await;
    assert_eq!(reason(&lost), "DestinationSeedNotFound");
    ask(garden, "queued", json!("seed-b")).await;
    until(&shoots, "queued", |shoot| is_for(shoot, "seed-b")).await;
}

/// The annotation goes with the grant, so that the request can be repeated.
async fn a_grant_expires(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let past = json!({"liveMigration": {"preparation": {"expiry": "2020-01-01T00:00:00Z"}}});
    garden.status(&shoots, "queued", past).await;
    until(&shoots, "queued", |shoot| {
        live_migration(shoot).is_none() && !shoot.annotations().contains_key(MIGRATION_PREPARE)
    })
    .await;
}

/// A new grant for the same request would have a later expiry, and the slot of the destination stays taken.
async fn a_host_ends_the_request(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let host: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    ask(garden, "queued", json!("seed-b")).await;
    until(&shoots, "queued", |shoot| is_for(shoot, "seed-b")).await;
    let ended = json!({"liveMigration": null});
    allowed(garden.patch_status(&host, "queued", ended).await);
    let ended = until(&shoots, "queued", |shoot| {
        !shoot.annotations().contains_key(MIGRATION_PREPARE)
    })
    .await;
    assert!(live_migration(&ended).is_none());
}

async fn without_the_setting(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    ask(garden, "readied", json!("seed-b")).await;
    let off = until(&shoots, "readied", |shoot| !reason(shoot).is_empty()).await;
    assert_eq!((granted(&off), reason(&off)), (None, "NotEnabled"));
    ask(garden, "readied", Value::Null).await;
    until(&shoots, "readied", |shoot| live_migration(shoot).is_none()).await;
}

async fn ask(garden: &Garden, name: &str, seed: Value) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let body = json!({"metadata": {"annotations": {MIGRATION_PREPARE: seed}}});
    allowed(garden.patch(&shoots, name, body).await);
}

fn live_migration(shoot: &Shoot) -> Option<&LiveMigrationStatus> {
    shoot.status.as_ref()?.live_migration.as_ref()
}

fn granted(shoot: &Shoot) -> Option<&MigrationPreparation> {
    live_migration(shoot)?.preparation.as_ref()
}

fn is_for(shoot: &Shoot, seed: &str) -> bool {
    granted(shoot).is_some_and(|granted| granted.destination == seed)
}

/// The reason of condition `Prepared`; empty without the condition.
fn reason(shoot: &Shoot) -> &str {
    let conditions = live_migration(shoot).map(|recorded| recorded.conditions.as_slice());
    let prepared = find_condition(conditions.unwrap_or_default(), PREPARED);
    prepared.map_or("", |prepared| prepared.reason.as_str())
}

fn is_prepared(shoot: &Shoot) -> bool {
    let conditions = live_migration(shoot).map(|recorded| recorded.conditions.as_slice());
    let prepared = find_condition(conditions.unwrap_or_default(), PREPARED);
    prepared.is_some_and(|prepared| prepared.status == ConditionStatus::True)
}
