//! The BackupEntries of a Shoot: pure decisions.

use api::{
    constants::{BACKUP_ENTRY_ASSIGNED_IN_EPOCH, finalizer::GARDENER},
    gardencore::{BackupEntry, BackupEntrySpec, Seed, Shoot},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};

use super::{decision::destination, source::is_restored};

/// Name prefix of a source BackupEntry.
pub(super) const SOURCE: &str = "source-";

/// The next write to the shoot's own entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OwnEntryStep {
    /// The entry is as it must be, or is being deleted.
    Keep,
    /// The entry does not exist, and must be created.
    Create,
    /// The entry has no owner reference to the Shoot: an older version or an administrator has created it.
    Adopt,
    /// The entry must be assigned to the host and its bucket.
    Assign,
    /// The entry does not agree with the Shoot, with the reason and the remedy.
    Report(String),
}

/// Decides about the shoot's own entry. `host`: the Seed in `status.seedName` of the Shoot.
#[must_use]
pub(super) fn own_entry_step(shoot: &Shoot, host: &Seed, entry: Option<&BackupEntry>) -> OwnEntryStep {
    let Some(entry) = entry else {
        let keeps_backups = host.spec.backup.is_some();
        let is_wanted = shoot.metadata.deletion_timestamp.is_none() || is_restored(shoot);
        return if keeps_backups && is_wanted {
            OwnEntryStep::Create
        } else {
            OwnEntryStep::Keep
        };
    };
    if entry.metadata.deletion_timestamp.is_some() {
        return OwnEntryStep::Keep;
    }
    if destination(shoot, entry).is_some() {
        return OwnEntryStep::Assign;
    }
    let agrees = entry.spec.seed_name.as_deref() == Some(host.name_any().as_str())
        && Some(&entry.spec.bucket_name) == host.uid().as_ref();
    if !agrees {
        // The entry was assigned by a version that left the bucket to the destination.
        if is_restored(shoot) {
            return OwnEntryStep::Assign;
        }
        return OwnEntryStep::Report(disagreement(shoot, host, entry));
    }
    if is_owned(shoot, entry) {
        OwnEntryStep::Keep
    } else {
        OwnEntryStep::Adopt
    }
}

fn disagreement(shoot: &Shoot, host: &Seed, entry: &BackupEntry) -> String {
    let name = entry.name_any();
    format!(
        "BackupEntry {name} names bucket {} and seed \"{}\", and Shoot {} is on seed {} with bucket {}: check where the backups \
         are, and correct the spec of the entry. If a different seed planted the entry, annotate it with \
         confirmation.gardener.cloud/deletion=true, delete it and take finalizer gardener away; \
         garden-controller-manager then creates the right BackupEntry",
        entry.spec.bucket_name,
        entry.spec.seed_name.as_deref().unwrap_or_default(),
        shoot.name_any(),
        host.name_any(),
        host.uid().unwrap_or_default(),
    )
}

/// Whether the entry has the owner reference that deletes the entry after the Shoot.
#[must_use]
pub(super) fn is_owned(shoot: &Shoot, entry: &BackupEntry) -> bool {
    let uid = shoot.uid().unwrap_or_default();
    entry.owner_references().iter().any(|owner| owner.uid == uid)
}

/// Whether the source entry names the host and the bucket, and was assigned in the present epoch.
#[must_use]
pub(super) fn is_assigned(shoot: &Shoot, host: &Seed, bucket: &str, entry: &BackupEntry) -> bool {
    entry.spec.seed_name.as_deref() == Some(host.name_any().as_str())
        && entry.spec.bucket_name == bucket
        && entry.annotations().get(BACKUP_ENTRY_ASSIGNED_IN_EPOCH) == Some(&epoch(shoot))
}

