//! The BackupBuckets and BackupEntries, which garden-controller-manager creates and assigns.

use api::{
    constants::{
        BACKUP_ENTRY_ASSIGNED_IN_EPOCH, BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH,
        BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH, CONFIRMATION_DELETION, finalizer::GARDENER,
    },
    gardencore::{BackupBucket, BackupEntry, Seed, Shoot},
};
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use testkit::eventually;

use crate::{
    SOON,
    garden::{self, Garden, NAMESPACE, allowed, operation, refused},
    gone, until,
};

/// R7-47, R17-22, R17-23: after the shoot, and not before.
pub async fn follow_their_shoot(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    garden
        .shoot("heavy", "seed-b", Some("seed-a"), ("Migrate", "Processing"))
        .await;
    let ids = json!({"technicalID": "shoot--dev--heavy", "uid": "h"});
    garden.status(&shoots, "heavy", ids).await;
    let [of_a, of_b] = [garden.bucket_of("seed-a").await, garden.bucket_of("seed-b").await];
    garden.entry("shoot--dev--heavy--h", "seed-a", &of_a).await;
    let former = json!([{"name": "seed-a", "epoch": 1}]);
    let handed_over = json!({
        "seedName": "seed-b", "ownership": {"epoch": 2}, "formerSeeds": former,
        "lastOperation": operation("Migrate", "Succeeded"),
    });
    garden.status(&shoots, "heavy", handed_over).await;
    let entry = until(&entries, "shoot--dev--heavy--h", |entry| {
        entry.spec.seed_name.as_deref() == Some("seed-b")
    })
    .await;
    assert_eq!(entry.spec.bucket_name, of_b);
    assert_eq!(entry.annotations()[BACKUP_ENTRY_ASSIGNED_IN_EPOCH], "2");
    // The former seed may not take an annotation away any more.
    assert!(!entry.annotations().contains_key("gardener.cloud/operation"));
    assert_eq!(entry.owner_references().len(), 1);
    // The bucket with the data was recorded before.
    let heavy = shoots.get("heavy").await.unwrap();
    let record = heavy.status.unwrap().ownership.unwrap();
    assert_eq!(record.recorded_source_bucket(), Some(of_a.as_str()));
    let source = until(&entries, "source-shoot--dev--heavy--h", |_| true).await;
    let spec = (source.spec.bucket_name.as_str(), source.spec.seed_name.as_deref());
    assert_eq!(spec, (of_a.as_str(), Some("seed-b")));
    // No host removes the backups of an entry that is gone before the host has seen the entry.
    assert_eq!(source.finalizers(), [GARDENER]);
    // A deleted source entry comes back until the host has marked its own entry.
    entries
        .delete(&source.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    let released = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&entries, &source.name_any(), released.clone()).await);
    let is_new = |new: &BackupEntry| new.uid() != source.uid();
    until(&entries, "source-shoot--dev--heavy--h", is_new).await;
    let b: Api<BackupEntry> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let mark = json!({"metadata": {"annotations": {(BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH): "2"}}});
    allowed(garden.patch(&b, "shoot--dev--heavy--h", mark).await);
    b.delete(&source.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    allowed(garden.patch(&b, &source.name_any(), released).await);
    gone(&entries, &source.name_any()).await;
    // The end is recorded where the host cannot write, and the host cannot take its mark back.
    let is_recorded = |own: &BackupEntry| own.annotations().contains_key(BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH);
    let own = until(&entries, "shoot--dev--heavy--h", is_recorded).await;
    assert_eq!(own.annotations()[BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH], "2");
    let removed = json!({"metadata": {"annotations": {(BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH): null}}});
    refused(
        garden.patch(&b, "shoot--dev--heavy--h", removed).await,
        "the source entry of epoch 2 has ended",
    );
}

