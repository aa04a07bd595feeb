//! The grace period of the backups of a deleted shoot. The backups of a shoot whose creation has never
//! succeeded have no grace period. Otherwise a member of a project fills the garden with BackupEntries, by
//! Shoots that are deleted soon after the begin of the creation.

use api::{
    constants::BACKUP_ENTRY_FORCE_DELETION,
    gardencore::{BackupEntry, Shoot},
};
use kube::{Api, ResourceExt as _};
use placement::{Operation, is_half_created, names};
use runtime::{Result, client::Cluster as _, error::Explain as _};

use crate::context::{Context, MANAGER};

/// Lets the BackupEntry of a Shoot that was never created with success end without the grace period. Must
/// come before the record of the start: from then on, `status.lastOperation` shows the deletion. A deletion
/// that has begun is never taken back.
///
/// # Errors
/// The garden does not answer, or refuses the write.
pub(crate) async fn skip_if_never_created(
    context: &Context,
    shoot: &Shoot,
    operation: Operation,
) -> Result<()> {
    let Some(name) = entry_without_grace(shoot, operation) else {
        return Ok(());
    };
    let entries: Api<BackupEntry> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
    let entry = entries.get_opt(&name).await;
    let entry = entry.context(format_args!("could not read BackupEntry {name}"))?;
    // The policies of the garden refuse a write to an entry of a different seed.
    let is_own = |entry: &BackupEntry| entry.spec.seed_name.as_deref() == Some(context.seed_name.as_str());
    if entry.as_ref().is_some_and(is_own) {
        MANAGER
            .annotate(&entries, &name, BACKUP_ENTRY_FORCE_DELETION, Some("true"))
            .await?;
    }
    Ok(())
}

/// The name of the BackupEntry, if the operation deletes a Shoot whose creation has begun and has never
/// succeeded.
fn entry_without_grace(shoot: &Shoot, operation: Operation) -> Option<String> {
    let status = shoot.status.as_ref()?;
    let has_names = !status.technical_id.is_empty() && !status.uid.is_empty();
    let is_unneeded = operation.deletes() && has_names && is_half_created(shoot);
    is_unneeded.then(|| names::backup_entry(&status.technical_id, &status.uid))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::ShootSpec;
    use serde_json::json;

    use super::*;

    fn shoot(type_: &str, state: &str, epoch: i64) -> Shoot {
        let last = json!({"type": type_, "state": state, "progress": 1, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let mut shoot = Shoot::new("web", ShootSpec::default());
        let status = json!({"seedName": "a", "technicalID": "shoot--dev--web", "uid": "u", "lastOperation": last,
            "ownership": {"epoch": epoch}});
        shoot.status = Some(serde_json::from_value(status).unwrap());
        shoot
    }

    #[test]
    fn the_backups_of_a_shoot_that_was_created_once_keep_their_grace_period() {
        let entry = |type_: &str, state: &str, epoch: i64| {
            entry_without_grace(&shoot(type_, state, epoch), Operation::Delete)
        };
        for state in ["Processing", "Error", "Failed"] {
            let name = entry("Create", state, 1);
            assert_eq!(name.as_deref(), Some("shoot--dev--web--u"), "{state}");
        }
        assert_eq!(entry("Create", "Succeeded", 1), None);
        assert_eq!(entry("Reconcile", "Error", 1), None);
        // The record of an earlier attempt of the deletion.
        assert_eq!(entry("Delete", "Error", 1), None);
        // A hostile host has reported a creation.
        assert_eq!(entry("Create", "Error", 2), None);
        let half = shoot("Create", "Error", 1);
        assert!(entry_without_grace(&half, Operation::ForceDelete).is_some());
        assert_eq!(entry_without_grace(&half, Operation::Create), None);
        // The garden has no entry of a Shoot without these names.
        let mut unnamed = half;
        unnamed.status.as_mut().unwrap().uid = String::new();
        assert_eq!(entry_without_grace(&unnamed, Operation::Delete), None);
    }
}
