//! Whether a BackupEntry may be deleted now: a pure decision.

use std::time::Duration;

use api::{
    constants::{
        BACKUP_ENTRY_ASSIGNED_IN_EPOCH, BACKUP_ENTRY_BACKUPS_COPIED, BACKUP_ENTRY_FORCE_DELETION,
        BACKUPS_COPIED_BUT_FINAL, OPENED_IN_EPOCH, finalizer::GARDENER, opened_epoch,
    },
    gardencore::{BackupEntry, Shoot},
    meta::LastOperationType,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;

use super::decision::{SOURCE_PREFIX, awaits_flow, names_source};

/// The decision about an entry that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    /// The entry stays, with the reason.
    Refused(String),
    /// The entry stays for this duration.
    Later(Duration),
    /// The provider releases the entry, and the backups stay: they may not have been copied yet.
    Forget,
    /// The same, with the reason: the garden reports copies, and the seed does not show them.
    Keep(String),
    /// The provider deletes the backups.
    Delete,
}

/// Decides about a deletion. `original`: the shoot's own entry, if `entry` is its source entry.
/// `namespace`: the namespace of the shoot, if the shoot's control plane is still (partly) in this seed and
/// may write backups.
pub(super) fn decide(
    entry: &BackupEntry,
    original: Option<&BackupEntry>,
    shoot: Option<&Shoot>,
    namespace: Option<&Namespace>,
    grace: Duration,
    now: Timestamp,
) -> Deletion {
    let shoot = shoot.filter(|shoot| is_of(entry, shoot));
    if names_source(entry) {
        // If both entries name the same bucket there are no copies, regardless of the annotation.
        let elsewhere = original.is_some_and(|original| original.spec.bucket_name != entry.spec.bucket_name);
        let living = shoot.filter(|shoot| shoot.metadata.deletion_timestamp.is_none());
        if are_copied(entry) && elsewhere {
            return match living {
                Some(living) if !has_chosen_data(entry, living, namespace) => {
                    Deletion::Keep(unproved(living))
                }
                _ => Deletion::Delete,
            };
        }
        if living.is_some() || (original.is_some() && !elsewhere) {
            return Deletion::Forget;
        }
        // The shoot was deleted before its backups were copied: the backups in the former bucket are deleted
        // like those in the shoot's own bucket.
        return after_grace(entry, grace, now);
    }
    if let Some(shoot) = shoot {
        let name = shoot.name_any();
        if shoot.metadata.deletion_timestamp.is_none() {
            return Deletion::Refused(format!(
                "the shoot {name} lives and needs its backups: they are deleted after the Shoot is, and not before"
            ));
        }
        if namespace.is_some() {
            return Deletion::Refused(format!(
                "the control plane of shoot {name} is still there and may write backups"
            ));
        }
    }
    after_grace(entry, grace, now)
}

/// Whether this seed shows that the shoot has data of the entry's epoch or of a later epoch, so that the
/// former bucket is unneeded. A thief of the gardenlet's certificate for the garden reports copies and
/// deletes the entry, and cannot write the note of the seed. A gardenlet keeps the note only for a shoot with
/// phases.
fn has_chosen_data(entry: &BackupEntry, shoot: &Shoot, namespace: Option<&Namespace>) -> bool {
    let assigned = entry.annotations().get(BACKUP_ENTRY_ASSIGNED_IN_EPOCH);
    let assigned = assigned
        .and_then(|epoch| epoch.parse::<i64>().ok())
        .unwrap_or_default();
    let noted = namespace.and_then(opened_epoch);
    !has_phases(shoot) || noted.is_some_and(|noted| noted >= assigned)
}

fn has_phases(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    status.is_some_and(|status| status.ownership.as_ref().is_some_and(|o| o.phase.is_some()))
}

fn unproved(shoot: &Shoot) -> String {
    format!(
        "the backups in the former bucket stay: the entry reports copies for shoot {}, and the namespace of the shoot in this seed has no \
         annotation {OPENED_IN_EPOCH} of the epoch; see \"Event BackupsKept\" in docs/operate/runbooks.md",
        shoot.name_any()
    )
}

