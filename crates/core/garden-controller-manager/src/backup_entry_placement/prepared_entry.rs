//! The BackupEntry of a preparation: pure decisions.
//!
//! The entry names the bucket of the destination, and the epoch of the residency that would follow. Two
//! grants have two entries. No restore reads an entry of a grant: the data of an epoch are in the shoot's own
//! entry, or in the bucket that the Shoot records.

use api::{
    constants::BACKUP_ENTRY_ASSIGNED_IN_EPOCH,
    gardencore::{BackupEntry, Seed, Shoot, shoot::MigrationPreparation},
};
use jiff::Timestamp;
use kube::ResourceExt;
use placement::{entry_of_preparation, names, preparation, preparation_entry_name};

use super::entries::{entry, is_owned};

/// The next write to the entry of a valid grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreparedEntryStep {
    /// The entry agrees with the grant.
    Keep,
    /// The entry does not exist, and must be created.
    Create,
    /// The entry does not agree with the grant, or is being deleted, and must go first.
    Remove,
}

/// The valid grant before the expiry.
#[must_use]
pub(super) fn grant(shoot: &Shoot, now: Timestamp) -> Option<&MigrationPreparation> {
    preparation(shoot).filter(|granted| granted.expiry.0 > now)
}

/// The name of the shoot's own entry. The names of the entries of preparations end with this name.
#[must_use]
pub(super) fn own_name(shoot: &Shoot) -> Option<String> {
    let status = shoot.status.as_ref()?;
    let has_names = !status.technical_id.is_empty() && !status.uid.is_empty();
    has_names.then(|| names::backup_entry(&status.technical_id, &status.uid))
}

/// Whether the entry is of a preparation of this shoot, under any grant.
#[must_use]
pub(super) fn is_of_preparation(shoot: &Shoot, own_name: &str, entry: &BackupEntry) -> bool {
    let name = entry.metadata.name.as_deref().unwrap_or_default();
    entry.metadata.namespace == shoot.metadata.namespace && entry_of_preparation(name) == Some(own_name)
}

/// The entry for this grant. `destination`: the Seed that the grant names. `None` without a bucket of that
/// Seed, or with a Seed in deletion. The entry has no finalizer, because the entry names no backup, and a
/// dead destination must not keep the entry.
#[must_use]
pub(super) fn wanted_entry(
    shoot: &Shoot,
    destination: &Seed,
    granted: &MigrationPreparation,
) -> Option<BackupEntry> {
    let keeps_backups = destination.spec.backup.is_some();
    let is_usable = keeps_backups && destination.metadata.deletion_timestamp.is_none();
    let bucket = destination.uid().filter(|_| is_usable)?;
    let epoch = granted.epoch.checked_add(1)?.to_string();
    let name = preparation_entry_name(&own_name(shoot)?, granted);
    let mut wanted = entry(shoot, destination, &name, &bucket);
    wanted.metadata.finalizers = None;
    wanted.metadata.annotations = Some([(BACKUP_ENTRY_ASSIGNED_IN_EPOCH.to_owned(), epoch)].into());
    Some(wanted)
}

