//! Watches Shoots that were handed over.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{OPERATION, TIMESTAMP, finalizer::GARDENER, operation::MIGRATE},
    gardencore::{BackupEntry, Shoot},
};
use kube::{Api, ResourceExt};
use runtime::{
    Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, finalizer, runner},
    error::Explain as _,
};
use serde_json::json;

use super::decision::{RESYNC_PERIOD, abandoned_on, destination, heir, is_taken, next_check};
use crate::{Context, MANAGER};

/// Name prefix of a source BackupEntry.
const SOURCE: &str = "source-";

/// Pause after a concurrent write to an entry.
const AGAIN: Duration = Duration::from_secs(1);

struct BackupEntryPlacement {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let controller = context.shoots.controller(wakes);
    context
        .run(controller, |context| BackupEntryPlacement { context })
        .await;
}

/// A hand-over, and no other change of a Shoot.
fn wakes(shoot: &Shoot) -> Option<u64> {
    let status = shoot.status.as_ref();
    runner::fingerprint((
        shoot.uid(),
        status.and_then(|s| s.seed_name.as_deref()),
        status.map(api::gardencore::ShootStatus::epoch),
    ))
}

impl Reconciler<Shoot> for BackupEntryPlacement {
    const NAME: &'static str = "backup-entry-placement";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        shoot.status.as_ref().is_some_and(|status| status.epoch() > 1)
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        self.place_entries(&shoot).await
    }

    /// A Shoot that is deleted in the middle of a move is restored first, and the restore needs its backups.
    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        self.place_entries(&shoot).await
    }
}

impl BackupEntryPlacement {
    async fn place_entries(&self, shoot: &Shoot) -> Result<Next> {
        let Some(status) = &shoot.status else {
            return Ok(Next::Change);
        };
        let name = format!("{}--{}", status.technical_id, status.uid);
        let mut next = RESYNC_PERIOD;
        if is_taken(shoot) {
            // Also for a dead destination. Before the shoot's own entry, for which the next destination
            // waits.
            let source = format!("{SOURCE}{name}");
            next = self.give(shoot, &source).await?;
            next = next.min(self.release(shoot, &source).await?);
        }
        Ok(Next::After(self.give(shoot, &name).await?.min(next)))
    }

    /// Releases the source BackupEntry of an earlier move from a seed that can no longer delete it. Returns
    /// the time of the next check.
    async fn release(&self, shoot: &Shoot, name: &str) -> Result<Duration> {
        let namespace = shoot.namespace().unwrap_or_default();
        let entries: Api<BackupEntry> = self.context.garden.namespaced(&namespace);
        let found = entries
            .get_opt(name)
            .await
            .context(format_args!("could not read BackupEntry {name}"))?;
        let Some(entry) = found else {
            return Ok(RESYNC_PERIOD);
        };
        let Some(seed) = abandoned_on(shoot, &entry) else {
            return Ok(RESYNC_PERIOD);
        };
        if !finalizer::try_remove(&entries, &entry, GARDENER).await? {
            return Ok(AGAIN);
        }
        let bucket = &entry.spec.bucket_name;
        let note = format!(
            "BackupEntry {name} of an earlier move was released, because the shoot was taken over from seed {seed}, which was deleting \
             the backups of the entry. Backups may stay in bucket {bucket}: if seed {seed} does not come back, delete the objects there \
             below {}/",
            name.trim_start_matches(SOURCE)
        );
        tracing::warn!(entry = name, seed, bucket, "a source BackupEntry was released");
        let events = &self.context.events;
        events.warning(shoot, "SourceBackupEntryReleased", &note).await;
        Ok(RESYNC_PERIOD)
    }

    /// Assigns an entry to the Shoot's seed, and returns the time of the next check.
    async fn give(&self, shoot: &Shoot, name: &str) -> Result<Duration> {
        let namespace = shoot.namespace().unwrap_or_default();
        let entries: Api<BackupEntry> = self.context.garden.namespaced(&namespace);
        let found = entries
            .get_opt(name)
            .await
            .context(format_args!("could not read BackupEntry {name}"))?;
        let Some(mut entry) = found else {
            return Ok(RESYNC_PERIOD);
        };
        let assigned = destination(shoot, &entry);
        let next = next_check(shoot, assigned.is_some());
        if let Some(seed) = assigned {
            let mut body = json!({
                "metadata": {"resourceVersion": entry.resource_version()},
                "spec": {"seedName": seed},
            });
            if !is_taken(shoot) {
                body["metadata"]["annotations"] =
                    json!({(OPERATION): MIGRATE, (TIMESTAMP): clock::now_rfc3339_nano()});
            }
            entry = MANAGER.merge(&entries, name, &body).await?;
            tracing::info!(entry = name, seed, "the backup entry follows its shoot");
        }
        if let Some(seed) = heir(shoot, &entry) {
            let body = json!({"seedName": seed});
            if MANAGER
                .try_merge_status_of(&entries, &entry, &body)
                .await?
                .is_none()
            {
                return Ok(AGAIN);
            }
            tracing::info!(
                entry = name,
                seed,
                "the backup entry was taken from a seed that cannot let go of it"
            );
        }
        Ok(next)
    }
}
