//! The owner check of etcd-main: the condition for serving clients (R17-13). Also the conclusions that a move
//! may draw from an etcd that refuses clients by design (R17-53, R17-54; docs/understand/ownership.md).
//!
//! etcd-events has no separate check: no backup and no further seed ever has the content. kube-apiserver
//! reaches etcd-events through the process beside etcd-main, so that one permit ends both
//! (docs/understand/decisions/0036-events-need-the-gate.md).

use api::{
    constants::{OWNERSHIP_EPOCH, condition::OWNERSHIP_VERIFIED},
    druid::{Etcd, EventsGateSpec, OwnerCheckSpec},
    meta::ErrorCode,
};
use kube::ResourceExt;
use placement::names;
use runtime::{Error, Result};

use crate::{Facts, ownership::owner_claim};

/// Host and port of etcd-events without the gate.
pub(crate) const EVENTS_DIRECT: &str = "etcd-events-client:2379";
/// Port of the Service etcd-main-client for Events.
const EVENTS_PORT: i32 = 2381;

/// The owner check of etcd-main. A flow that does not deploy keeps the check unchanged: a change restarts
/// etcd, and the record may be gone by then.
pub(crate) fn check(f: &Facts, found: Option<&Etcd>) -> Result<Option<OwnerCheckSpec>> {
    if f.operation.deploys() {
        return specified_check(f);
    }
    Ok(found.and_then(|found| found.spec.backup.owner_check.clone()))
}

/// The owner check that the Seed specifies; `None` where the Seed does not enable owner checks.
pub(crate) fn specified_check(f: &Facts) -> Result<Option<OwnerCheckSpec>> {
    if !f.seed_object.spec.checks_owners() {
        return Ok(None);
    }
    let (name, dns) = owner_claim::name(&f.seed_object, &f.names)?;
    let given = f.seed_object.spec.owner_checks().cloned().unwrap_or_default();
    // Fields without a value in the Seed keep the value in the Etcd.
    Ok(Some(OwnerCheckSpec {
        name,
        id: owner_claim::identity(&f.seed_object)?,
        zone: dns.zone_name().to_owned(),
        authorities: owner_claim::authorities(&f.seed_object)?
            .iter()
            .map(ToString::to_string)
            .collect(),
        shoot_uid: names::uid(&f.shoot),
        interval: given.interval,
        timeout: given.timeout,
        store_timeout: given.store_timeout,
        validity: given.validity,
        requests: given.requests,
        propagation: given.propagation,
        dns_cache_ttl: given.dns_cache_ttl,
        fence: given.fence,
        drift: given.drift,
        silence: given.silence,
        events_gate: Some(EventsGateSpec {
            port: EVENTS_PORT,
            target: EVENTS_DIRECT.to_owned(),
        }),
    }))
}

/// The reason why this etcd has lost the shoot: etcd no longer serves, on purpose, in the Etcd's epoch.
pub(crate) fn loss_reason(etcd: &Etcd) -> Option<&str> {
    etcd.spec.backup.owner_check.as_ref()?;
    let conditions = &etcd.status.as_ref()?.conditions;
    let verified = conditions.iter().find(|c| c.type_ == OWNERSHIP_VERIFIED)?;
    (verified.status == "False").then_some(verified.message.as_str())
}

/// The reason why etcd refuses clients on purpose, temporarily or finally.
pub(crate) fn fence_reason(etcd: &Etcd) -> Option<&str> {
    let conditions = &etcd.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|c| c.type_ == "Ready")?;
    (ready.reason == "Fenced").then_some(ready.message.as_str())
}

/// The error for a caller that waits for a sealed etcd to serve: no operation reopens the epoch. A move that
/// is cancelled after the sealing continues in a new epoch, which garden-controller-manager grants; the next
/// attempt sees the grant.
pub(crate) fn sealed_error(etcd: &Etcd) -> Option<Error> {
    let why = loss_reason(etcd)?;
    let epoch = epoch_of(etcd).unwrap_or_default();
    Some(Error::config(
        ErrorCode::ErrRetryableConfigurationProblem,
        format!(
            "ownership epoch {epoch} of the shoot has ended in this seed ({why}) The move has to go on, or \
             garden-controller-manager has to grant this seed a new epoch"
        ),
    ))
}

