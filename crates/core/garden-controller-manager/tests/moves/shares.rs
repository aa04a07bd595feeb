//! The slots of moves to a seed, shared between two projects.

use api::gardencore::{BackupEntry, Shoot};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, operation},
    journey::{approval, as_seed, beside_the_controller, create, edit, is_for, make_ready, reason, until},
};

/// The namespace of the second project.
const SECOND: &str = "garden-shares";
/// The destination of all moves.
const TO: &str = "seed-shared";

/// The destination takes a single shoot at a time. The first project has two shoots, and both asked earlier
/// than the shoot of the second project.
pub async fn a_free_slot_goes_to_a_different_project(garden: &Garden) {
    garden.bring(&garden::seed(TO)).await.unwrap();
    make_ready(garden, TO).await;
    for name in ["shares-first", "shares-next"] {
        create(garden, name).await;
    }
    create_in_second_project(garden, "shares-guest").await;
    Box::pin(beside_the_controller(
        garden,
        &["--concurrent-migrations=1"],
        take_turns(garden),
    ))
    .await;
}

async fn take_turns(garden: &Garden) {
    let (shoots, guests): (Api<Shoot>, Api<Shoot>) = (garden.admin(NAMESPACE), garden.admin(SECOND));
    let busy = Some("DestinationSeedBusy".to_owned());
    allowed(edit(garden, "shares-first", json!({"seedName": TO})).await);
    until(&shoots, "shares-first", |shoot| is_for(shoot, TO)).await;
    let leaves = json!({"lastOperation": operation("Migrate", "Processing")});
    as_seed(garden, "shares-first", leaves).await;
    allowed(edit(garden, "shares-next", json!({"seedName": TO})).await);
    until(&shoots, "shares-next", |shoot| reason(shoot) == busy).await;
    let request = |seed: &str| json!({"spec": {"seedName": seed}});
    allowed(garden.patch(&guests, "shares-guest", request(TO)).await);
    until(&guests, "shares-guest", |shoot| reason(shoot) == busy).await;
    // The slot is free.
    allowed(edit(garden, "shares-first", json!({"seedName": "seed-a"})).await);
    until(&guests, "shares-guest", |shoot| is_for(shoot, TO)).await;
    let waits = shoots.get("shares-next").await.unwrap();
    assert_eq!((approval(&waits), reason(&waits)), (None, busy));
    allowed(edit(garden, "shares-next", json!({"seedName": "seed-a"})).await);
    allowed(garden.patch(&guests, "shares-guest", request("seed-a")).await);
    until(&guests, "shares-guest", |shoot| approval(shoot).is_none()).await;
}

/// A shoot with backups on seed-a, whose bucket is ready.
async fn create_in_second_project(garden: &Garden, name: &str) {
    let labels = json!({"project.gardener.cloud/name": "shares", "gardener.cloud/role": "project"});
    let metadata = json!({"name": SECOND, "labels": labels});
    garden
        .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
        .await
        .unwrap();
    garden
        .shoot_in(SECOND, name, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let shoots: Api<Shoot> = garden.admin(SECOND);
    let uid = shoots.get(name).await.unwrap().uid().unwrap();
    let id = format!("shoot--shares--{name}");
    garden
        .status(&shoots, name, json!({"technicalID": id, "uid": uid}))
        .await;
    let (entries, entry): (Api<BackupEntry>, String) = (garden.admin(SECOND), format!("{id}--{uid}"));
    let bucket = garden.bucket_of("seed-a").await;
    allowed(
        garden
            .apply(&entries, &entry, garden::entry(&entry, "seed-a", &bucket))
            .await,
    );
}
