//! Reports BackupEntries in deletion that wait for a lost seed. The entries, and the backups, stay until a
//! seed removes the backups: an administrator may assign the entries to a different seed.

use std::{sync::Arc, time::Duration};

use api::gardencore::{BackupEntry, Seed};
use kube::{Api, ResourceExt, core::PartialObjectMeta, runtime::watcher};
use runtime::{
    Result,
    client::Cluster,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};

use super::decision::{is_lost, responsible_seed};
use crate::Context;

/// Interval between two reports. Shorter than the time for which an API server keeps Events (one hour).
const REPORT_PERIOD: Duration = Duration::from_secs(600);
/// Reason of the Event.
const WAITS: &str = "BackupEntryWaitsForSeed";

type EntryMeta = PartialObjectMeta<BackupEntry>;

struct LostSeedReport {
    context: Context,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let entries: Api<EntryMeta> = context.garden.all();
    let wakes =
        |entry: &EntryMeta| runner::fingerprint((entry.uid(), entry.metadata.deletion_timestamp.is_some()));
    let controller = runner::controller(entries, watcher::Config::default(), wakes);
    context
        .run(controller, |context| LostSeedReport { context })
        .await;
}

impl Reconciler<EntryMeta> for LostSeedReport {
    const NAME: &'static str = "backup-entry-report";

    async fn apply(&self, _: Arc<EntryMeta>) -> Result<Next> {
        Ok(Next::Change)
    }

    async fn cleanup(&self, meta: Arc<EntryMeta>) -> Result<Next> {
        let namespace = meta.namespace().unwrap_or_default();
        let entries: Api<BackupEntry> = self.context.garden.namespaced(&namespace);
        let found = entries.get_opt(&meta.name_any()).await;
        let Some(entry) = found.context("could not read the BackupEntry")? else {
            return Ok(Next::Change);
        };
        let Some(name) = responsible_seed(&entry) else {
            return Ok(Next::Change);
        };
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        let seed = seeds.get_opt(name).await;
        let seed = seed.context(format_args!("could not read Seed {name}"))?;
        if let Some(note) = report(&entry, name, seed.as_ref()) {
            let events = &self.context.events;
            events.answer_with_warning(&entry, WAITS, &note).await;
        }
        Ok(Next::After(REPORT_PERIOD))
    }
}

/// The report of an entry in deletion, if the seed of the entry is lost.
fn report(entry: &BackupEntry, name: &str, seed: Option<&Seed>) -> Option<String> {
    let is_waiting = entry.metadata.deletion_timestamp.is_some() && is_lost(seed);
    let cause = if seed.is_some() {
        "whose gardenlet is silent"
    } else {
        "which does not exist"
    };
    is_waiting.then(|| {
        format!(
            "BackupEntry {} is being deleted and waits for seed {name}, {cause}. The backups stay in bucket {}: start the gardenlet, or \
             assign the entry to a different seed. See \"A BackupEntry waits for a lost seed\" in docs/operate/runbooks.md",
            entry.name_any(),
            entry.spec.bucket_name
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::SeedSpec;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_in_deletion_on_a_lost_seed_is_reported_with_its_bucket() {
        let body = json!({"metadata": {"name": "e", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"bucketName": "bucket-a", "seedName": "b"}, "status": {"seedName": "a"}});
        let mut entry: BackupEntry = serde_json::from_value(body).unwrap();
        assert_eq!(responsible_seed(&entry), Some("a"));
        let note = report(&entry, "a", None).unwrap();
        assert!(
            note.contains("seed a, which does not exist") && note.contains("bucket bucket-a"),
            "{note}"
        );
        assert!(note.chars().count() < 1000, "{note}");
        let mut seed = Seed::new("a", SeedSpec::default());
        assert_eq!(report(&entry, "a", Some(&seed)), None);
        let condition = json!({"type": "GardenletReady", "status": "Unknown", "reason": "R", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
        seed.status = serde_json::from_value(json!({"conditions": [condition]})).unwrap();
        assert!(report(&entry, "a", Some(&seed)).unwrap().contains("is silent"));
        entry.metadata.deletion_timestamp = None;
        assert_eq!(report(&entry, "a", Some(&seed)), None);
    }
}
