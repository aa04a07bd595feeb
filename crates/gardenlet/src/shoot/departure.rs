//! The departure of a shoot that this seed has not seen, because the seed was away during the takeover and
//! during the deletion of the Shoot.
//!
//! The deletion of a Shoot does not wait for former seeds. The BackupEntry outlives the Shoot until the
//! backups are deleted. Until then the entry proves that a different seed had the shoot in a later epoch than
//! this seed, and that the Shoot was deleted: the garbage collector deletes the entry after the Shoot. Without
//! that proof the gardenlet changes no object, because a garden that was restored from an old backup lacks
//! Shoots that still run.

use api::{
    constants::OWNERSHIP_EPOCH,
    extensions::Cluster as ClusterObject,
    gardencore::{
        BackupEntry, Shoot,
        shoot::{FormerSeed, ShootStatus},
    },
};
use kube::ResourceExt;
use parts::{Cluster, Stay};
use placement::{Role, names, role};
use runtime::{Cluster as _, Result, error::Explain};

use crate::context::Context;

/// In the place of the unknown host in the Cluster of a departed shoot.
const UNKNOWN_HOST: &str = "unknown";

/// A departure that the garden proves.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProvenDeparture {
    /// The epoch of the residency in this seed.
    pub(super) epoch: i64,
    /// The seed that had the shoot last.
    pub(super) host: String,
}

/// Searches the garden for the proof that the Shoot of this namespace was taken over and deleted. The caller
/// has read that the garden has no such Shoot.
pub(super) async fn find_proof(context: &Context, stay: &Stay) -> Result<Option<ProvenDeparture>> {
    let entries = context.garden.namespaced::<BackupEntry>(&stay.tenant.namespace);
    let name = names::backup_entry(&stay.namespace, &stay.tenant.uid);
    let entry = entries.get_opt(&name).await;
    let Some(entry) = entry.context(format_args!("could not read BackupEntry {name}"))? else {
        return Ok(None);
    };
    let known = last_known(stay).await?;
    Ok(known.and_then(|shoot| prove(&entry, &shoot, &context.seed_name, &stay.tenant.uid)))
}

/// Writes the departure into the Cluster, so that providers and the resource-manager lose the right to act.
/// The gardenlet does so itself where the namespace has the mark and the Shoot is gone from the garden.
pub(super) async fn tell(stay: &Stay, seed: &str, epoch: i64) -> Result<()> {
    let known = last_known(stay).await?;
    match known.and_then(|shoot| departed(shoot, seed, epoch)) {
        Some(shoot) => Cluster::tell(stay, &shoot).await,
        None => Ok(()),
    }
}

/// The Shoot of the last operation in this seed.
async fn last_known(stay: &Stay) -> Result<Option<Shoot>> {
    let clusters = stay.seed.cluster_wide::<ClusterObject>();
    let found = clusters.get_opt(&stay.namespace).await;
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
    let later: i64 = entry.annotations().get(OWNERSHIP_EPOCH)?.parse().ok()?;
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
mod tests {
    #![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(status: Value) -> Shoot {
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": status,
        }))
        .unwrap()
    }

    fn entry(change: impl FnOnce(&mut Value)) -> BackupEntry {
        let mut entry = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupEntry",
            "metadata": {"name": "shoot--dev--web--u", "deletionTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {(OWNERSHIP_EPOCH): "4"}},
            "spec": {"bucketName": "bucket", "seedName": "seed-b"},
        });
        change(&mut entry);
        serde_json::from_value(entry).unwrap()
    }

    /// A garden that was restored from an old backup must not end a control plane that runs.
    #[test]
    fn only_a_later_epoch_of_a_different_seed_and_a_deletion_are_proof() {
        let own =
            |epoch: i64| shoot(json!({"seedName": "seed-a", "uid": "u", "ownership": {"epoch": epoch}}));
        let proof = prove(&entry(|_| ()), &own(3), "seed-a", "u").unwrap();
        assert_eq!((proof.epoch, proof.host.as_str()), (3, "seed-b"));
        assert_eq!(
            prove(&entry(|_| ()), &own(4), "seed-a", "u"),
            None,
            "the epoch of this seed is not older"
        );
        assert_eq!(
            prove(&entry(|_| ()), &own(3), "seed-a", "v"),
            None,
            "a different shoot"
        );
        let changes: [(&str, Value); 4] = [
            ("/metadata/deletionTimestamp", Value::Null),
            ("/metadata/annotations", json!({})),
            ("/metadata/annotations", json!({(OWNERSHIP_EPOCH): "four"})),
            ("/spec/seedName", json!("seed-a")),
        ];
        for (field, value) in changes {
            let weaker = entry(|entry| *entry.pointer_mut(field).unwrap() = value.clone());
            assert_eq!(prove(&weaker, &own(3), "seed-a", "u"), None, "{field} {value}");
        }
        let held = entry(|entry| entry["status"] = json!({"seedName": "seed-a"}));
        assert_eq!(
            prove(&held, &own(3), "seed-a", "u"),
            None,
            "this seed has the entry"
        );
        let elsewhere = shoot(json!({"seedName": "seed-c", "uid": "u"}));
        assert_eq!(
            prove(&entry(|_| ()), &elsewhere, "seed-a", "u"),
            None,
            "no residency is known"
        );
    }

    #[test]
    fn providers_lose_their_rights_with_a_departure() {
        let own = shoot(json!({"seedName": "seed-a", "uid": "u", "ownership": {"epoch": 3}}));
        let gone = departed(own, "seed-a", 3).unwrap();
        assert_eq!(role(&gone, "seed-a"), Role::Former { epoch: 3 });
        assert_eq!(gone.status.as_ref().map(ShootStatus::epoch), Some(4));
        assert_eq!(departed(gone, "seed-a", 3), None, "the departure is written once");
    }
}
