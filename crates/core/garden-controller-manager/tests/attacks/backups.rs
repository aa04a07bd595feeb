//! Objects for backups that a seed plants for shoots and Seeds elsewhere, and false words about the bucket
//! from which a shoot is restored (threats.md 13).

use api::{
    constants::{
        BACKUP_ENTRY_ASSIGNED_IN_EPOCH, BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH,
        BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH, CONFIRMATION_DELETION, OWNERSHIP_EPOCH, seed_name_label,
    },
    gardencore::{BackupBucket, BackupEntry, Seed, Shoot},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, allowed, refused, try_create, try_delete};

fn entry(name: &str, seed: &str) -> BackupEntry {
    let mut entry = garden::entry(name, seed, "bucket-of-planted");
    // A takeover of an earlier version prefers the source BackupEntry of a late epoch.
    entry["metadata"]["annotations"] = json!({(OWNERSHIP_EPOCH): "999"});
    serde_json::from_value(entry).unwrap()
}

/// A later takeover would restore the planted data and report success, or the shoot would never get backups.
/// Neither a right nor a policy alone allows an entry, whoever has the shoot.
pub async fn a_seed_plants_no_entry(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden.shoot("planted", "seed-a", None, ("", "")).await;
    let uid = shoots.get("planted").await.unwrap().uid().unwrap();
    let id = format!("shoot--dev--planted--{uid}");
    let params = PostParams::default();
    let a: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<BackupEntry> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let names = [
        id.clone(),
        format!("source-{id}"),
        format!("prepared-1-32472144000-{id}"),
    ];
    for name in &names {
        let planted = a.create(&params, &entry(name, "seed-a")).await;
        refused(planted.map(drop), "cannot create resource \"backupentries\"");
    }
    garden
        .grant_gardenlets("core.gardener.cloud", "backupentries", "create")
        .await;
    let words = "garden-controller-manager creates the BackupEntries of each Shoot";
    garden::until_refused(words, || try_create(&a, entry("any", "seed-a"))).await;
    let status = json!({"seedName": "seed-a", "technicalID": "shoot--dev--planted", "uid": uid});
    garden.status(&shoots, "planted", status).await;
    for (entries, seed) in [(&a, "seed-a"), (&b, "seed-b")] {
        for name in &names {
            let planted = entries.create(&params, &entry(name, seed)).await;
            refused(planted.map(drop), words);
        }
    }
    let manager: Api<BackupEntry> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    allowed(manager.create(&params, &entry(&id, "seed-a")).await.map(drop));
    an_administrator_deletes_a_planted_entry(garden, &id).await;
}

/// An older version let seeds create entries. No process deletes the backups of a living shoot by accident.
async fn an_administrator_deletes_a_planted_entry(garden: &Garden, name: &str) {
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let editor = garden.editor_of_backups(NAMESPACE).await.unwrap();
    let editor: Api<BackupEntry> = Api::namespaced(editor, NAMESPACE);
    let params = DeleteParams::default();
    let words = "holds the backups of shoot planted, which lives";
    // The policy reads the Shoot from a cache.
    let waited: Api<BackupEntry> = entries.clone();
    let _ = testkit::eventually(
        "the Shoot is known",
        std::time::Duration::from_secs(60),
        || async {
            let dry = DeleteParams::default().dry_run();
            match waited.delete(name, &dry).await {
                Err(error) if error.to_string().contains(words) => Ok(()),
                other => Err(format!("{:?}", other.map(drop))),
            }
        },
    )
    .await;
    refused(entries.delete(name, &params).await.map(drop), words);
    let confirmed = json!({"metadata": {"annotations": {(CONFIRMATION_DELETION): "true"}}});
    garden.patch(&entries, name, confirmed).await.unwrap();
    refused(editor.delete(name, &params).await.map(drop), words);
    let a: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    refused(a.delete(name, &params).await.map(drop), words);
    allowed(entries.delete(name, &params).await.map(drop));
}