/// The certificate of the host writes the mark of the end and deletes the source entry, before the host has
/// opened any data.
pub async fn of_the_source_outlive_marks_in_phase_claiming(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    garden
        .shoot("claimed", "seed-b", Some("seed-a"), ("Migrate", "Processing"))
        .await;
    let ids = json!({"technicalID": "shoot--dev--claimed", "uid": "c"});
    garden.status(&shoots, "claimed", ids).await;
    let (own, source) = ("shoot--dev--claimed--c", "source-shoot--dev--claimed--c");
    let bucket = garden.bucket_of("seed-a").await;
    garden.entry(own, "seed-a", &bucket).await;
    let former = json!({"name": "seed-a", "epoch": 1});
    let handed_over = json!({
        "seedName": "seed-b", "formerSeeds": [former], "lastOperation": operation("Migrate", "Succeeded"),
        "ownership": {"epoch": 2, "phase": "Claiming", "source": former, "drained": true},
    });
    garden.status(&shoots, "claimed", handed_over).await;
    until(&entries, own, |entry| {
        entry.spec.seed_name.as_deref() == Some("seed-b")
    })
    .await;
    let first = until(&entries, source, |_| true).await;
    let b: Api<BackupEntry> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let mark = json!({"metadata": {"annotations": {(BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH): "2"}}});
    allowed(garden.patch(&b, own, mark).await);
    b.delete(source, &DeleteParams::default()).await.unwrap();
    let released = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&b, source, released).await);
    until(&entries, source, |entry| entry.uid() != first.uid()).await;
    let own = entries.get(own).await.unwrap();
    assert!(!own.annotations().contains_key(BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH));
}

/// The garden creates the objects before the host begins with the backups, and no seed has to be alive.
pub async fn are_named_by_the_garden(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let buckets: Api<BackupBucket> = Api::all(garden.administrator());
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "namespace": "seed-seed-of-backups", "name": "backup"});
    let backup = json!({"provider": "local", "region": "here", "credentialsRef": secret});
    garden.bring(&garden::seed("seed-of-backups")).await.unwrap();
    let backup = json!({"spec": {"backup": backup}});
    allowed(garden.patch(&seeds, "seed-of-backups", backup).await);
    let uid = garden.bucket_of("seed-of-backups").await;
    let bucket = until(&buckets, &uid, |_| true).await;
    assert_eq!(bucket.spec.seed_name.as_deref(), Some("seed-of-backups"));
    let other = json!({"spec": {"backup": {"providerConfig": {"kind": "Any", "apiVersion": "any/v1"}}}});
    allowed(garden.patch(&seeds, "seed-of-backups", other).await);
    until(&buckets, &uid, |bucket| bucket.spec.provider_config.is_some()).await;
    // The garbage collector would delete a bucket whose owner does not exist.
    // The owner of this test exists, so that the bucket stays until the controller has removed the owner.
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let namespace_uid = namespaces.get(NAMESPACE).await.unwrap().uid();
    let existing = json!({"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE, "uid": namespace_uid});
    let planted = json!({"metadata": {"ownerReferences": [existing]}});
    allowed(garden.patch(&buckets, &uid, planted).await);
    until(&buckets, &uid, |bucket| bucket.owner_references().is_empty()).await;

    garden
        .shoot(
            "backed-up",
            "seed-of-backups",
            Some("seed-of-backups"),
            ("Create", "Processing"),
        )
        .await;
    let ids = json!({"technicalID": "shoot--dev--backed-up", "uid": "u"});
    garden.status(&shoots, "backed-up", ids).await;
    let entry = until(&entries, "shoot--dev--backed-up--u", |_| true).await;
    let spec = (entry.spec.bucket_name.as_str(), entry.spec.seed_name.as_deref());
    assert_eq!(spec, (uid.as_str(), Some("seed-of-backups")));
    assert_eq!(entry.annotations()[BACKUP_ENTRY_ASSIGNED_IN_EPOCH], "1");
    let owner = &entry.owner_references()[0];
    assert_eq!(
        (owner.name.as_str(), owner.block_owner_deletion),
        ("backed-up", Some(false))
    );
}

/// An older version let each seed create entries: an entry that disagrees is reported and not changed.
pub async fn of_a_planted_entry_are_reported(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    garden.entry("shoot--dev--squatted--s", "seed-a", "planted").await;
    garden
        .shoot("squatted", "seed-a", Some("seed-a"), ("Create", "Processing"))
        .await;
    let ids = json!({"technicalID": "shoot--dev--squatted", "uid": "s"});
    garden.status(&shoots, "squatted", ids).await;
    let events: Api<Event> = garden.admin(NAMESPACE);
    eventually("the entry is reported", SOON, || async {
        let all = events.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?.items;
        let is_report = |event: &&Event| event.reason.as_deref() == Some("BackupEntryNotOfShoot");
        let notes = all
            .iter()
            .filter(is_report)
            .filter_map(|event| event.note.as_deref());
        let report = notes
            .into_iter()
            .find(|note| note.contains("shoot--dev--squatted--s"));
        report.map(|_| ()).ok_or_else(|| "no Event".to_owned())
    })
    .await
    .unwrap();
    let left = entries.get("shoot--dev--squatted--s").await.unwrap();
    assert_eq!(left.spec.bucket_name, "planted");
}

/// The backups of a deleted Shoot stay where no process may remove them, and an administrator learns of that.
pub async fn of_a_lost_seed_are_reported(garden: &Garden) {
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    garden
        .entry("shoot--dev--stranded--s", "seed-lost", "bucket-stranded")
        .await;
    garden.finalizer(&entries, "shoot--dev--stranded--s").await;
    let params = DeleteParams::default();
    entries.delete("shoot--dev--stranded--s", &params).await.unwrap();
    let events: Api<Event> = garden.admin(NAMESPACE);
    eventually("the entry is reported", SOON, || async {
        let all = events.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?.items;
        let is_report = |event: &Event| {
            let note = event.note.as_deref().unwrap_or_default();
            event.reason.as_deref() == Some("BackupEntryWaitsForSeed")
                && ["seed-lost", "bucket-stranded"]
                    .iter()
                    .all(|part| note.contains(part))
        };
        all.iter()
            .any(is_report)
            .then_some(())
            .ok_or_else(|| "no Event".to_owned())
    })
    .await
    .unwrap();
    let left = entries.get("shoot--dev--stranded--s").await.unwrap();
    assert_eq!(left.finalizers(), [GARDENER]);
    let released = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&entries, "shoot--dev--stranded--s", released).await);
}

