//! The departure of a shoot that this seed has not seen, because the seed was away during the takeover and
//! during the deletion of the Shoot.
//!
//! The deletion of a Shoot does not wait for former seeds. The BackupEntry outlives the Shoot until the
//! backups are deleted. Until then the entry proves that a different seed had the shoot in a later epoch than
//! this seed, and that the Shoot was deleted: the garbage collector deletes the entry after the Shoot.
//! Without that proof the gardenlet changes no object, because a garden that was restored from an old backup
//! lacks Shoots that still run.
//!
//! In such a garden, the same entry may be created anew. So the entry must be older than the last operation
//! in this seed: the API server sets the time of creation. The epoch is the epoch in which
//! garden-controller-manager assigned the entry, because no seed can write this epoch.

use api::{
    constants::{BACKUP_ENTRY_ASSIGNED_IN_EPOCH, OWNERSHIP_EPOCH},
    extensions::Cluster as ClusterObject,
    gardencore::{
        BackupEntry, Shoot,
        shoot::{FormerSeed, ShootStatus},
    },
};
use kube::ResourceExt;
use parts::{Cluster, Residency};
use placement::{Role, names, role};
use runtime::{
    Result,
    client::{Cluster as _, Seed},
    error::Explain,
};

use crate::context::Context;

/// In the place of the unknown host in the Cluster of a departed shoot.
const UNKNOWN_HOST: &str = "unknown";

/// A departure that the garden proves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProvenDeparture {
    /// The epoch of the residency in this seed.
    pub(crate) epoch: i64,
    /// The seed that had the shoot last.
    pub(crate) host: String,
}

/// Searches the garden for the proof that the Shoot of this namespace was taken over and deleted. The caller
/// has read that the garden has no such Shoot.
pub(crate) async fn find_proof(context: &Context, residency: &Residency) -> Result<Option<ProvenDeparture>> {
    let entries = context
        .garden
        .namespaced::<BackupEntry>(&residency.tenant.namespace);
    let name = names::backup_entry(&residency.namespace, &residency.tenant.uid);
    let entry = entries.get_opt(&name).await;
    let Some(entry) = entry.context(format_args!("could not read BackupEntry {name}"))? else {
        return Ok(None);
    };
    let known = last_known(&residency.seed, &residency.namespace).await?;
    Ok(known.and_then(|shoot| prove(&entry, &shoot, &context.seed_name, &residency.tenant.uid)))
}

/// Writes the departure into the Cluster, so that providers and the resource-manager lose the right to act.
/// The gardenlet does so itself where the namespace has the mark and the Shoot is gone from the garden.
pub(crate) async fn write_into_cluster(residency: &Residency, seed: &str, epoch: i64) -> Result<()> {
    let known = last_known(&residency.seed, &residency.namespace).await?;
    match known.and_then(|shoot| departed(shoot, seed, epoch)) {
        Some(shoot) => Cluster::update_shoot(residency, &shoot).await,
        None => Ok(()),
    }
}

/// The Shoot of the last operation in this seed. `namespace`: the namespace of the shoot in the seed.
async fn last_known(seed: &Seed, namespace: &str) -> Result<Option<Shoot>> {
    let clusters = seed.cluster_wide::<ClusterObject>();
    let found = clusters.get_opt(namespace).await;
    let found = found.context("could not read the Cluster")?;
    Ok(found.and_then(|cluster| serde_json::from_value(cluster.spec.shoot.0).ok()))
}

fn prove(entry: &BackupEntry, known: &Shoot, seed: &str, uid: &str) -> Option<ProvenDeparture> {
    entry.metadata.deletion_timestamp.as_ref()?;
    let status = entry.status.as_ref();
    if names::uid(known) != uid || status.and_then(|status| status.seed_name.as_deref()) == Some(seed) {
        return None;
    }
    let host = entry.spec.seed_name.clone();
    let host = host.filter(|host| !host.is_empty() && host != seed)?;
    let created = entry.metadata.creation_timestamp.as_ref()?.0;
    let last = known.status.as_ref()?.last_operation.as_ref()?;
    if created > last.last_update_time.0 {
        return None;
    }
    // An entry of an earlier release has the second annotation alone.
    let annotations = entry.annotations();
    let assigned = annotations.get(BACKUP_ENTRY_ASSIGNED_IN_EPOCH);
    let later = assigned.or_else(|| annotations.get(OWNERSHIP_EPOCH))?;
    let later: i64 = later.parse().ok()?;
    let epoch = match role(known, seed) {
        Role::Owner => known.status.as_ref().map_or(1, ShootStatus::epoch),
        Role::Former { epoch } => epoch,
        Role::Incoming | Role::Nobody => return None,
    };
    (later > epoch).then_some(ProvenDeparture { epoch, host })
}

/// The Shoot after the departure; `None` if the Shoot shows the departure already.
fn departed(mut shoot: Shoot, seed: &str, epoch: i64) -> Option<Shoot> {
    if role(&shoot, seed) != Role::Owner {
        return None;
    }
    let status = shoot.status.get_or_insert_default();
    status.seed_name = Some(UNKNOWN_HOST.to_owned());
    status.former_seeds.push(FormerSeed {
        name: seed.to_owned(),
        epoch,
    });
    let ownership = status.ownership.get_or_insert_default();
    ownership.epoch = ownership.epoch.max(epoch.saturating_add(1));
    Some(shoot)
}

#[cfg(test)]
#[path = "departure_tests.rs"]
mod tests;
