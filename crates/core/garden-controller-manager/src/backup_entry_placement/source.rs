//! The bucket from which a shoot is restored: pure decisions.

use api::{
    constants::{
        BACKUP_ENTRY_ASSIGNED_IN_EPOCH, BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH,
        BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH,
    },
    gardencore::{
        BackupEntry, Seed, Shoot,
        shoot::{Ownership, OwnershipPhase, SourceBucket},
    },
};
use kube::ResourceExt;
use placement::{Journey, journey};
use serde_json::{Value, json};

/// The bucket with the data that the present epoch begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceVerdict {
    /// The epoch does not begin with data of an earlier epoch.
    NotNeeded,
    /// The Shoot records this bucket.
    Recorded(String),
    /// The Shoot must record this bucket.
    Record(SourceBucket),
    /// The bucket cannot be derived, with the reason and the remedy.
    Unknown(String),
}

/// Whether the present seed restores the shoot from earlier data.
#[must_use]
pub(super) fn is_restored(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    let record = status.and_then(|status| status.ownership.as_ref());
    let Some(record) = record.filter(|record| record.epoch > 1) else {
        return false;
    };
    match record.phase {
        Some(phase) => matches!(phase, OwnershipPhase::Claiming | OwnershipPhase::Opening),
        None => matches!(journey(shoot), Journey::Arriving | Journey::Restoring),
    }
}

/// Name of the seed with the data that the present epoch begins with. Without recorded phases, an entry that
/// was not assigned to the host names this seed: a destination that has begun nothing may have handed the
/// shoot on.
#[must_use]
pub(super) fn source_seed(shoot: &Shoot, host: &Seed, own: Option<&BackupEntry>) -> Option<String> {
    let status = shoot.status.as_ref()?;
    let record = status.ownership.as_ref().filter(|record| record.epoch > 1)?;
    if let Some(source) = &record.source {
        return Some(source.name.clone());
    }
    let assigned = own.and_then(|own| own.spec.seed_name.clone());
    let not_given = assigned.filter(|seed| *seed != host.name_any());
    let epoch = record.source_epoch();
    let mut formers = status.former_seeds.iter();
    not_given.or_else(|| Some(formers.find(|former| former.epoch == epoch)?.name.clone()))
}

/// Derives the bucket. `host`: the Seed that has the shoot. `of_source`: the Seed of [`source_seed`], if this
/// Seed exists. `own`: the shoot's own entry. Each seed keeps the backups of its shoots in the bucket that is
/// named after the uid of the Seed. The entry must agree for as long as it names the source: no seed may
/// change the entry, but an older version let seeds create entries. `has_source_entry`: the source entry
/// exists.
#[must_use]
pub(super) fn judge_source(
    shoot: &Shoot,
    host: &Seed,
    of_source: Option<&Seed>,
    own: Option<&BackupEntry>,
    has_source_entry: bool,
) -> SourceVerdict {
    let record = shoot.status.as_ref().and_then(|status| status.ownership.as_ref());
    let is_given = own.is_none_or(|own| is_given(own, host));
    let is_begun = |record: &Ownership| {
        let is_certain = record.phase.is_some() || has_source_entry;
        is_certain || own.is_none_or(|own| is_of_epoch(own, record.epoch) || !names_bucket(own, host))
    };
    let is_needed = |record: &&Ownership| !is_given || is_restored(shoot) && is_begun(record);
    let Some(record) = record.filter(|record| record.epoch > 1).filter(is_needed) else {
        return SourceVerdict::NotNeeded;
    };
    if let Some(bucket) = record.recorded_source_bucket() {
        return SourceVerdict::Recorded(bucket.to_owned());
    }
    let epoch = record.source_epoch();
    let source = source_seed(shoot, host, own);
    let of_entry = own.filter(|own| source.is_some() && source == own.spec.seed_name);
    let of_entry = of_entry.map(|own| own.spec.bucket_name.clone());
    let of_seed = of_source.and_then(ResourceExt::uid);
    let record = |name: String| SourceVerdict::Record(SourceBucket { name, epoch });
    let remedy = format!(
        "record status.ownership.sourceBucket of the Shoot with the name of the right BackupBucket and epoch {epoch} \
         (a user with the verb repair on shoots/ownership may do so)"
    );
    match (of_seed, of_entry) {
        (Some(uid), Some(bucket)) if uid != bucket => SourceVerdict::Unknown(format!(
            "the BackupEntry of the shoot names bucket {bucket}, and the bucket of seed {} is {uid}, so that the place of the \
             backups is not certain: {remedy}",
            source.unwrap_or_default()
        )),
        (Some(uid), _) => record(uid),
        (None, Some(bucket)) => record(bucket),
        (None, None) => SourceVerdict::Unknown(format!(
            "Seed {} is gone, and no BackupEntry names its bucket, so that the place of the backups is not known: {remedy}",
            source.unwrap_or_default()
        )),
    }
}

