//! An administrator deletes the owner record of a healthy shoot. The bucket still names the seed as the
//! owner, so the shoot serves on. The operator's `renew-ownership` grants the next epoch to the same seed,
//! and with the epoch a record.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e-all`.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use api::{
    constants::condition::OWNERSHIP_VERIFIED,
    gardencore::{Shoot, shoot::OwnershipPhase},
    meta::{ConditionStatus, LastOperationState, find_condition},
};
use kube::api::{Patch, PatchParams};
use repot_tests::{
    external_changes,
    landscape::Landscape,
    lifecycle::{self, MOVE_WITHIN, PROJECT, created, deleted},
    proof,
    shoot::UserShoot,
    writer::Writer,
};
use serde_json::json;

const OBJECTS: usize = 200;
/// For how long the record is missing: five times the validity of an answer (12 s), so that no permit of
/// before is still valid.
const MISSING_FOR: Duration = Duration::from_secs(60);
/// The longest pause between two writes of an undisturbed shoot on a busy machine. A shoot with a sealed etcd
/// never accepts a write again.
const UNDISTURBED: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_deleted_owner_record_ends_no_shoot_and_renew_brings_it_back() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = created(&landscape, "slip").await.unwrap();
    let client = shoot.client().await.unwrap();
    proof::write_data(&client, OBJECTS).await.unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    let seed = landscape.seed("seed-a").unwrap();
    let started = lifecycle::containers(seed, &id).await.unwrap();
    let before = proof::read(&shoot, seed).await.unwrap();

    let mut writer = Writer::start(UserShoot::new(&landscape, PROJECT, &shoot.name), 1);
    writer.has_begun().await.unwrap();
    let name = external_changes::delete_owner_record(&landscape, "seed-a", &id)
        .await
        .unwrap();
    tokio::time::sleep(MISSING_FOR).await;
    let stopped = Instant::now();
    let book = writer.stop().await.unwrap();
    // A shoot that ended for good has no acknowledgement after the last pause.
    let last = book.writes.last().unwrap().at;
    let gap = book.longest_gap().max(stopped.saturating_duration_since(last));
    println!("{name} was missing for {MISSING_FOR:?}: {gap:?} without a write at the longest");
    assert!(gap < UNDISTURBED, "the shoot was not written for {gap:?}");
    assert_eq!(started, lifecycle::containers(seed, &id).await.unwrap());

    let epoch = epoch_of(&shoot.get().await.unwrap());
    let renew = json!({"metadata": {"annotations": {"shoot.gardener.cloud/renew-ownership": "true"}}});
    let params = PatchParams::default();
    shoot
        .api()
        .patch(&shoot.name, &params, &Patch::Merge(renew))
        .await
        .unwrap();
    let renewed = |shoot: &Shoot| is_held(shoot, epoch + 1);
    shoot
        .wait("the seed holds the next epoch", MOVE_WITHIN, renewed)
        .await
        .unwrap();
    // etcd kept its volume, and etcd-druid has reported that before the restoration ended.
    let status = shoot.get().await.unwrap().status.unwrap();
    assert_eq!(status.ownership.unwrap().restored, None, "nothing is lost");
    let values = external_changes::values_of(&landscape, &name, "TXT").unwrap();
    assert_eq!(
        values.len(),
        2,
        "the seed's name was written in both epochs: {values:?}"
    );
    let client = shoot.client().await.unwrap();
    assert_eq!(book.lost(&client).await.unwrap(), Vec::<u64>::new());
    let after = proof::read(&shoot, seed).await.unwrap();
    assert_eq!(before.differences(&after), Vec::<String>::new());
    deleted(&landscape, &shoot).await.unwrap();
}

fn epoch_of(shoot: &Shoot) -> i64 {
    let status = shoot.status.as_ref();
    status
        .and_then(|status| status.ownership.as_ref())
        .map_or(1, |ownership| ownership.epoch)
}

/// Held in this epoch, restored, and confirmed as the owner.
fn is_held(shoot: &Shoot, epoch: i64) -> bool {
    let Some(status) = &shoot.status else { return false };
    let ownership = status.ownership.as_ref();
    let verified = find_condition(&status.conditions, OWNERSHIP_VERIFIED);
    ownership.is_some_and(|now| now.epoch == epoch && now.phase == Some(OwnershipPhase::Held))
        && status
            .last_operation
            .as_ref()
            .is_some_and(|last| last.state == LastOperationState::Succeeded)
        && verified.is_some_and(|verified| verified.status == ConditionStatus::True)
}
