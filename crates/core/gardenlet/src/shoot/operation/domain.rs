//! The wait for the reservation of `spec.dns.domain` by garden-controller-manager, before this seed takes the
//! Shoot: a seed deploys no domain that is not reserved.
//!
//! Only a creation waits. A reconciliation, a move and a takeover work with a shoot that a seed has taken, so
//! the domain was reserved before, or is older than the reservations ([`placement::unreserved_domain`]).

use std::time::Duration;

use api::{
    gardencore::Shoot,
    meta::{ErrorCode, LastOperation, LastOperationState, LastOperationType},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, ResourceExt};
use placement::{Operation, is_hosted, last_errors, unreserved_domain};
use runtime::{
    Error, Result,
    client::{
        Cluster,
        wait::{self, WaitState},
    },
    clock,
};
use serde_json::{Value, json};

use super::{failure::single_error, status};
use crate::{Context, context::MANAGER};

/// Longer than garden-controller-manager takes for a new Shoot. After that the creation fails with an Event
/// for the user, and is tried again. A gardenlet writes no status of a Shoot that no seed has taken.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Task name of the error of a creation that waits for the reservation.
const RESERVATION: &str = "Waiting for the reservation of the domain";

/// Whether the operation deletes a Shoot that no seed takes, because the domain is not reserved. No seed has
/// objects of such a Shoot.
pub(crate) fn ends_before_creation(shoot: &Shoot, operation: Operation) -> bool {
    operation.deletes() && !is_hosted(shoot) && unreserved_domain(shoot).is_some()
}

/// Waits until the domain of the Shoot, if any, is reserved.
pub(crate) async fn wait_until_reserved(
    context: &Context,
    shoot: &Shoot,
    operation: Operation,
) -> Result<()> {
    let Some(domain) = required_domain(shoot, operation) else {
        return Ok(());
    };
    let api: Api<Shoot> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
    let look = |found: Option<&Shoot>| match found {
        Some(found) if unreserved_domain(found).is_none() => WaitState::Done,
        _ => WaitState::Wait("its spec.dns.domain is not reserved yet".into()),
    };
    // Boxed: the future is large.
    match Box::pin(wait::until(&api, &shoot.name_any(), TIMEOUT, look)).await {
        Err(Error::NotReady { .. }) => {
            let error = Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "spec.dns.domain {domain} is not reserved for this Shoot (status.reservedDomain): if an Event DomainRefused of the Shoot \
                     names a reason, delete this Shoot and create the Shoot with another domain; if there is no such Event, \
                     garden-controller-manager does not run, or the namespace of the Shoot has no Project"
                ),
            );
            if let Some(report) = report(shoot, &error, clock::now_k8s()) {
                // After a concurrent write, the next attempt reports the error.
                MANAGER.try_merge_status_of(&api, shoot, &report).await?;
            }
            Err(error)
        }
        other => other.map(drop),
    }
}

/// The status of a half-created Shoot that waits. `None` if the status reports the error already, or if no
/// seed has taken the Shoot: garden-controller-manager reports a refused domain there. The state never
/// becomes `Failed`, because the creation goes on after the reservation.
fn report(shoot: &Shoot, error: &Error, now: Time) -> Option<Value> {
    let status = shoot.status.as_ref().filter(|_| is_hosted(shoot))?;
    let last = status.last_operation.as_ref();
    let description = error.to_string();
    let is_reported = last.is_some_and(|last| last.state == LastOperationState::Error)
        && last_errors::is_only_error(shoot, &description);
    if is_reported {
        return None;
    }
    let last_error = single_error(RESERVATION, error, &now);
    let operation = LastOperation {
        description: format!("{description}."),
        last_update_time: now,
        progress: status::reached(shoot),
        state: LastOperationState::Error,
        type_: LastOperationType::Create,
    };
    Some(json!({
        "lastOperation": operation,
        "lastErrors": last_errors::patch_value(&[last_error]),
        "retryCycleStartTime": null,
    }))
}

/// The domain for which the operation waits.
fn required_domain(shoot: &Shoot, operation: Operation) -> Option<&str> {
    match operation {
        Operation::Create | Operation::Reconcile => unreserved_domain(shoot),
        Operation::Restore | Operation::Migrate | Operation::Delete | Operation::ForceDelete => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const ALL: [Operation; 6] = [
        Operation::Create,
        Operation::Reconcile,
        Operation::Restore,
        Operation::Migrate,
        Operation::Delete,
        Operation::ForceDelete,
    ];

    fn shoot(status: &Value) -> Shoot {
        serde_json::from_value(
            json!({"metadata": {"name": "web"}, "spec": {"cloudProfile": {"name": "local"},
            "region": "local", "provider": {"type": "local"}, "kubernetes": {},
            "dns": {"domain": "web.customer.test"}}, "status": status}),
        )
        .unwrap()
    }

    #[test]
    fn a_creation_waits_for_the_reservation_and_a_deletion_does_not() {
        let refused = shoot(&json!({}));
        for operation in ALL {
            let waits = matches!(operation, Operation::Create | Operation::Reconcile);
            assert_eq!(
                required_domain(&refused, operation).is_some(),
                waits,
                "{operation:?}"
            );
            let ends = ends_before_creation(&refused, operation);
            assert_eq!(ends, operation.deletes(), "{operation:?}");
        }
        let reserved = shoot(&json!({"reservedDomain": "web.customer.test"}));
        assert_eq!(required_domain(&reserved, Operation::Create), None);
        assert!(!ends_before_creation(&reserved, Operation::Delete));
    }

    /// A gardenlet of an earlier version took the Shoot before the reservation.
    #[test]
    fn a_half_created_shoot_reports_that_the_domain_is_not_reserved() {
        let now = || Time(jiff::Timestamp::UNIX_EPOCH);
        let error = Error::config(ErrorCode::ErrConfigurationProblem, "spec.dns.domain is taken");
        assert_eq!(report(&shoot(&json!({})), &error, now()), None, "no seed has it");
        let last = json!({"type": "Create", "state": "Processing", "progress": 7, "description": "d",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let mut status = json!({"seedName": "a", "lastOperation": last});
        let half_created = shoot(&status);
        assert!(required_domain(&half_created, Operation::Create).is_some());
        let body = report(&half_created, &error, now()).unwrap();
        let [state, progress] = ["state", "progress"].map(|field| &body["lastOperation"][field]);
        assert_eq!((state, progress), (&json!("Error"), &json!(7)));
        let reported = &body["lastErrors"][0];
        assert_eq!(reported["codes"], json!(["ERR_CONFIGURATION_PROBLEM"]));
        assert_eq!(reported["description"], "spec.dns.domain is taken");
        for field in ["lastOperation", "lastErrors"] {
            status[field] = body[field].clone();
        }
        assert_eq!(report(&shoot(&status), &error, now()), None, "once");
    }

    /// The domain of a shoot on a seed was reserved before, or is older than the reservations.
    #[test]
    fn no_operation_of_a_shoot_on_a_seed_waits() {
        let last = json!({"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "d",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let hosted = shoot(&json!({"seedName": "a", "lastOperation": last}));
        for operation in ALL {
            assert_eq!(required_domain(&hosted, operation), None, "{operation:?}");
            assert!(!ends_before_creation(&hosted, operation), "{operation:?}");
        }
    }
}