/// Whether the entry was assigned in this epoch. Without recorded phases, a Shoot looks the same after a
/// hand-over and after a cancelled move. The second has no source.
fn is_of_epoch(own: &BackupEntry, epoch: i64) -> bool {
    names_epoch(own, BACKUP_ENTRY_ASSIGNED_IN_EPOCH, epoch)
}

fn names_epoch(own: &BackupEntry, annotation: &str, epoch: i64) -> bool {
    own.annotations().get(annotation) == Some(&epoch.to_string())
}

/// Whether the entry was assigned to the host. Before the assignment, all annotations are of a former seed.
fn is_given(own: &BackupEntry, host: &Seed) -> bool {
    own.spec.seed_name.as_deref() == Some(host.name_any().as_str())
}

fn names_bucket(own: &BackupEntry, host: &Seed) -> bool {
    host.uid().as_deref() == Some(own.spec.bucket_name.as_str())
}

/// Whether the epoch has opened no data yet. No seed gets back to phase `Claiming`, so this proves that etcd
/// has not started from a copy, although the certificate of the host writes the mark of the end at any time.
fn has_opened_nothing(shoot: &Shoot) -> bool {
    let record = shoot.status.as_ref().and_then(|status| status.ownership.as_ref());
    record.is_some_and(|record| record.phase == Some(OwnershipPhase::Claiming))
}

/// Whether the source BackupEntry must exist: the shoot is restored from a different bucket, and etcd has not
/// started from the copy.
#[must_use]
pub(super) fn needs_source_entry(shoot: &Shoot, host: &Seed, bucket: &str, own: &BackupEntry) -> bool {
    let epoch = epoch(shoot);
    let is_released = [
        BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH,
        BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH,
    ]
    .iter()
    .any(|annotation| names_epoch(own, annotation, epoch));
    let is_ended = is_given(own, host) && is_released && !has_opened_nothing(shoot);
    is_restored(shoot) && host.uid().as_deref() != Some(bucket) && !is_ended
}

/// The change of the shoot's own entry that records the end of the source entry in the present epoch; `None`
/// if the end is recorded, or the source entry may still be needed. `has_source_entry`: the source entry
/// exists.
///
/// A shoot without recorded phases can look restored again, because the host writes `status.lastOperation`.
/// Without the record, a hostile host that has removed its own mark would get the source entry back, and the
/// credentials of the bucket of a former seed.
#[must_use]
pub(super) fn source_end(
    shoot: &Shoot,
    host: &Seed,
    own: &BackupEntry,
    has_source_entry: bool,
) -> Option<Value> {
    let epoch = epoch(shoot);
    let is_exempt = epoch <= 1 || own.metadata.deletion_timestamp.is_some() || !is_given(own, host);
    if is_exempt || has_opened_nothing(shoot) || names_epoch(own, BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH, epoch) {
        return None;
    }
    let is_marked = names_epoch(own, BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH, epoch);
    let has_ended = is_marked || !has_source_entry && !is_restored(shoot);
    let annotations = json!({(BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH): epoch.to_string()});
    has_ended.then(|| json!({"metadata": {"annotations": annotations}}))
}