/// Decides about the entry of a valid grant. An entry that disagrees is never changed: a former spec may have
/// given a right.
#[must_use]
pub(super) fn prepared_entry_step(
    shoot: &Shoot,
    wanted: &BackupEntry,
    found: Option<&BackupEntry>,
) -> PreparedEntryStep {
    let Some(found) = found else {
        return PreparedEntryStep::Create;
    };
    let location = |entry: &BackupEntry| (entry.spec.seed_name.clone(), entry.spec.bucket_name.clone());
    let epoch = |entry: &BackupEntry| entry.annotations().get(BACKUP_ENTRY_ASSIGNED_IN_EPOCH).cloned();
    let agrees =
        location(found) == location(wanted) && epoch(found) == epoch(wanted) && is_owned(shoot, found);
    if agrees && found.metadata.deletion_timestamp.is_none() {
        PreparedEntryStep::Keep
    } else {
        PreparedEntryStep::Remove
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::{SeedSpec, seed::SeedBackup};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::{Value, json};

    use super::*;

    const NAME: &str = "prepared-3-100-shoot--dev--web--s";

    /// A Shoot on seed `a` in epoch 3, with a grant for seed `b` until second 100, and with this change.
    fn shoot(field: &str, value: Value) -> Shoot {
        let grant = json!({"uid": "u", "source": "a", "destination": "b", "epoch": 3,
            "expiry": "1970-01-01T00:01:40Z"});
        let mut shoot = json!({
            "metadata": {"name": "web", "namespace": "garden-dev", "uid": "u"},
            "spec": {"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "technicalID": "shoot--dev--web", "uid": "s", "ownership": {"epoch": 3},
                "liveMigration": {"preparation": grant}},
        });
        if !field.is_empty() {
            *shoot.pointer_mut(field).unwrap() = value;
        }
        serde_json::from_value(shoot).unwrap()
    }

    fn granted() -> Shoot {
        shoot("", Value::Null)
    }

    fn seed() -> Seed {
        let mut seed = Seed::new("b", SeedSpec::default());
        seed.metadata.uid = Some("bucket-b".into());
        seed.spec.backup = Some(SeedBackup::default());
        seed
    }

    fn wanted() -> BackupEntry {
        let shoot = granted();
        wanted_entry(&shoot, &seed(), preparation(&shoot).unwrap()).unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_entry_names_the_bucket_of_the_destination_and_the_next_epoch() {
        let entry = wanted();
        assert_eq!(entry.name_any(), NAME);
        assert_eq!(entry.namespace().as_deref(), Some("garden-dev"));
        assert_eq!(entry.spec.seed_name.as_deref(), Some("b"));
        assert_eq!(entry.spec.bucket_name, "bucket-b");
        assert_eq!(entry.annotations().len(), 1);
        assert_eq!(entry.annotations()[BACKUP_ENTRY_ASSIGNED_IN_EPOCH], "4");
        assert!(entry.finalizers().is_empty());
        assert!(is_owned(&granted(), &entry));
        assert_eq!(entry.owner_references()[0].block_owner_deletion, Some(false));
    }

    #[test]
    fn a_seed_without_a_bucket_gets_no_entry() {
        let shoot = granted();
        let changes: [fn(&mut Seed); 3] = [
            |seed| seed.spec.backup = None,
            |seed| seed.metadata.uid = None,
            |seed| seed.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH)),
        ];
        for change in changes {
            let mut seed = seed();
            change(&mut seed);
            assert_eq!(wanted_entry(&shoot, &seed, preparation(&shoot).unwrap()), None);
        }
        // The host has not recorded the names yet.
        for field in ["/status/technicalID", "/status/uid"] {
            let shoot = self::shoot(field, json!(""));
            assert_eq!(wanted_entry(&shoot, &seed(), preparation(&shoot).unwrap()), None);
        }
    }

    /// A planted entry could name the bucket of a further seed, and the destination would read the
    /// credentials of that bucket.
    #[test]
    fn an_entry_that_disagrees_with_the_grant_is_removed() {
        let (shoot, wanted) = (granted(), wanted());
        assert_eq!(
            prepared_entry_step(&shoot, &wanted, None),
            PreparedEntryStep::Create
        );
        let mut seen = wanted.clone();
        seen.status = serde_json::from_value(json!({"seedName": "b"})).unwrap();
        assert_eq!(
            prepared_entry_step(&shoot, &wanted, Some(&seen)),
            PreparedEntryStep::Keep
        );
        let changes: [fn(&mut BackupEntry); 6] = [
            |entry| entry.spec.seed_name = Some("c".into()),
            |entry| entry.spec.seed_name = None,
            |entry| entry.spec.bucket_name = "planted".into(),
            |entry| entry.metadata.owner_references = None,
            |entry| entry.metadata.annotations = None,
            |entry| entry.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH)),
        ];
        for change in changes {
            let mut planted = wanted.clone();
            change(&mut planted);
            let step = prepared_entry_step(&shoot, &wanted, Some(&planted));
            assert_eq!(step, PreparedEntryStep::Remove, "{planted:?}");
        }
    }

    /// The removal asks for a name that no further entry of the shoot has.
    #[test]
    fn the_backups_of_a_residency_are_of_no_preparation() {
        let shoot = granted();
        let own = own_name(&shoot).unwrap();
        let is_found = |namespace: &str, name: &str| {
            let mut entry = wanted();
            entry.metadata.namespace = Some(namespace.into());
            entry.metadata.name = Some(name.into());
            is_of_preparation(&shoot, &own, &entry)
        };
        assert!(is_found("garden-dev", NAME));
        assert!(is_found("garden-dev", "prepared-1-2-shoot--dev--web--s"));
        assert!(!is_found("garden-other", NAME));
        for name in [
            &*own,
            "source-shoot--dev--web--s",
            "prepared-3-100-shoot--dev--web--t",
            "prepared-3-100-shoot--dev--other--s",
            "prepared-3-shoot--dev--web--s",
            "source-prepared-3-100-shoot--dev--web--s",
        ] {
            assert!(!is_found("garden-dev", name), "{name}");
        }
    }

    #[test]
    fn an_entry_is_wanted_for_a_valid_grant_before_the_expiry() {
        assert!(grant(&granted(), at(99)).is_some());
        assert!(grant(&granted(), at(100)).is_none());
        for (field, value) in [
            ("/metadata/uid", json!("v")),
            ("/status/seedName", json!("b")),
            ("/status/ownership/epoch", json!(4)),
            ("/status/liveMigration", Value::Null),
        ] {
            assert!(grant(&shoot(field, value), at(99)).is_none(), "{field}");
        }
    }
}