/// The seed of an entry reads the credentials of the bucket of the entry.
pub async fn an_editor_of_entries_gives_no_bucket_to_a_seed(garden: &Garden) {
    let editor = garden.editor_of_backups(NAMESPACE).await.unwrap();
    let editor: Api<BackupEntry> = Api::namespaced(editor, NAMESPACE);
    let words = "may not create BackupEntry gift of bucket bucket-of-planted for seed \"seed-a\"";
    garden::until_refused(words, || try_create(&editor, entry("gift", "seed-a"))).await;
    let created = editor
        .create(&PostParams::default(), &entry("gift", "seed-a"))
        .await;
    refused(created.map(drop), words);
}

/// Under the uid of a different Seed, a BackupBucket would get the backups of that seed, or block the name.
pub async fn a_seed_makes_no_bucket(garden: &Garden) {
    let buckets: Api<BackupBucket> = Api::all(garden.seed_a.clone());
    let [own, foreign] = [garden.bucket_of("seed-a").await, garden.bucket_of("seed-b").await];
    let bucket = |name: &str| serde_json::from_value::<BackupBucket>(garden::bucket(name, "seed-a")).unwrap();
    let params = PostParams::default();
    let created = buckets.create(&params, &bucket(&foreign)).await;
    refused(created.map(drop), "cannot create resource \"backupbuckets\"");
    garden
        .grant_gardenlets("core.gardener.cloud", "backupbuckets", "create")
        .await;
    let words = "garden-controller-manager creates the BackupBucket of each Seed";
    garden::until_refused(words, || try_create(&buckets, bucket("any"))).await;
    for name in [own.as_str(), foreign.as_str(), "any"] {
        let created = buckets.create(&params, &bucket(name)).await;
        refused(created.map(drop), words);
    }
    let manager: Api<BackupBucket> = Api::all(garden.manager.clone());
    allowed(manager.create(&params, &bucket(&own)).await.map(drop));
    // The spec decides about the credentials of the bucket.
    let elsewhere =
        json!({"spec": {"credentialsRef": {"kind": "Secret", "name": "x", "namespace": "garden"}}});
    let changed = garden.patch(&buckets, &own, elsewhere).await;
    refused(changed, "may not change the spec of BackupBucket");
    let annotation = json!({"metadata": {"annotations": {"x": "y"}}});
    let b: Api<BackupBucket> = Api::all(garden.seed_b.clone());
    refused(
        garden.patch(&b, &own, annotation.clone()).await,
        &format!("BackupBucket {own} of seed \"seed-a\""),
    );
    allowed(garden.patch(&buckets, &own, annotation).await);
}

/// The destination restores from the bucket that the Shoot records, and a record of the host would lead a
/// later destination to planted data.
pub async fn a_seed_names_no_bucket_for_a_restore(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let claiming = json!({"epoch": 2, "phase": "Claiming", "source": {"name": "seed-a", "epoch": 1}});
    garden
        .shoot("new-epoch", "seed-b", Some("seed-b"), ("Migrate", "Aborted"))
        .await;
    let former = json!([{"name": "seed-a", "epoch": 1}]);
    let status = json!({"seedName": "seed-b", "ownership": claiming, "formerSeeds": former});
    garden.status(&shoots, "new-epoch", status).await;
    let recorded = |bucket: &str| json!({"ownership": {"sourceBucket": {"name": bucket, "epoch": 1}}});
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let words = "may not change status.ownership.sourceBucket of Shoot new-epoch";
    refused(
        garden.patch_status(&b, "new-epoch", recorded("planted")).await,
        words,
    );
    // Two policies refuse the former seed.
    refused(
        garden.patch_status(&a, "new-epoch", recorded("planted")).await,
        "\"new-epoch\" is forbidden",
    );
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    allowed(
        garden
            .patch_status(&manager, "new-epoch", recorded("right"))
            .await,
    );
    for other in [recorded("planted"), json!({"ownership": {"sourceBucket": null}})] {
        refused(garden.patch_status(&b, "new-epoch", other).await, words);
    }
}

