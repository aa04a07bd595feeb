//! The wait for the reservation of `spec.dns.domain` by garden-controller-manager, before a creation or a
//! reconciliation deploys the first object. A deletion and a move do not wait, so a refused domain blocks
//! neither. A shoot that runs with the domain does not wait either: the domain may be older than the
//! reservations, and overlap the domain of a second Shoot.

use std::time::Duration;

use api::{gardencore::Shoot, meta::ErrorCode};
use kube::{Api, ResourceExt};
use placement::{Operation, names};
use runtime::{
    Error, Result,
    client::{
        Cluster,
        wait::{self, WaitState},
    },
};

use crate::{Context, shoot::ownership::departure};

/// Longer than garden-controller-manager takes for a new Shoot. After that the operation fails with a text
/// for the user, and is tried again.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Waits until the domain of the Shoot, if any, is reserved.
pub(super) async fn wait_until_reserved(
    context: &Context,
    shoot: &Shoot,
    operation: Operation,
) -> Result<()> {
    let Some(domain) = awaited(shoot, operation) else {
        return Ok(());
    };
    if operation == Operation::Reconcile && is_deployed(context, shoot, domain).await? {
        tracing::warn!(
            shoot = shoot.name_any(),
            namespace = shoot.namespace(),
            domain,
            "spec.dns.domain is not reserved for a Shoot that runs with the domain"
        );
        return Ok(());
    }
    let api: Api<Shoot> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
    let look = |found: Option<&Shoot>| match found {
        Some(found) if unreserved(found).is_none() => WaitState::Done,
        _ => WaitState::Wait("its spec.dns.domain is not reserved yet".into()),
    };
    // Boxed: the future is large.
    match Box::pin(wait::until(&api, &shoot.name_any(), TIMEOUT, look)).await {
        Err(Error::NotReady { .. }) => Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "spec.dns.domain {domain} is not reserved for this Shoot (status.reservedDomain): if an Event DomainRefused of the Shoot \
                 names a reason, delete this Shoot and create the Shoot with another domain; if there is no such Event, \
                 garden-controller-manager does not run"
            ),
        )),
        other => other.map(drop),
    }
}

/// Whether the last operation in this seed deployed the shoot with the domain. Operation Reconcile alone
/// proves nothing, because a user can add a domain to a running Shoot.
async fn is_deployed(context: &Context, shoot: &Shoot, domain: &str) -> Result<bool> {
    let Some(namespace) = names::recorded_technical_id(shoot) else {
        return Ok(false);
    };
    let last = departure::last_known(&context.seed, namespace).await?;
    Ok(last.is_some_and(|last| had_domain(&last, shoot, domain)))
}

/// Whether the Shoot in the Cluster is this Shoot, with the domain.
fn had_domain(last: &Shoot, shoot: &Shoot, domain: &str) -> bool {
    let dns = last.spec.dns.as_ref();
    names::uid(last) == names::uid(shoot) && dns.and_then(|dns| dns.domain.as_deref()) == Some(domain)
}

/// The domain for which the operation waits.
fn awaited(shoot: &Shoot, operation: Operation) -> Option<&str> {
    match operation {
        Operation::Create | Operation::Reconcile => unreserved(shoot),
        Operation::Restore | Operation::Migrate | Operation::Delete | Operation::ForceDelete => None,
    }
}

fn unreserved(shoot: &Shoot) -> Option<&str> {
    let domain = shoot.spec.dns.as_ref()?.domain.as_deref()?;
    let reserved = shoot
        .status
        .as_ref()
        .and_then(|status| status.reserved_domain.as_deref());
    (reserved != Some(domain)).then_some(domain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    fn shoot(spec: &Value, status: &Value) -> Shoot {
        serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {"cloudProfile": {"name": "local"},
            "region": "local", "provider": {"type": "local"}, "kubernetes": {}, "dns": spec}, "status": status}))
        .unwrap()
    }

    #[test]
    fn a_creation_waits_for_the_reservation_and_a_deletion_does_not() {
        let named = json!({"domain": "web.customer.test"});
        let refused = shoot(&named, &json!({}));
        let other = shoot(&named, &json!({"reservedDomain": "other.customer.test"}));
        for shoot in [&refused, &other] {
            for operation in [Operation::Create, Operation::Reconcile] {
                assert_eq!(awaited(shoot, operation), Some("web.customer.test"));
            }
            for operation in [
                Operation::Restore,
                Operation::Migrate,
                Operation::Delete,
                Operation::ForceDelete,
            ] {
                assert_eq!(awaited(shoot, operation), None);
            }
        }
        let reserved = shoot(&named, &json!({"reservedDomain": "web.customer.test"}));
        assert_eq!(awaited(&reserved, Operation::Create), None);
        assert_eq!(awaited(&shoot(&json!({}), &json!({})), Operation::Create), None);
    }

    /// Otherwise a running Shoot from before the reservations would fail at each reconciliation, or a user
    /// would get the domain of a second Shoot by a later change.
    #[test]
    fn a_shoot_that_runs_with_the_domain_is_reconciled_without_a_reservation() {
        let named = json!({"domain": "web.customer.test"});
        let present = shoot(&named, &json!({"uid": "u"}));
        let had = |spec: &Value, uid: &str| {
            had_domain(&shoot(spec, &json!({"uid": uid})), &present, "web.customer.test")
        };
        assert!(had(&named, "u"));
        assert!(!had(&json!({}), "u"), "the domain was added later");
        assert!(!had(&json!({"domain": "other.customer.test"}), "u"));
        assert!(!had(&named, "former"), "an earlier Shoot of the same name");
    }
}
