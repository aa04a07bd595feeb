//! The BackupEntry of a preparation: the place for the backups of the destination, before a residency.
//!
//! garden-controller-manager places the entry for a valid grant, and deletes the entry after the end of the
//! grant. The destination reads the entry and requests no operation, so the seed gets no object for the
//! entry. No restore reads the entry.

use std::time::Duration;

use api::{
    constants::BACKUP_ENTRY_ASSIGNED_IN_EPOCH,
    gardencore::{BackupEntry, Seed, shoot::MigrationPreparation},
};
use kube::{Api, ResourceExt};
use placement::{names, preparation_entry_name};
use runtime::{Error, Result, client::Cluster, error::Explain};

use crate::preparation::PreparationFacts;

/// Requeue interval while the entry is missing. The entry follows the grant within seconds.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The place for the backups of the destination of a preparation.
#[derive(Debug)]
pub struct PreparedBackupEntry;

impl PreparedBackupEntry {
    /// Whether garden-controller-manager has placed the entry for this grant.
    ///
    /// # Errors
    /// [`Error::NotReady`]: the entry is missing, or does not agree with the grant.
    pub async fn check(p: &PreparationFacts) -> Result<()> {
        let own = names::backup_entry(&p.residency.namespace, &names::uid(&p.shoot));
        let name = preparation_entry_name(&own, &p.granted);
        let entries: Api<BackupEntry> = p.garden.namespaced(&p.shoot.namespace().unwrap_or_default());
        let found = entries.get_opt(&name).await;
        let found = found.context(format_args!("could not read BackupEntry {name}"))?;
        let found = found.filter(|found| found.metadata.deletion_timestamp.is_none());
        let why = match found {
            None => format!("garden-controller-manager has not placed BackupEntry {name} yet"),
            Some(found) if agrees(&found, &p.seed_object, &p.granted) => return Ok(()),
            Some(_) => format!(
                "BackupEntry {name} does not agree with the grant, and garden-controller-manager has not replaced the entry yet"
            ),
        };
        Err(Error::not_ready(TRY_AGAIN, why))
    }
}

/// Whether the entry names the bucket of this seed, and the epoch of the residency that would follow.
fn agrees(entry: &BackupEntry, seed: &Seed, granted: &MigrationPreparation) -> bool {
    let assigned = entry.annotations().get(BACKUP_ENTRY_ASSIGNED_IN_EPOCH);
    let assigned = assigned.and_then(|epoch| epoch.parse::<i64>().ok());
    let mut owners = entry.owner_references().iter();
    entry.spec.seed_name.as_deref() == Some(granted.destination.as_str())
        && seed.name_any() == granted.destination
        && seed.uid().as_ref() == Some(&entry.spec.bucket_name)
        && assigned.is_some()
        && assigned == granted.epoch.checked_add(1)
        && owners.any(|owner| owner.kind == "Shoot" && owner.uid == granted.uid)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::SeedSpec;
    use serde_json::json;

    use super::*;

    /// A planted entry could name the bucket of a further seed.
    #[test]
    fn an_entry_is_of_one_grant_and_one_bucket() {
        let granted: MigrationPreparation = serde_json::from_value(json!({
            "uid": "u", "source": "a", "destination": "b", "epoch": 3, "expiry": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        let mut seed = Seed::new("b", SeedSpec::default());
        seed.metadata.uid = Some("bucket-b".into());
        let owner =
            json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": "web", "uid": "u"});
        let entry: BackupEntry = serde_json::from_value(json!({
            "metadata": {"name": "e", "annotations": {(BACKUP_ENTRY_ASSIGNED_IN_EPOCH): "4"}, "ownerReferences": [owner]},
            "spec": {"bucketName": "bucket-b", "seedName": "b"},
        }))
        .unwrap();
        assert!(agrees(&entry, &seed, &granted));
        let changes: [fn(&mut BackupEntry); 6] = [
            |entry| entry.spec.seed_name = Some("c".into()),
            |entry| entry.spec.seed_name = None,
            |entry| entry.spec.bucket_name = "planted".into(),
            |entry| entry.metadata.annotations = None,
            |entry| {
                let epoch = BACKUP_ENTRY_ASSIGNED_IN_EPOCH.to_owned();
                entry.annotations_mut().insert(epoch, "3".to_owned());
            },
            |entry| entry.metadata.owner_references = None,
        ];
        for change in changes {
            let mut planted = entry.clone();
            change(&mut planted);
            assert!(!agrees(&planted, &seed, &granted), "{planted:?}");
        }
        seed.metadata.uid = None;
        assert!(!agrees(&entry, &seed, &granted));
    }
}