/// Backups of a deleted shoot are kept for the grace period, unless an annotation forces their deletion.
fn after_grace(entry: &BackupEntry, grace: Duration, now: Timestamp) -> Deletion {
    let forced = is_true(entry, BACKUP_ENTRY_FORCE_DELETION);
    let asked = entry
        .metadata
        .deletion_timestamp
        .as_ref()
        .map_or(now, |time| time.0);
    match SignedDuration::try_from(grace).map(|grace| grace - now.duration_since(asked)) {
        Ok(left) if !forced && left.is_positive() => Deletion::Later(left.unsigned_abs()),
        _ => Deletion::Delete,
    }
}

/// Whether the flow that restored the shoot has reported that the former bucket is not needed any more.
pub(super) fn are_copied(entry: &BackupEntry) -> bool {
    let said = entry.annotations().get(BACKUP_ENTRY_BACKUPS_COPIED);
    said.is_some_and(|said| said == "true" || said == BACKUPS_COPIED_BUT_FINAL)
}

fn is_true(entry: &BackupEntry, annotation: &str) -> bool {
    entry
        .annotations()
        .get(annotation)
        .is_some_and(|value| value == "true")
}

/// Whether an entry may name backups of an earlier epoch that no flow of the Shoot needs. An entry of the
/// first epoch names no such backups before the flow of its seed has begun.
pub(super) fn has_unneeded_backups(entry: &BackupEntry, shoot: Option<&Shoot>) -> bool {
    let is_taken_down = |shoot: &Shoot| {
        let is_deleted = shoot.metadata.deletion_timestamp.is_some();
        is_deleted && !shoot.finalizers().iter().any(|name| name == GARDENER)
    };
    follows_earlier_epoch(entry) && shoot.is_none_or(is_taken_down)
}

/// Whether this seed must create the extension object in order to remove the backups: the provider has not
/// been asked to remove the backups yet, and the seed has no extension object. A former seed creates none,
/// because the entry names the bucket of its new seed.
pub(super) fn must_create_for_removal(entry: &BackupEntry, seed: &str) -> bool {
    let last = entry
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let has_begun = last.is_some_and(|last| last.type_ == LastOperationType::Delete);
    let is_assigned = entry.spec.seed_name.as_deref() == Some(seed);
    is_assigned && !has_begun && (follows_earlier_epoch(entry) || !awaits_flow(entry))
}

fn follows_earlier_epoch(entry: &BackupEntry) -> bool {
    let assigned = entry.annotations().get(BACKUP_ENTRY_ASSIGNED_IN_EPOCH);
    names_source(entry) || assigned.is_some_and(|epoch| epoch != "1")
}