/// Refuses to start an etcd in an epoch that has ended.
pub(crate) fn check_not_sealed(epoch: i64, found: Option<&Etcd>) -> Result<()> {
    let found = found.filter(|etcd| epoch_of(etcd) == Some(epoch));
    found.and_then(sealed_error).map_or(Ok(()), Err)
}

/// The epoch in which the Etcd was written; `None` for an unreadable annotation.
pub(crate) fn epoch_of(etcd: &Etcd) -> Option<i64> {
    let said = etcd.annotations().get(OWNERSHIP_EPOCH);
    said.map_or(Some(1), |text| text.parse().ok())
}

/// Whether the Etcd has backups of its own data. A copy of backups runs no etcd.
pub(crate) fn has_own_backups(etcd: &Etcd) -> bool {
    etcd.spec.backup.store.is_some() && etcd.spec.backup.source_store.is_none()
}

/// The epoch of the data of an Etcd that a lost residency has left. A seed that took its shoot back, or kept
/// the shoot in a new epoch, and lost the shoot before etcd was opened, still has the Etcd of an earlier
/// epoch. etcd-backup-restore takes the final snapshot of exactly that epoch.
pub(crate) fn data_epoch(etcd: &Etcd, residency: i64) -> Result<i64> {
    let epoch = epoch_of(etcd);
    epoch.filter(|epoch| *epoch <= residency).ok_or_else(|| {
        let said = etcd.annotations().get(OWNERSHIP_EPOCH);
        Error::transient(format!(
            "the annotation {OWNERSHIP_EPOCH} of Etcd etcd-main is {}, and the seed had the shoot last in \
             ownership epoch {residency}",
            said.map_or("missing", String::as_str)
        ))
    })
}

/// The source of the final snapshot of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalSnapshot {
    /// The flow requests the snapshot, because etcd has no owner check.
    OnRequest,
    /// etcd-backup-restore takes the snapshot when the owner record is gone (R17-50), and `snapshot/latest`
    /// proves the snapshot.
    OnSeal,
    /// The snapshot was not taken: etcd is stopped, and this flow has not started etcd yet. In a flow of the
    /// owner, the shoot is hibernated. For a former owner see [`super::ended::is_stopped_unsaved`].
    EtcdStopped,
    /// The Etcd is gone, and no process can report the snapshot.
    EtcdMissing,
}

/// The decision table of R17-54, with a different result for a missing Etcd. In R17-54, the flow deleted a
/// missing Etcd after the final snapshot. Here no flow deletes the Etcd before the hand-over, so a missing
/// Etcd proves nothing. `checks`: whether the seed keeps owner records. After the Seed switches owner checks
/// off, etcd may still check a record that no seed writes.
pub(crate) fn final_snapshot(etcd: Option<&Etcd>, checks: bool) -> FinalSnapshot {
    match etcd {
        None => FinalSnapshot::EtcdMissing,
        Some(etcd) if etcd.spec.replicas <= 0 => FinalSnapshot::EtcdStopped,
        Some(etcd) if checks && etcd.spec.backup.owner_check.is_some() => FinalSnapshot::OnSeal,
        Some(_) => FinalSnapshot::OnRequest,
    }
}

/// Whether the final snapshot is proved once more before the hand-over: only an etcd without a gate may have
/// changed since the first proof.
///
/// # Errors
/// The etcd of the first proof is gone or stopped.
pub(crate) fn needs_second_proof(source: FinalSnapshot) -> Result<bool> {
    match source {
        FinalSnapshot::OnRequest => Ok(true),
        FinalSnapshot::OnSeal => Ok(false),
        FinalSnapshot::EtcdStopped | FinalSnapshot::EtcdMissing => Err(cannot_be_taken(source)),
    }
}

