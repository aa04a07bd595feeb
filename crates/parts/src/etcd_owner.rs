//! Who must own the shoot for etcd-main to be served (R17-13), and what a move may conclude from an etcd that
//! is kept away from clients by design (R17-53, R17-54; docs/understand/ownership.md).
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

use crate::{Facts, owner_claim};

/// Host and port of etcd-events itself.
pub(crate) const EVENTS_DIRECT: &str = "etcd-events-client:2379";
/// Port of the Service etcd-main-client for Events.
const EVENTS_PORT: i32 = 2381;

/// The check of etcd-main. A flow that does not deploy leaves it as it is: etcd is restarted where it
/// changes, and the record may be gone by then.
pub(crate) fn check(f: &Facts, found: Option<&Etcd>) -> Result<Option<OwnerCheckSpec>> {
    if !f.operation.deploys() {
        return Ok(found.and_then(|found| found.spec.backup.owner_check.clone()));
    }
    if !f.seed_object.spec.checks_owners() {
        return Ok(None);
    }
    let (name, dns) = owner_claim::name(&f.seed_object, &f.names)?;
    let given = f.seed_object.spec.owner_checks().cloned().unwrap_or_default();
    // What the Seed does not give stays as it is in the Etcd.
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

/// Why the shoot is lost for this etcd: it is not served any more, on purpose, in its epoch.
pub(crate) fn lost(etcd: &Etcd) -> Option<&str> {
    etcd.spec.backup.owner_check.as_ref()?;
    let conditions = &etcd.status.as_ref()?.conditions;
    let verified = conditions.iter().find(|c| c.type_ == OWNERSHIP_VERIFIED)?;
    (verified.status == "False").then_some(verified.message.as_str())
}

/// Why clients are kept away on purpose, for a while or for ever.
pub(crate) fn fenced(etcd: &Etcd) -> Option<&str> {
    let conditions = &etcd.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|c| c.type_ == "Ready")?;
    (ready.reason == "Fenced").then_some(ready.message.as_str())
}

/// What an etcd that is not served any more says to who wants it to: nothing opens its epoch again. A move
/// that is called off after that goes on in a new epoch, which is granted by others; the next try sees it.
pub(crate) fn sealed(etcd: &Etcd) -> Option<Error> {
    let why = lost(etcd)?;
    let epoch = epoch_of(etcd).unwrap_or_default();
    Some(Error::config(
        ErrorCode::ErrRetryableConfigurationProblem,
        format!(
            "ownership epoch {epoch} of the shoot has ended in this seed ({why}) The move has to go on, or \
             garden-controller-manager has to grant this seed a new epoch"
        ),
    ))
}

/// Refuses to bring up an etcd whose epoch has ended, in that epoch.
pub(crate) fn check_not_sealed(epoch: i64, found: Option<&Etcd>) -> Result<()> {
    let found = found.filter(|etcd| epoch_of(etcd) == Some(epoch));
    found.and_then(sealed).map_or(Ok(()), Err)
}

/// In which epoch an Etcd was written; none where that cannot be read.
pub(crate) fn epoch_of(etcd: &Etcd) -> Option<i64> {
    let said = etcd.annotations().get(OWNERSHIP_EPOCH);
    said.map_or(Some(1), |text| text.parse().ok())
}

/// How the final snapshot of a move is come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinalSnapshot {
    /// The flow asks for it: nobody checks who owns the shoot.
    AskedFor,
    /// The process beside etcd takes it by itself when the owner record has gone (R17-50), and
    /// `snapshot/latest` proves it.
    TakenByItself,
    /// It was not taken: etcd sleeps, and this flow has not woken it yet.
    NotTaken,
    /// Nobody can say any more.
    Unknown,
}

/// The decision table of R17-54. It departs in one row: there an Etcd that is gone was deleted by the flow,
/// after its final snapshot. Here nothing deletes it before the hand-over, so that one that is gone proves
/// nothing. `checks`: whether the seed keeps owner records. Where it has ceased to, etcd may still ask for
/// one that nobody writes.
pub(crate) fn final_snapshot(etcd: Option<&Etcd>, checks: bool) -> FinalSnapshot {
    match etcd {
        None => FinalSnapshot::Unknown,
        Some(etcd) if etcd.spec.replicas <= 0 => FinalSnapshot::NotTaken,
        Some(etcd) if checks && etcd.spec.backup.owner_check.is_some() => FinalSnapshot::TakenByItself,
        Some(_) => FinalSnapshot::AskedFor,
    }
}

/// What the flow cannot do anything about.
pub(crate) fn cannot_be_taken(what: FinalSnapshot) -> Error {
    match what {
        FinalSnapshot::NotTaken => {
            Error::transient("etcd-main is stopped: it has to run for its final snapshot")
        }
        _ => Error::transient(
            "the Etcd etcd-main is gone, and whether its final snapshot was taken cannot be asked any more: it is made anew by the \
             next try, from what lies in the bucket",
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

    fn told(epoch: Option<&str>, status: &str) -> Etcd {
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
            (Some(Box::new(etcd(1, true))), true, FinalSnapshot::TakenByItself),
            (Some(Box::new(etcd(1, true))), false, FinalSnapshot::AskedFor),
            (Some(Box::new(etcd(1, false))), true, FinalSnapshot::AskedFor),
            (Some(Box::new(etcd(0, true))), true, FinalSnapshot::NotTaken),
            (Some(Box::new(etcd(0, false))), false, FinalSnapshot::NotTaken),
            (None, true, FinalSnapshot::Unknown),
        ] {
            assert_eq!(final_snapshot(etcd.as_deref(), checks), expected, "{etcd:?}");
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
            let judged = check_not_sealed(epoch, Some(&told(annotation, verified)));
            assert_eq!(judged.is_err(), refused, "{epoch} {judged:?}");
        }
        assert!(check_not_sealed(3, None).is_ok());
        // What a check said that is not made any more does not count.
        let mut without = told(None, "False");
        without.spec.backup.owner_check = None;
        assert!(check_not_sealed(1, Some(&without)).is_ok());
        let error = check_not_sealed(1, Some(&told(None, "False")))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("another seed has it") && error.contains("grant"),
            "{error}"
        );
    }
}
