//! Volumes that outlive their Etcd (`druid.gardener.cloud/keep-volume`), and their use by a later Etcd.
//!
//! The data of a shoot that left this seed move with the shoot. Its volume stays as a last resort until the
//! destination has restored the data. The claim then has no owner, and carries the epoch of its data as a
//! label. The names of claims are fixed, so the StatefulSet would give the claim to a later Etcd of the same
//! name. Hence:
//!
//! - A claim of the same epoch holds the Etcd's own history: the Etcd adopts the claim, and the claim is
//!   deleted with that Etcd. The same holds for a claim of the earlier epoch that the Etcd continues
//!   (`druid.gardener.cloud/continues-epoch`). Before etcd starts, `initialize` compares the data on the
//!   volume with the end of that epoch.
//! - On a claim of a different epoch no etcd starts. The Etcd reports the claim until the process or person
//!   that kept the claim has removed it.

use api::druid::Etcd;
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::PersistentVolumeClaim};
use kube::{Api, ResourceExt};
use runtime::{
    Error, Result,
    client::{Cluster, Seed, apply::FieldManager},
};
use serde_json::{Value, json};
use std::time::Duration;

use crate::{
    names::{DRUID, DRUID_KEEP_VOLUME, OWNERSHIP_EPOCH},
    observed::{Observed, is_retained},
    wanted::{ValidatedEtcd, epoch},
};

const MANAGER: FieldManager = FieldManager(DRUID);
/// Requeue interval for the StatefulSet, or for a claim that is being deleted; watches usually report sooner.
const VOLUME_REQUEUE: Duration = Duration::from_secs(2);

/// Whether the volume of this Etcd outlives the Etcd.
pub fn retains_volume(etcd: &Etcd) -> bool {
    let value = etcd.annotations().get(DRUID_KEEP_VOLUME);
    value.is_some_and(|value| value == "true")
}

/// Makes the claims of an Etcd that is being deleted outlive its StatefulSet. Returns without an error only
/// when no controller can remove the claims any more: the StatefulSet's controller has observed the
/// retention, and the claims have no owner.
pub async fn retain(seed: &Seed, etcd: &Etcd, observed: &Observed) -> Result<()> {
    let namespace = etcd.namespace().unwrap_or_default();
    if let Some(set) = observed
        .stateful_set
        .as_ref()
        .filter(|set| set.metadata.deletion_timestamp.is_none())
    {
        let sets: Api<StatefulSet> = seed.namespaced(&namespace);
        let retain = json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"}}});
        let set = MANAGER.merge(&sets, &set.name_any(), &retain).await?;
        let acted_on = set.status.as_ref().and_then(|status| status.observed_generation);
        if acted_on < set.metadata.generation {
            // Until the StatefulSet's controller has observed the change, the controller would add itself as
            // owner of the claims again.
            return Err(Error::not_ready(
                VOLUME_REQUEUE,
                "the volume is being detached from its StatefulSet",
            ));
        }
    }
    let epoch = epoch(etcd)?;
    let claims: Api<PersistentVolumeClaim> = seed.namespaced(&namespace);
    for claim in observed
        .claims
        .iter()
        .filter(|claim| !is_retained(claim) && claim.metadata.deletion_timestamp.is_none())
    {
        // Conditional on the resourceVersion: an owner that was added in between would be lost.
        let body = json!({"metadata": {
            "resourceVersion": claim.resource_version(),
            "labels": {OWNERSHIP_EPOCH: epoch.to_string()},
            "ownerReferences": Value::Null,
        }});
        MANAGER.merge(&claims, &claim.name_any(), &body).await?;
        tracing::info!(claim = claim.name_any(), epoch, "the volume outlives its Etcd");
    }
    Ok(())
}

/// Adopts a kept claim that the StatefulSet is about to use, or refuses to start etcd on the claim.
pub async fn adopt(seed: &Seed, wanted: &ValidatedEtcd, observed: &Observed) -> Result<()> {
    let name = wanted.claim_name();
    let Some((claim, of)) = observed
        .claims
        .iter()
        .filter(|claim| claim.name_any() == name)
        .find_map(|claim| Some((claim, claim.labels().get(OWNERSHIP_EPOCH)?)))
    else {
        return Ok(());
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(Error::not_ready(
            VOLUME_REQUEUE,
            format!("PersistentVolumeClaim {name} of an earlier Etcd is being removed"),
        ));
    }
    let own = [Some(wanted.epoch), wanted.continues];
    if !own.iter().flatten().any(|epoch| *of == epoch.to_string()) {
        return Err(Error::config(
            api::meta::ErrorCode::ErrRetryableConfigurationProblem,
            format!(
                "PersistentVolumeClaim {name} holds data of ownership epoch {of}, kept when an earlier Etcd was deleted, and \
                 this Etcd is of epoch {}: nothing starts on another history. Delete the claim if those data are not needed",
                wanted.epoch
            ),
        ));
    }
    let claims: Api<PersistentVolumeClaim> = seed.namespaced(&wanted.namespace);
    let body = json!({"metadata": {
        "resourceVersion": claim.resource_version(), "labels": {OWNERSHIP_EPOCH: Value::Null},
    }});
    MANAGER.merge(&claims, &name, &body).await.map(drop)
}
