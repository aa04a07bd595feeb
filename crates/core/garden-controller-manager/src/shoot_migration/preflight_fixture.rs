//! A planned move without obstacles; tests change the state and judge the move.

#![allow(clippy::unwrap_used)]

use api::{
    gardencore::{
        BackupBucketSpec, BackupBucketStatus, BackupEntrySpec, SeedSpec, SeedStatus, ShootSpec, ShootStatus,
        seed::{SeedBackup, SeedProvider},
    },
    meta::{Condition, LastOperation, LastOperationType},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::*;

pub(super) fn epoch() -> Time {
    Time(Timestamp::UNIX_EPOCH)
}

pub(super) struct World {
    pub(super) shoot: Shoot,
    pub(super) destination: Option<Seed>,
    pub(super) source: Option<Seed>,
    pub(super) backup_entry: Option<BackupEntry>,
    pub(super) bucket: Option<BackupBucket>,
    pub(super) extensions: Extensions,
}

fn seed(name: &str) -> Seed {
    let mut seed = Seed::new(
        name,
        SeedSpec {
            backup: Some(SeedBackup {
                provider: "local".into(),
                ..SeedBackup::default()
            }),
            provider: SeedProvider {
                type_: "local".into(),
                ..SeedProvider::default()
            },
            ..SeedSpec::default()
        },
    );
    let conditions = [
        "GardenletReady",
        "SeedSystemComponentsHealthy",
        "BackupBucketsReady",
    ]
    .map(|t| Condition::new(t, ConditionStatus::True, "Fine", "All is well.", epoch()));
    seed.status = Some(SeedStatus {
        conditions: conditions.to_vec(),
        ..SeedStatus::default()
    });
    seed
}

fn world() -> World {
    let mut shoot = Shoot::new(
        "crazy",
        ShootSpec {
            seed_name: Some("b".into()),
            ..ShootSpec::default()
        },
    );
    shoot.status = Some(ShootStatus {
        seed_name: Some("a".into()),
        ..ShootStatus::default()
    });
    let mut bucket = BackupBucket::new("uid-of-b", BackupBucketSpec::default());
    bucket.status = Some(BackupBucketStatus {
        last_operation: Some(LastOperation {
            description: String::new(),
            last_update_time: epoch(),
            progress: 100,
            state: LastOperationState::Succeeded,
            type_: LastOperationType::Create,
        }),
        ..BackupBucketStatus::default()
    });
    World {
        shoot,
        destination: Some(seed("b")),
        source: Some(seed("a")),
        backup_entry: Some(BackupEntry::new("entry", BackupEntrySpec::default())),
        bucket: Some(bucket),
        extensions: Extensions::default(),
    }
}

pub(super) fn judged(change: impl FnOnce(&mut World)) -> Option<Verdict> {
    let mut world = world();
    change(&mut world);
    judge(&Move {
        shoot: &world.shoot,
        destination: world.destination.as_ref(),
        source: world.source.as_ref(),
        backup_entry: world.backup_entry.as_ref(),
        bucket: world.bucket.as_ref(),
        extensions: &world.extensions,
    })
}

#[track_caller]
pub(super) fn refused(reason: &str, words: &str, change: impl FnOnce(&mut World)) {
    let verdict = judged(change).unwrap();
    assert!(!verdict.ready);
    assert_eq!(verdict.reason, reason);
    assert!(verdict.message.contains(words), "{}", verdict.message);
}