/// A new entry. The Shoot does not wait for the deletion of the entry: backups are kept for a while longer.
/// The finalizer is that of the host: an entry that is deleted before the host has seen the entry may name
/// backups.
#[must_use]
pub(super) fn entry(shoot: &Shoot, host: &Seed, name: &str, bucket: &str) -> BackupEntry {
    let spec = BackupEntrySpec {
        bucket_name: bucket.to_owned(),
        seed_name: Some(host.name_any()),
        ..BackupEntrySpec::default()
    };
    let mut entry = BackupEntry::new(name, spec);
    entry.metadata.namespace = shoot.namespace();
    entry.metadata.owner_references = owner(shoot).map(|owner| vec![owner]);
    entry.metadata.finalizers = Some(vec![GARDENER.to_owned()]);
    entry.metadata.annotations = Some([(BACKUP_ENTRY_ASSIGNED_IN_EPOCH.to_owned(), epoch(shoot))].into());
    entry
}

/// The change that assigns an entry to the host. No annotation of the former seed stays, because each of them
/// could harm the host:
/// - An operation that was asked for: the former seed may not end the request any more.
/// - An epoch: the host could begin early, with an epoch that blocks the bucket of the host.
/// - A report of an earlier copy, or a preset or confirmed deletion: the only backups could be removed.
/// - Any other annotation: the entry could be filled up to the bound of seeds, so that the host has no room.
#[must_use]
pub(super) fn assignment(shoot: &Shoot, host: &Seed, bucket: &str, entry: &BackupEntry) -> Value {
    let former = entry.annotations().keys().map(|key| (key.clone(), Value::Null));
    let mut annotations: Map<String, Value> = former.collect();
    annotations.insert(BACKUP_ENTRY_ASSIGNED_IN_EPOCH.to_owned(), json!(epoch(shoot)));
    let mut body = json!({
        "metadata": {"annotations": annotations},
        "spec": {"seedName": host.name_any(), "bucketName": bucket},
    });
    if !is_owned(shoot, entry) {
        body["metadata"]["ownerReferences"] = adoption(shoot)["metadata"]["ownerReferences"].clone();
    }
    body
}

/// The status of an entry that the host gets from a seed that cannot release the entry. The texts of the
/// former seed do not stay: the status could be filled up to the bound of seeds.
#[must_use]
pub(super) fn taken(entry: &BackupEntry, host: &str) -> Value {
    let mut status = json!({"seedName": host, "lastError": null});
    let last = entry
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    if last.is_some() {
        status["lastOperation"] = json!({"description": "The former seed did not release the entry."});
    }
    status
}

/// The Event about a source entry that was released from a seed that was deleting the entry. The host keeps
/// the backups of the shoot in a folder of the same name in the bucket of the host. `restored_from`: the
/// bucket with the data of the present restore.
#[must_use]
pub(super) fn release_note(host: &Seed, seed: &str, restored_from: &str, source: &BackupEntry) -> String {
    let (name, bucket) = (source.name_any(), &source.spec.bucket_name);
    let remains = if host.uid().as_ref() == Some(bucket) {
        format!("Bucket {bucket} is that of the shoot's seed: delete nothing there")
    } else if bucket == restored_from {
        format!("The shoot is restored from bucket {bucket}: delete nothing there")
    } else {
        format!(
            "Backups may stay in bucket {bucket}: if seed {seed} does not come back, delete the objects there below {}/",
            folder(source)
        )
    };
    format!(
        "BackupEntry {name} of an earlier move was released, because the shoot was taken over from seed {seed}, which was deleting \
         the entry. {remains}"
    )
}

/// The Event about a bucket that a source entry leaves by an assignment; `None` if the entry leaves no
/// bucket, or leaves the bucket of the host.
#[must_use]
pub(super) fn left_note(host: &Seed, bucket: &str, source: &BackupEntry) -> Option<String> {
    let (name, left) = (source.name_any(), source.spec.bucket_name.as_str());
    let is_left = left != bucket && host.uid().as_deref() != Some(left);
    is_left.then(|| {
        format!(
            "BackupEntry {name} of an earlier move names bucket {bucket} instead of bucket {left}, because the shoot is restored from \
             bucket {bucket}. Backups may stay in bucket {left}: when the restore has succeeded, delete the objects there below {}/",
            folder(source)
        )
    })
}

/// The folder of the backups in each bucket.
fn folder(source: &BackupEntry) -> String {
    source.name_any().trim_start_matches(SOURCE).to_owned()
}

/// The change that gives an entry its owner reference.
#[must_use]
pub(super) fn adoption(shoot: &Shoot) -> Value {
    json!({"metadata": {"ownerReferences": [owner(shoot)]}})
}