/// A seed that keeps backups. Returns the bucket of the seed.
async fn seed_with_bucket(garden: &Garden, name: &str) -> String {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let namespace = format!("seed-{name}");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "namespace": namespace, "name": "backup"});
    let backup = json!({"provider": "local", "region": "here", "credentialsRef": secret});
    garden.bring(&garden::seed(name)).await.unwrap();
    allowed(
        garden
            .patch(&seeds, name, json!({"spec": {"backup": backup}}))
            .await,
    );
    garden.bucket_of(name).await
}

/// A Shoot on seed-a in epoch 1. Returns the uid.
async fn shoot_for_preparation(garden: &Garden, name: &str) -> String {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot(name, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let ids = json!({"technicalID": format!("shoot--dev--{name}"), "uid": "p"});
    garden.status(&shoots, name, ids).await;
    shoots.get(name).await.unwrap().uid().unwrap()
}

/// A grant for a destination in epoch 1.
fn grant(uid: &str, destination: &str, expiry: &str) -> serde_json::Value {
    let grant =
        json!({"uid": uid, "source": "seed-a", "destination": destination, "epoch": 1, "expiry": expiry});
    json!({"liveMigration": {"preparation": grant}})
}

/// Each end of a grant removes the entry, with no seed alive.
pub async fn of_a_preparation_follow_the_grant(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let (one, two) = ("2999-01-01T00:00:00Z", "2999-01-01T00:00:01Z");
    let bucket = seed_with_bucket(garden, "seed-chain").await;
    let other = seed_with_bucket(garden, "seed-chain-two").await;
    let uid = shoot_for_preparation(garden, "chained").await;
    let (first, second) = (
        "prepared-1-32472144000-shoot--dev--chained--p",
        "prepared-1-32472144001-shoot--dev--chained--p",
    );
    garden
        .status(&shoots, "chained", grant(&uid, "seed-chain", one))
        .await;
    let entry = until(&entries, first, |_| true).await;
    let spec = (entry.spec.bucket_name.as_str(), entry.spec.seed_name.as_deref());
    assert_eq!(spec, (bucket.as_str(), Some("seed-chain")));
    assert_eq!(entry.annotations()[BACKUP_ENTRY_ASSIGNED_IN_EPOCH], "2");
    assert_eq!(entry.owner_references()[0].uid, uid);
    // A dead destination cannot remove a finalizer.
    assert!(entry.finalizers().is_empty());
    // The withdrawal.
    let none = json!({"liveMigration": null});
    garden.status(&shoots, "chained", none.clone()).await;
    gone(&entries, first).await;
    // A different destination.
    garden
        .status(&shoots, "chained", grant(&uid, "seed-chain", one))
        .await;
    until(&entries, first, |_| true).await;
    garden
        .status(&shoots, "chained", grant(&uid, "seed-chain-two", two))
        .await;
    let entry = until(&entries, second, |_| true).await;
    assert_eq!(entry.spec.bucket_name, other);
    gone(&entries, first).await;
    // The expiry, also before the withdrawal.
    let past = grant(&uid, "seed-chain-two", "2020-01-01T00:00:00Z");
    garden.status(&shoots, "chained", past).await;
    gone(&entries, second).await;
    // A takeover by a third seed: no process withdraws the grant.
    garden
        .status(&shoots, "chained", grant(&uid, "seed-chain", one))
        .await;
    until(&entries, first, |_| true).await;
    let taken = json!({"seedName": "seed-c", "ownership": {"epoch": 2}});
    garden.status(&shoots, "chained", taken).await;
    gone(&entries, first).await;
    garden.status(&shoots, "chained", none).await;
}

/// An older version of the garden let seeds create entries, and a destination reads the credentials of the
/// bucket that the entry names.
pub async fn of_a_preparation_are_in_the_bucket_of_the_destination(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let bucket = seed_with_bucket(garden, "seed-chain-own").await;
    let uid = shoot_for_preparation(garden, "unplanted").await;
    let (own, source) = ("shoot--dev--unplanted--p", "source-shoot--dev--unplanted--p");
    let name = "prepared-1-32472144000-shoot--dev--unplanted--p";
    let stale = "prepared-1-32472143999-shoot--dev--unplanted--p";
    let of_a = garden.bucket_of("seed-a").await;
    garden.entry(own, "seed-a", &of_a).await;
    for planted in [name, stale] {
        garden.entry(planted, "seed-chain-own", &of_a).await;
    }
    let granted = grant(&uid, "seed-chain-own", "2999-01-01T00:00:00Z");
    garden.status(&shoots, "unplanted", granted).await;
    until(&entries, name, |entry| entry.spec.bucket_name == bucket).await;
    gone(&entries, stale).await;
    // The entries of residencies do not change.
    let kept = entries.get(own).await.unwrap();
    let spec = (kept.spec.bucket_name.as_str(), kept.spec.seed_name.as_deref());
    assert_eq!(spec, (of_a.as_str(), Some("seed-a")));
    assert!(entries.get_opt(source).await.unwrap().is_none());
    let seen = shoots.get("unplanted").await.unwrap();
    assert_eq!(seen.status.unwrap().ownership, None);
    // An entry that an administrator has changed.
    let elsewhere = json!({"spec": {"bucketName": of_a}});
    allowed(garden.patch(&entries, name, elsewhere).await);
    until(&entries, name, |entry| entry.spec.bucket_name == bucket).await;
    // The deletion of the Shoot voids the grant.
    let metadata = json!({"finalizers": [GARDENER], "annotations": {(CONFIRMATION_DELETION): "true"}});
    allowed(
        garden
            .patch(&shoots, "unplanted", json!({"metadata": metadata}))
            .await,
    );
    shoots
        .delete("unplanted", &DeleteParams::default())
        .await
        .unwrap();
    gone(&entries, name).await;
}