/// Entries are owned by their Shoot; an entry without an owner belongs to the Shoot whose uid ends its name.
pub(super) fn is_of(entry: &BackupEntry, shoot: &Shoot) -> bool {
    let uid = shoot.uid().unwrap_or_default();
    let owned = entry
        .owner_references()
        .iter()
        .any(|owner| owner.kind == "Shoot" && owner.uid == uid);
    let name = entry.name_any();
    let name = name.strip_prefix(SOURCE_PREFIX).unwrap_or(&name);
    let named = shoot.status.as_ref().is_some_and(|status| {
        !status.uid.is_empty() && name == format!("{}--{}", status.technical_id, status.uid)
    });
    owned || named
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::{
        constants::OWNERSHIP_EPOCH,
        gardencore::{BackupEntrySpec, ShootSpec, ShootStatus},
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn entry(name: &str) -> BackupEntry {
        let mut entry = BackupEntry::new(name, BackupEntrySpec::default());
        entry.metadata.deletion_timestamp = Some(Time(at(0)));
        entry
    }

    fn assigned(name: &str, epoch: &str) -> BackupEntry {
        let mut entry = entry(name);
        entry.spec.bucket_name = "former".into();
        entry.metadata.annotations =
            Some([(BACKUP_ENTRY_ASSIGNED_IN_EPOCH.to_owned(), epoch.to_owned())].into());
        entry
    }

    fn shoot() -> Shoot {
        let mut shoot = Shoot::new("web", ShootSpec::default());
        shoot.status = Some(ShootStatus {
            technical_id: "shoot--dev--web".into(),
            uid: "u1".into(),
            ..ShootStatus::default()
        });
        shoot
    }

    fn here() -> Namespace {
        Namespace::default()
    }

    #[test]
    fn a_living_shoot_keeps_its_backups() {
        let (entry, mut shoot) = (entry("shoot--dev--web--u1"), shoot());
        assert!(matches!(
            decide(&entry, None, Some(&shoot), Some(&here()), HOUR, at(9999)),
            Deletion::Refused(_)
        ));
        shoot.metadata.deletion_timestamp = Some(Time(at(0)));
        assert!(matches!(
            decide(&entry, None, Some(&shoot), Some(&here()), HOUR, at(9999)),
            Deletion::Refused(_)
        ));
        assert_eq!(
            decide(&entry, None, Some(&shoot), None, HOUR, at(9999)),
            Deletion::Delete
        );
        // A later shoot of the same name does not keep the backups of an earlier shoot.
        shoot.status.as_mut().unwrap().uid = "u2".into();
        shoot.metadata.deletion_timestamp = None;
        assert_eq!(
            decide(&entry, None, Some(&shoot), Some(&here()), HOUR, at(9999)),
            Deletion::Delete
        );
    }

    #[test]
    fn the_grace_period_can_be_skipped_by_annotation_only() {
        let mut entry = entry("shoot--dev--web--u1");
        assert_eq!(
            decide(&entry, None, None, None, HOUR, at(600)),
            Deletion::Later(Duration::from_secs(3000))
        );
        assert_eq!(decide(&entry, None, None, None, HOUR, at(3600)), Deletion::Delete);
        assert_eq!(
            decide(&entry, None, None, None, Duration::ZERO, at(0)),
            Deletion::Delete
        );
        entry.metadata.annotations =
            Some([(BACKUP_ENTRY_FORCE_DELETION.to_owned(), "true".to_owned())].into());
        assert_eq!(decide(&entry, None, None, None, HOUR, at(0)), Deletion::Delete);
        // The annotation does not overrule a living shoot.
        assert!(matches!(
            decide(&entry, None, Some(&shoot()), Some(&here()), HOUR, at(0)),
            Deletion::Refused(_)
        ));
    }

    /// R17-30: a source entry is deleted when it is not needed any more, together with its backups.
    #[test]
    fn the_backups_of_a_source_entry_go_only_where_copies_are_elsewhere() {
        let of = |bucket: &str, copied: &str| {
            let mut source = entry("source-shoot--dev--web--u1");
            source.spec.bucket_name = bucket.into();
            source.metadata.annotations =
                Some([(BACKUP_ENTRY_BACKUPS_COPIED.to_owned(), copied.to_owned())].into());
            source
        };
        let mut original = entry("shoot--dev--web--u1");
        original.spec.bucket_name = "new".into();
        let decided = |source: &BackupEntry, original: Option<&BackupEntry>| {
            decide(source, original, Some(&shoot()), Some(&here()), HOUR, at(0))
        };
        assert_eq!(decided(&of("old", "true"), Some(&original)), Deletion::Delete);
        let but_final = of("old", BACKUPS_COPIED_BUT_FINAL);
        assert_eq!(decided(&but_final, Some(&original)), Deletion::Delete);
        assert_eq!(decided(&of("old", "false"), Some(&original)), Deletion::Forget);
        assert_eq!(decided(&of("new", "true"), Some(&original)), Deletion::Forget);
        assert_eq!(decided(&of("old", "true"), None), Deletion::Forget);
        // Once the shoot is deleted, uncopied backups are unneeded: they are deleted after the same grace
        // period as the shoot's own backups.
        let later = Deletion::Later(Duration::from_secs(3600));
        let mut going = shoot();
        going.metadata.deletion_timestamp = Some(Time(at(0)));
        for shoot in [Some(&going), None] {
            let decided = |source: &BackupEntry, original: Option<&BackupEntry>| {
                decide(source, original, shoot, Some(&here()), HOUR, at(0))
            };
            assert_eq!(decided(&of("old", "false"), Some(&original)), later);
            assert_eq!(decided(&of("old", "false"), None), later);
            // The entry of the shoot itself decides about this bucket.
            assert_eq!(decided(&of("new", "false"), Some(&original)), Deletion::Forget);
        }
    }

    /// Security: a stolen certificate of the destination reports copies and deletes the source entry before
    /// the restore. The backups of the former seed may be the only copy.
    #[test]
    fn copies_that_the_seed_does_not_show_keep_the_former_backups() {
        let mut source = assigned("source-shoot--dev--web--u1", "3");
        source
            .annotations_mut()
            .insert(BACKUP_ENTRY_BACKUPS_COPIED.into(), "true".into());
        let mut original = entry("shoot--dev--web--u1");
        original.spec.bucket_name = "new".into();
        let mut shoot = shoot();
        let phase = |phase: &str| serde_json::from_value(json!({"epoch": 3, "phase": phase})).unwrap();
        let noted = |epoch: &str| {
            let mut namespace = here();
            namespace
                .annotations_mut()
                .insert(OPENED_IN_EPOCH.into(), epoch.into());
            namespace
        };
        let decided = |shoot: &Shoot, namespace: Option<&Namespace>| {
            decide(&source, Some(&original), Some(shoot), namespace, HOUR, at(0))
        };
        for recorded in ["Claiming", "Held"] {
            shoot.status.as_mut().unwrap().ownership = Some(phase(recorded));
            for namespace in [None, Some(here()), Some(noted("2")), Some(noted("three"))] {
                let decision = decided(&shoot, namespace.as_ref());
                assert!(
                    matches!(decision, Deletion::Keep(_)),
                    "{recorded} {namespace:?} {decision:?}"
                );
            }
            // A new epoch of the same seed has a later note.
            for epoch in ["3", "4"] {
                assert_eq!(decided(&shoot, Some(&noted(epoch))), Deletion::Delete);
            }
        }
        // The backups of a deleted Shoot are unneeded.
        shoot.metadata.deletion_timestamp = Some(Time(at(0)));
        assert_eq!(decided(&shoot, None), Deletion::Delete);
    }

    /// The deletion was forced in the middle of a move, before the destination began with the entries.
    #[test]
    fn backups_of_an_earlier_epoch_are_unneeded_once_the_shoot_is_taken_down() {
        let (own, source) = ("shoot--dev--web--u1", "source-shoot--dev--web--u1");
        for entry in [assigned(source, "2"), assigned(own, "2")] {
            assert!(has_unneeded_backups(&entry, None));
        }
        assert!(!has_unneeded_backups(&assigned(own, "1"), None));
        // A Shoot that exists may still be restored from these backups.
        let (mut shoot, source) = (shoot(), assigned(source, "2"));
        assert!(!has_unneeded_backups(&source, Some(&shoot)));
        shoot.metadata.deletion_timestamp = Some(Time(at(0)));
        shoot.metadata.finalizers = Some(vec![GARDENER.to_owned()]);
        assert!(!has_unneeded_backups(&source, Some(&shoot)));
        shoot.metadata.finalizers = None;
        assert!(has_unneeded_backups(&source, Some(&shoot)));
        // After the same grace period as all backups of a deleted shoot.
        let of = |original: Option<&BackupEntry>| decide(&source, original, None, None, HOUR, at(0));
        assert_eq!(of(None), Deletion::Later(HOUR));
        // The own entry was not assigned to the destination yet, and its seed removes the same backups.
        let mut original = assigned(own, "1");
        original.spec.bucket_name = "former".into();
        assert_eq!(of(Some(&original)), Deletion::Forget);
    }

    #[test]
    fn a_removal_without_an_extension_object_begins_once_and_in_the_assigned_seed_alone() {
        let mut source = assigned("source-shoot--dev--web--u1", "2");
        source.spec.seed_name = Some("b".into());
        assert!(must_create_for_removal(&source, "b"));
        assert!(
            !must_create_for_removal(&source, "a"),
            "a former seed has not released the entry"
        );
        // No flow has begun in the first epoch: no backup exists.
        let mut own = assigned("shoot--dev--web--u1", "1");
        own.spec.seed_name = Some("b".into());
        assert!(!must_create_for_removal(&own, "b"));
        own.annotations_mut().insert(OWNERSHIP_EPOCH.into(), "1".into());
        assert!(must_create_for_removal(&own, "b"));
        source.status =
            serde_json::from_value(json!({"lastOperation": {"type": "Delete", "state": "Processing",
            "progress": 0, "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"}}))
            .unwrap();
        assert!(
            !must_create_for_removal(&source, "b"),
            "the provider has removed the backups"
        );
    }
}