/// The epoch of the assignment lets the host begin, and the garbage collector needs the owner.
pub async fn a_seed_changes_no_owner_data_of_its_entry(garden: &Garden) {
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    garden.entry("hosted", "seed-a", "bucket-a").await;
    // The garbage collector deletes an entry whose owner does not exist.
    garden
        .shoot("owns-entry", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let owner = garden.admin::<Shoot>(NAMESPACE).get("owns-entry").await.unwrap();
    let owner = kube::Resource::owner_ref(&owner, &()).unwrap();
    let metadata =
        json!({"annotations": {(BACKUP_ENTRY_ASSIGNED_IN_EPOCH): "3"}, "ownerReferences": [owner]});
    let assigned = json!({"metadata": metadata});
    garden.patch(&entries, "hosted", assigned).await.unwrap();
    let a: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let words = "may not change labels, owner references or annotation";
    for metadata in [
        json!({"annotations": {(BACKUP_ENTRY_ASSIGNED_IN_EPOCH): "1"}}),
        json!({"annotations": {(BACKUP_ENTRY_ASSIGNED_IN_EPOCH): null}}),
        json!({"ownerReferences": null}),
        json!({"labels": {"x": "y"}}),
    ] {
        let body = json!({"metadata": metadata});
        refused(garden.patch(&a, "hosted", body).await, words);
    }
    let asked = json!({(OWNERSHIP_EPOCH): "3", "gardener.cloud/operation": "restore"});
    let asked = json!({"metadata": {"annotations": asked, "finalizers": ["gardener"]}});
    allowed(garden.patch(&a, "hosted", asked).await);
    refused(
        garden
            .patch(&a, "hosted", json!({"spec": {"bucketName": "planted"}}))
            .await,
        "may not change the spec of BackupEntry hosted",
    );
    let released = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&a, "hosted", released).await);
}

/// Without the mark garden-controller-manager would create the source entry again, and the host would read
/// the credentials of a former seed again.
pub async fn a_seed_marks_the_end_of_a_source_entry_once(garden: &Garden) {
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let a: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    garden.entry("marked", "seed-a", "bucket-a").await;
    let with = |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
    let assigned = with(BACKUP_ENTRY_ASSIGNED_IN_EPOCH, json!("2"));
    garden.patch(&entries, "marked", assigned).await.unwrap();
    // A mark of a different epoch has no effect.
    for value in [json!("1"), Value::Null, json!("2"), json!("2")] {
        let mark = with(BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH, value);
        allowed(garden.patch(&a, "marked", mark).await);
    }
    for value in [Value::Null, json!("1"), json!(""), json!("x"), json!("03")] {
        let mark = with(BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH, value);
        refused(
            garden.patch(&a, "marked", mark).await,
            "source-released-in-epoch of BackupEntry marked: the source entry of epoch 2 has ended",
        );
    }
    // The record of garden-controller-manager.
    let ended = with(BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH, json!("2"));
    let words = "source-ended-in-epoch of BackupEntry marked";
    refused(garden.patch(&a, "marked", ended.clone()).await, words);
    garden.patch(&entries, "marked", ended).await.unwrap();
    let removed = with(BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH, Value::Null);
    refused(garden.patch(&a, "marked", removed).await, words);
    // The seed keeps the shoot in a new epoch, and garden-controller-manager does not assign the entry again.
    let later = with(BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH, json!("3"));
    allowed(garden.patch(&a, "marked", later).await);
}