fn owner(shoot: &Shoot) -> Option<OwnerReference> {
    let owner = shoot.controller_owner_ref(&())?;
    Some(OwnerReference {
        block_owner_deletion: Some(false),
        ..owner
    })
}

fn epoch(shoot: &Shoot) -> String {
    let status = shoot.status.as_ref();
    status.map_or(1, api::gardencore::ShootStatus::epoch).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::{
        constants::{
            BACKUP_ENTRY_BACKUPS_COPIED, BACKUP_ENTRY_FORCE_DELETION, BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH,
            CONFIRMATION_DELETION, OPERATION, OWNERSHIP_EPOCH,
        },
        gardencore::{SeedSpec, ShootSpec, seed::SeedBackup},
    };
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn shoot(host: &str, ownership: &Value) -> Shoot {
        let mut shoot = Shoot::new("web", ShootSpec::default());
        shoot.metadata.uid = Some("u".into());
        shoot.status = serde_json::from_value(json!({"seedName": host, "ownership": ownership})).unwrap();
        shoot
    }

    fn seed(name: &str) -> Seed {
        let mut seed = Seed::new(name, SeedSpec::default());
        seed.metadata.uid = Some(format!("bucket-{name}"));
        seed.spec.backup = Some(SeedBackup::default());
        seed
    }

    fn restored() -> Value {
        json!({"epoch": 2, "phase": "Claiming", "source": {"name": "a", "epoch": 1}})
    }

    #[test]
    fn an_entry_is_created_for_a_shoot_with_a_seed_that_keeps_backups() {
        let mut web = shoot("a", &json!(null));
        let a = seed("a");
        assert_eq!(own_entry_step(&web, &a, None), OwnEntryStep::Create);
        let made = entry(&web, &a, "e", "bucket-a");
        assert_eq!(own_entry_step(&web, &a, Some(&made)), OwnEntryStep::Keep);
        assert_eq!(made.annotations()[BACKUP_ENTRY_ASSIGNED_IN_EPOCH], "1");
        // An entry without the finalizer is gone before a seed removes the backups.
        assert_eq!(made.finalizers(), [GARDENER]);
        let mut without = seed("a");
        without.spec.backup = None;
        assert_eq!(own_entry_step(&web, &without, None), OwnEntryStep::Keep);
        // A shoot that is taken down needs no entry. A shoot that is restored before its deletion does.
        web.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert_eq!(own_entry_step(&web, &a, None), OwnEntryStep::Keep);
        let mut moved = shoot("b", &restored());
        moved.metadata.deletion_timestamp = web.metadata.deletion_timestamp;
        assert_eq!(own_entry_step(&moved, &seed("b"), None), OwnEntryStep::Create);
    }

    /// An older version let seeds create the entry.
    #[test]
    fn an_older_entry_is_adopted_if_the_entry_agrees_with_the_shoot() {
        let (web, a) = (shoot("a", &json!(null)), seed("a"));
        let mut old = entry(&web, &a, "e", "bucket-a");
        old.metadata.annotations = None;
        assert_eq!(own_entry_step(&web, &a, Some(&old)), OwnEntryStep::Keep);
        old.metadata.owner_references = None;
        assert_eq!(own_entry_step(&web, &a, Some(&old)), OwnEntryStep::Adopt);
        let owners = adoption(&web)["metadata"]["ownerReferences"].clone();
        assert_eq!(
            (&owners[0]["uid"], &owners[0]["kind"]),
            (&json!("u"), &json!("Shoot"))
        );
        for (seed, bucket) in [("b", "bucket-a"), ("a", "planted")] {
            old.spec.seed_name = Some(seed.into());
            old.spec.bucket_name = bucket.into();
            let step = own_entry_step(&web, &a, Some(&old));
            assert!(
                matches!(&step, OwnEntryStep::Report(why) if why.contains(bucket)),
                "{step:?}"
            );
        }
        old.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert_eq!(own_entry_step(&web, &a, Some(&old)), OwnEntryStep::Keep);
    }

    #[test]
    fn an_entry_is_assigned_with_the_bucket_of_the_host() {
        let (web, b) = (shoot("b", &restored()), seed("b"));
        let mut of_a = entry(&web, &seed("a"), "e", "bucket-a");
        let of_the_former = [
            OPERATION,
            OWNERSHIP_EPOCH,
            BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH,
            BACKUP_ENTRY_BACKUPS_COPIED,
            BACKUP_ENTRY_FORCE_DELETION,
            CONFIRMATION_DELETION,
            "any",
        ];
        for key in of_the_former {
            of_a.annotations_mut().insert(key.into(), "1".into());
        }
        assert_eq!(own_entry_step(&web, &b, Some(&of_a)), OwnEntryStep::Assign);
        let body = assignment(&web, &b, "bucket-b", &of_a);
        assert_eq!(body["spec"], json!({"seedName": "b", "bucketName": "bucket-b"}));
        let mut assigned = json!(of_a);
        json_patch::merge(&mut assigned, &body);
        let annotations = &assigned["metadata"]["annotations"];
        assert_eq!(annotations, &json!({(BACKUP_ENTRY_ASSIGNED_IN_EPOCH): "2"}));
        // A former version assigned the seed alone.
        of_a.spec.seed_name = Some("b".into());
        assert_eq!(own_entry_step(&web, &b, Some(&of_a)), OwnEntryStep::Assign);
        of_a.spec.bucket_name = "bucket-b".into();
        assert_eq!(own_entry_step(&web, &b, Some(&of_a)), OwnEntryStep::Keep);
    }

    /// Otherwise the first write of the host could be refused.
    #[test]
    fn an_entry_is_taken_without_the_texts_of_the_former_seed() {
        let web = shoot("b", &restored());
        let mut of_a = entry(&web, &seed("b"), "e", "bucket-b");
        assert_eq!(taken(&of_a, "b"), json!({"seedName": "b", "lastError": null}));
        let last = json!({"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "long",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let status = json!({"seedName": "a", "lastError": {"description": "long"}, "lastOperation": last});
        of_a.status = serde_json::from_value(status.clone()).unwrap();
        let mut after = status;
        json_patch::merge(&mut after, &taken(&of_a, "b"));
        assert!(!after.to_string().contains("long"), "{after}");
        // The operation of the host follows from the last operation.
        let last = &after["lastOperation"];
        assert_eq!(
            (&last["type"], &last["state"]),
            (&json!("Reconcile"), &json!("Succeeded"))
        );
    }

    /// A claim that opened nothing leaves a source entry, which the next destination needs.
    #[test]
    fn a_source_entry_of_an_earlier_epoch_is_assigned_anew() {
        let (web, b) = (shoot("b", &restored()), seed("b"));
        let mut source = entry(&web, &b, "source-e", "bucket-a");
        assert!(is_assigned(&web, &b, "bucket-a", &source));
        assert!(!is_assigned(&web, &b, "bucket-z", &source));
        assert!(!is_assigned(&web, &seed("c"), "bucket-a", &source));
        source
            .annotations_mut()
            .insert(BACKUP_ENTRY_ASSIGNED_IN_EPOCH.into(), "1".into());
        assert!(!is_assigned(&web, &b, "bucket-a", &source));
    }

    /// The destination has died after it opened the copy and before it deleted the source entry.
    #[test]
    fn a_bucket_that_a_source_entry_leaves_is_named() {
        let (web, c) = (shoot("c", &restored()), seed("c"));
        let source = entry(&web, &seed("b"), "source-e", "bucket-a");
        let note = left_note(&c, "bucket-b", &source).unwrap();
        assert!(
            note.contains("may stay in bucket bucket-a") && note.ends_with("below e/"),
            "{note}"
        );
        assert_eq!(left_note(&c, "bucket-a", &source), None);
        // The shoot is back in the bucket: an administrator must not delete the live backups.
        assert_eq!(left_note(&seed("a"), "bucket-b", &source), None);
        for (host, restored_from, words) in [
            (&seed("a"), "bucket-b", "delete nothing there"),
            (&c, "bucket-a", "delete nothing there"),
            (&c, "bucket-b", "delete the objects there below e/"),
        ] {
            let released = release_note(host, "b", restored_from, &source);
            assert!(released.ends_with(words), "{released}");
        }
    }
}