/// The error for a state that the flow cannot change.
pub(crate) fn cannot_be_taken(what: FinalSnapshot) -> Error {
    match what {
        FinalSnapshot::EtcdStopped => {
            Error::transient("etcd-main is stopped: it has to run for its final snapshot")
        }
        _ => Error::transient(
            "the Etcd etcd-main is gone, so no process can report the final snapshot: the next attempt creates the Etcd again from \
             the backups in the bucket, and constraint DataComplete reports the changes that are in no backup",
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn etcd(replicas: i32, checked: bool) -> Etcd {
        let check =
            json!({"name": "owner.web.example.test", "id": "a", "zone": "example.test", "shootUID": "u"});
        crate::from_json(json!({
            "apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": {"name": "etcd-main"},
            "spec": {
                "labels": {}, "etcd": {}, "replicas": replicas,
                "backup": {"ownerCheck": if checked { check } else { Value::Null }},
            },
        }))
        .unwrap()
    }

    fn report_ownership(epoch: Option<&str>, status: &str) -> Etcd {
        let mut etcd = etcd(1, true);
        etcd.metadata.annotations =
            epoch.map(|epoch| [(OWNERSHIP_EPOCH.to_owned(), epoch.to_owned())].into());
        etcd.status = Some(
            serde_json::from_value(json!({"conditions": [{
                "type": "OwnershipVerified", "status": status, "reason": "", "message": "another seed has it",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
            }]}))
            .unwrap(),
        );
        etcd
    }

    /// R17-54.
    #[test]
    fn the_final_snapshot_is_judged_by_what_is_there() {
        for (etcd, checks, expected) in [
            (Some(Box::new(etcd(1, true))), true, FinalSnapshot::OnSeal),
            (Some(Box::new(etcd(1, true))), false, FinalSnapshot::OnRequest),
            (Some(Box::new(etcd(1, false))), true, FinalSnapshot::OnRequest),
            (Some(Box::new(etcd(0, true))), true, FinalSnapshot::EtcdStopped),
            (Some(Box::new(etcd(0, false))), false, FinalSnapshot::EtcdStopped),
            (None, true, FinalSnapshot::EtcdMissing),
        ] {
            assert_eq!(final_snapshot(etcd.as_deref(), checks), expected, "{etcd:?}");
        }
    }

    /// Without a gate a process may have written between the first proof and the check of the writers.
    #[test]
    fn the_end_of_an_etcd_without_a_gate_is_proved_again_before_the_hand_over() {
        assert!(needs_second_proof(FinalSnapshot::OnRequest).unwrap());
        assert!(!needs_second_proof(FinalSnapshot::OnSeal).unwrap());
        for gone in [FinalSnapshot::EtcdStopped, FinalSnapshot::EtcdMissing] {
            assert!(needs_second_proof(gone).is_err(), "{gone:?}");
        }
    }

    /// R17-46: the data are those of the Etcd, not of the residency.
    #[test]
    fn the_data_of_a_seed_that_lost_the_shoot_again_are_of_the_epoch_of_its_etcd() {
        for (annotation, residency, expected) in [
            (Some("3"), 3, Some(3)),
            (Some("3"), 5, Some(3)),
            (None, 2, Some(1)),
            (Some("4"), 3, None),
            (Some("four"), 5, None),
        ] {
            let judged = data_epoch(&report_ownership(annotation, "True"), residency);
            assert_eq!(judged.ok(), expected, "{annotation:?} {residency}");
        }
    }

    #[test]
    fn a_sealed_epoch_is_not_brought_up_again() {
        for (epoch, annotation, verified, refused) in [
            (1, None, "False", true),
            (3, Some("3"), "False", true),
            // The new epoch was granted.
            (4, Some("3"), "False", false),
            (2, None, "False", false),
            (3, Some("3"), "Unknown", false),
            (3, Some("3"), "True", false),
            (3, Some("none"), "False", false),
        ] {
            let judged = check_not_sealed(epoch, Some(&report_ownership(annotation, verified)));
            assert_eq!(judged.is_err(), refused, "{epoch} {judged:?}");
        }
        assert!(check_not_sealed(3, None).is_ok());
        // The condition of a removed check does not count.
        let mut without = report_ownership(None, "False");
        without.spec.backup.owner_check = None;
        assert!(check_not_sealed(1, Some(&without)).is_ok());
        let error = check_not_sealed(1, Some(&report_ownership(None, "False")))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("another seed has it") && error.contains("grant"),
            "{error}"
        );
    }
}