fn epoch(shoot: &Shoot) -> i64 {
    let status = shoot.status.as_ref();
    status.map_or(1, api::gardencore::ShootStatus::epoch)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::{BackupEntrySpec, SeedSpec, ShootSpec};

    use super::*;

    fn shoot(ownership: &Value) -> Shoot {
        let mut shoot = Shoot::new("web", ShootSpec::default());
        let former = json!([{"name": "a", "epoch": 1}]);
        let status = json!({"seedName": "b", "ownership": ownership, "formerSeeds": former});
        shoot.status = Some(serde_json::from_value(status).unwrap());
        shoot
    }

    fn seed(name: &str) -> Seed {
        let mut seed = Seed::new(name, SeedSpec::default());
        seed.metadata.uid = Some(format!("bucket-{name}"));
        seed
    }

    fn entry(seed: &str, bucket: &str) -> BackupEntry {
        let mut entry = BackupEntry::new("e", BackupEntrySpec::default());
        entry.spec.seed_name = Some(seed.into());
        entry.spec.bucket_name = bucket.into();
        entry
    }

    fn claiming() -> Value {
        json!({"epoch": 2, "phase": "Claiming", "source": {"name": "a", "epoch": 1}})
    }

    fn record(name: &str, epoch: i64) -> SourceVerdict {
        let name = name.to_owned();
        SourceVerdict::Record(SourceBucket { name, epoch })
    }

    #[test]
    fn the_bucket_of_the_source_seed_is_recorded_where_the_entry_agrees() {
        let (a, b) = (seed("a"), seed("b"));
        let judge = |seed: Option<&Seed>, own: Option<&BackupEntry>| {
            judge_source(&shoot(&claiming()), &b, seed, own, false)
        };
        let own = entry("a", "bucket-a");
        assert_eq!(judge(Some(&a), Some(&own)), record("bucket-a", 1));
        assert_eq!(judge(Some(&a), None), record("bucket-a", 1));
        // The Seed is gone, and its entry is left.
        assert_eq!(judge(None, Some(&own)), record("bucket-a", 1));
        // An older version had switched the entry to the bucket of the destination.
        assert_eq!(
            judge(Some(&a), Some(&entry("b", "bucket-b"))),
            record("bucket-a", 1)
        );
        // Nothing is guessed.
        let planted = judge(Some(&a), Some(&entry("a", "planted")));
        assert!(
            matches!(&planted, SourceVerdict::Unknown(why) if why.contains("planted")),
            "{planted:?}"
        );
        assert!(matches!(judge(None, None), SourceVerdict::Unknown(_)));
        assert!(matches!(
            judge(None, Some(&entry("b", "bucket-b"))),
            SourceVerdict::Unknown(_)
        ));
    }

    #[test]
    fn a_record_counts_in_its_own_epoch_alone() {
        let (a, b, own) = (seed("a"), seed("b"), entry("a", "bucket-a"));
        let mut told = claiming();
        told["sourceBucket"] = json!({"name": "elsewhere", "epoch": 1});
        let recorded = judge_source(&shoot(&told), &b, Some(&a), Some(&own), false);
        assert_eq!(recorded, SourceVerdict::Recorded("elsewhere".into()));
        told["epoch"] = json!(6);
        told["source"]["epoch"] = json!(5);
        let stale = judge_source(&shoot(&told), &b, Some(&a), Some(&own), false);
        assert_eq!(stale, record("bucket-a", 5));
    }

    #[test]
    fn a_shoot_that_is_settled_or_in_its_first_epoch_has_no_source() {
        let (b, own) = (seed("b"), entry("b", "bucket-b"));
        let judge = |ownership: Value| judge_source(&shoot(&ownership), &b, None, Some(&own), false);
        assert_eq!(
            judge(json!({"epoch": 1, "phase": "Held"})),
            SourceVerdict::NotNeeded
        );
        let mut held = claiming();
        held["phase"] = json!("Held");
        assert_eq!(judge(held.clone()), SourceVerdict::NotNeeded);
        // An entry that was not assigned yet names the bucket with the data.
        let late = judge_source(&shoot(&held), &b, None, Some(&entry("a", "bucket-a")), false);
        assert_eq!(late, record("bucket-a", 1));
    }

    /// Without recorded phases, a cancelled move leaves the Shoot in the same state. Old backups of the
    /// former seed must not replace the present backups.
    #[test]
    fn a_move_that_was_cancelled_without_phases_has_no_source() {
        let (a, b, mut own) = (seed("a"), seed("b"), entry("b", "bucket-b"));
        let last = json!({"type": "Restore", "state": "Processing", "progress": 1, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let mut restoring = shoot(&json!({"epoch": 2}));
        restoring.status.as_mut().unwrap().last_operation = Some(serde_json::from_value(last).unwrap());
        let judge = |own: &BackupEntry, has: bool| judge_source(&restoring, &b, Some(&a), Some(own), has);
        assert_eq!(judge(&own, false), SourceVerdict::NotNeeded);
        assert_eq!(judge(&own, true), record("bucket-a", 1));
        assert_eq!(judge(&entry("b", "bucket-a"), false), record("bucket-a", 1));
        let assigned = BACKUP_ENTRY_ASSIGNED_IN_EPOCH.to_owned();
        own.annotations_mut().insert(assigned, "2".into());
        assert_eq!(judge(&own, false), record("bucket-a", 1));
    }

    /// Without recorded phases the list of former seeds names the source.
    #[test]
    fn the_source_is_known_without_phases() {
        let (b, given, late) = (seed("b"), entry("b", "bucket-b"), entry("z", "bucket-z"));
        let source = |epoch: i64, own| source_seed(&shoot(&json!({"epoch": epoch})), &b, Some(own));
        assert_eq!(source(2, &given).as_deref(), Some("a"));
        assert_eq!((source(3, &given), source(1, &given)), (None, None));
        // Seed a has begun nothing, and has handed the shoot on.
        assert_eq!(source(2, &late).as_deref(), Some("z"));
        let mut arriving = shoot(&json!({"epoch": 2}));
        let last = json!({"type": "Migrate", "state": "Succeeded", "progress": 100, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        arriving.status.as_mut().unwrap().last_operation = Some(serde_json::from_value(last).unwrap());
        assert!(is_restored(&arriving));
        // A creation is no state after a hand-over: a hostile source wrote that.
        let created = |type_: &str| {
            let last = json!({"type": type_, "state": "Processing", "progress": 1, "description": "",
                "lastUpdateTime": "2026-01-01T00:00:00Z"});
            let mut shoot = shoot(&json!({"epoch": 2}));
            shoot.status.as_mut().unwrap().last_operation = Some(serde_json::from_value(last).unwrap());
            shoot
        };
        assert!(is_restored(&created("Create")));
        assert!(!is_restored(&created("Reconcile")));
    }

    #[test]
    fn the_source_entry_ends_when_etcd_has_started_from_the_copy() {
        let mut opening = claiming();
        opening["phase"] = json!("Opening");
        let (shoot, b) = (shoot(&opening), seed("b"));
        let mut own = entry("b", "bucket-b");
        assert!(needs_source_entry(&shoot, &b, "bucket-a", &own));
        assert!(!needs_source_entry(&shoot, &b, "bucket-b", &own));
        let mut release = |epoch: &str| {
            own.annotations_mut()
                .insert(BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH.into(), epoch.into());
            needs_source_entry(&shoot, &b, "bucket-a", &own)
        };
        // A former seed has written the annotation in an earlier epoch.
        assert!(release("1"));
        assert!(!release("2"));
        // A former seed cannot guess the next epoch and suppress the entry.
        own.spec.seed_name = Some("a".into());
        assert!(needs_source_entry(&shoot, &b, "bucket-a", &own));
    }

    #[test]
    fn no_mark_ends_the_source_entry_in_phase_claiming() {
        let (shoot, b) = (shoot(&claiming()), seed("b"));
        let mut own = entry("b", "bucket-b");
        for mark in [
            BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH,
            BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH,
        ] {
            own.annotations_mut().insert(mark.to_owned(), "2".to_owned());
            assert_eq!(source_end(&shoot, &b, &own, false), None, "{mark}");
            assert!(needs_source_entry(&shoot, &b, "bucket-a", &own), "{mark}");
        }
    }

    /// A shoot without phases that has been settled for long: its host removes the mark of the end, and
    /// reports a restore.
    #[test]
    fn the_end_of_the_source_entry_is_recorded_where_no_seed_can_write() {
        let last = |type_: &str, state: &str| {
            let last = json!({"type": type_, "state": state, "progress": 1, "description": "",
                "lastUpdateTime": "2026-01-01T00:00:00Z"});
            let mut shoot = shoot(&json!({"epoch": 2}));
            shoot.status.as_mut().unwrap().last_operation = Some(serde_json::from_value(last).unwrap());
            shoot
        };
        let (restoring, settled) = (last("Restore", "Processing"), last("Reconcile", "Succeeded"));
        let (b, mut own) = (seed("b"), entry("b", "bucket-b"));
        let record = json!({"metadata": {"annotations": {(BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH): "2"}}});
        // The restore may still need the entry.
        assert_eq!(source_end(&restoring, &b, &own, true), None);
        assert_eq!(source_end(&restoring, &b, &own, false), None);
        assert_eq!(source_end(&settled, &b, &own, true), None);
        assert_eq!(source_end(&settled, &b, &own, false), Some(record.clone()));
        let mark = BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH.to_owned();
        own.annotations_mut().insert(mark.clone(), "2".into());
        assert_eq!(source_end(&restoring, &b, &own, true), Some(record));
        let ended = BACKUP_ENTRY_SOURCE_ENDED_IN_EPOCH.to_owned();
        own.annotations_mut().insert(ended, "2".into());
        assert_eq!(source_end(&settled, &b, &own, false), None);
        own.annotations_mut().remove(&mark);
        assert!(!needs_source_entry(&restoring, &b, "bucket-a", &own));
        // The record is of one epoch, and of the seed that has the entry.
        let mut later = restoring.clone();
        later.status.as_mut().unwrap().ownership.as_mut().unwrap().epoch = 3;
        assert!(needs_source_entry(&later, &b, "bucket-a", &own));
        own.spec.seed_name = Some("a".into());
        assert!(needs_source_entry(&restoring, &b, "bucket-a", &own));
        assert_eq!(source_end(&settled, &b, &entry("a", "bucket-a"), false), None);
    }
}