/// A foreign finalizer stays after the hand-over, and keeps the entry, the project and the Seed.
pub async fn a_seed_adds_no_finalizer_to_its_backups(garden: &Garden) {
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    garden.entry("finalized", "seed-a", "bucket-a").await;
    let a: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let with = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    let words = "may not change the finalizers of BackupEntry finalized";
    let foreign = [
        json!(["gardener", "x.example/hold"]),
        json!(["x.example/hold"]),
        json!(["gardener", "gardener"]),
    ];
    for finalizers in foreign.clone() {
        refused(garden.patch(&a, "finalized", with(finalizers)).await, words);
    }
    for finalizers in [json!(["gardener"]), json!(null), json!(["gardener"])] {
        allowed(garden.patch(&a, "finalized", with(finalizers)).await);
    }
    // A finalizer of an administrator stays.
    let held = with(json!(["x.example/hold", "gardener"]));
    garden.patch(&entries, "finalized", held).await.unwrap();
    refused(
        garden.patch(&a, "finalized", with(json!(["gardener"]))).await,
        words,
    );
    allowed(
        garden
            .patch(&a, "finalized", with(json!(["x.example/hold"])))
            .await,
    );

    let made: Api<BackupBucket> = Api::all(garden.administrator());
    garden
        .apply(&made, "finalized", garden::bucket("finalized", "seed-a"))
        .await
        .unwrap();
    let buckets: Api<BackupBucket> = Api::all(garden.seed_a.clone());
    for finalizers in foreign {
        refused(
            garden.patch(&buckets, "finalized", with(finalizers)).await,
            "may not change the finalizers of BackupBucket finalized",
        );
    }
    allowed(
        garden
            .patch(&buckets, "finalized", with(json!(["gardener"])))
            .await,
    );
}

/// A deletion cannot be taken back: the honest gardenlet then deletes the bucket with the last entry, and
/// restores of other seeds from the bucket stop after the hand-over.
pub async fn a_seed_deletes_its_bucket_with_its_seed_alone(garden: &Garden) {
    let mut seed = garden::seed("storing");
    seed["metadata"]["finalizers"] = json!(["core.gardener.cloud/seed", "gardener"]);
    garden.bring(&seed).await.unwrap();
    let mut bucket = garden::bucket("storing", "storing");
    bucket["metadata"]["finalizers"] = json!(["gardener"]);
    garden.bring(&bucket).await.unwrap();
    let user = "gardener.cloud:system:seed:storing";
    let client = garden.client(user, &["gardener.cloud:system:seeds"]).await;
    let (buckets, seeds): (Api<BackupBucket>, Api<Seed>) =
        (Api::all(client), Api::all(garden.administrator()));
    let words = "may not delete BackupBucket storing: Seed storing is not being deleted";
    let params = DeleteParams::default();
    // The API server reads the new Seed a moment later.
    garden::until_refused(words, || try_delete(&buckets, "storing")).await;
    refused(buckets.delete("storing", &params).await.map(drop), words);
    let released = json!({"metadata": {"finalizers": null}});
    refused(
        garden.patch(&buckets, "storing", released.clone()).await,
        "may not remove finalizer gardener of BackupBucket storing",
    );
    // The garbage collector deletes an object whose owners do not exist.
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "none"});
    let label = json!({(seed_name_label("storing")): "false"});
    for metadata in [json!({"ownerReferences": [owner]}), json!({"labels": label})] {
        refused(
            garden
                .patch(&buckets, "storing", json!({"metadata": metadata}))
                .await,
            "may not change labels or owner references of BackupBucket storing",
        );
    }
    // An honest gardenlet asks for the bucket, and keeps the metadata of others.
    let asked = json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}});
    allowed(garden.patch(&buckets, "storing", asked).await);
    // garden-controller-manager keeps the Seed while an object needs the Seed.
    seeds.delete("storing", &params).await.unwrap();
    refused(buckets.delete("storing", &params).await.map(drop), words);
    let unneeded = json!({"metadata": {"finalizers": ["gardener"]}});
    allowed(garden.patch(&seeds, "storing", unneeded).await);
    garden::until_allowed(|| try_delete(&buckets, "storing")).await;
    allowed(buckets.delete("storing", &params).await.map(drop));
    allowed(garden.patch(&buckets, "storing", released).await);
}
