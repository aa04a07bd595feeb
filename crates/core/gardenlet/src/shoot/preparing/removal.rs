//! Removes a prepared namespace when the grant has ended: after a cancellation, a change of the destination,
//! a deletion, a takeover by a different seed, the expiry, and the end of the Shoot in the garden.
//!
//! The decision follows from the namespace and from the Shoot as read, and no process remembers a
//! preparation. So the removal also runs after a restart, and without `--enable-preparation`. While the
//! garden does not answer, the namespace stays.

use std::time::Duration;

use api::gardencore::Shoot;
use jiff::Timestamp;
use kube::Api;
use ownership::may_remove_prepared;
use parts::{Namespace, Tenant, prepared_in};
use placement::{Role, names, preparation_in, role};
use runtime::{Result, client::Cluster as _, clock, controller::Next, error::Explain as _};
use tracing::info;

use crate::{Context, shoot::leaving::leave};

/// How often the gardenlet checks the grant of a prepared namespace: few namespaces are prepared at a time,
/// and a withdrawn grant does not change the namespace.
const GRANT_CHECK_PERIOD: Duration = Duration::from_secs(10);

/// Removes the namespace of this name unless a grant of this seed is valid. The namespace is read again,
/// because the flow of an owner may have removed the mark since.
pub(crate) async fn remove_without_grant(context: &Context, name: String, tenant: &Tenant) -> Result<Next> {
    let residency = leave::residency(context, name, tenant.clone());
    let Some(namespace) = residency.read_namespace().await? else {
        return Ok(Next::Change);
    };
    let Some(epoch) = prepared_in(&namespace).filter(|_| namespace.metadata.deletion_timestamp.is_none())
    else {
        return Ok(Next::After(GRANT_CHECK_PERIOD));
    };
    let shoots: Api<Shoot> = context.garden.namespaced(&tenant.namespace);
    let found = shoots.get_opt(&tenant.name).await.context(format_args!(
        "could not read Shoot {}/{}",
        tenant.namespace, tenant.name
    ))?;
    let shoot = found.filter(|found| names::uid(found) == tenant.uid);
    if is_kept(shoot.as_ref(), &context.seed_name, epoch, clock::now()) {
        return Ok(Next::After(GRANT_CHECK_PERIOD));
    }
    if Namespace::remove_prepared(&residency, &namespace).await? {
        info!(
            shoot = tenant.name,
            namespace = residency.namespace,
            "the preparation has ended: the namespace is removed"
        );
    }
    // The watch of namespaces reports the end. After a concurrent change, the next check decides.
    Ok(Next::After(GRANT_CHECK_PERIOD))
}

/// Whether the namespace stays: for the grant, or for the flow of a residency, which handles the mark.
fn is_kept(shoot: Option<&Shoot>, seed: &str, epoch: i64, now: Timestamp) -> bool {
    let is_resident =
        shoot.is_some_and(|shoot| matches!(role(shoot, seed), Role::Owner | Role::Former { .. }));
    let granted = shoot.and_then(|shoot| preparation_in(shoot, seed));
    let granted = granted.filter(|granted| granted.expiry.0 > now);
    !may_remove_prepared(epoch, is_resident, granted.map(|granted| granted.epoch))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// A Shoot on seed `a` in epoch 3, with a grant for seed `b` until second 100.
    fn shoot(fields: &[(&str, Value)]) -> Shoot {
        let grant = json!({"uid": "u", "source": "a", "destination": "b", "epoch": 3,
            "expiry": "1970-01-01T00:01:40Z"});
        let mut shoot = json!({
            "metadata": {"name": "web", "uid": "u"},
            "spec": {"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "ownership": {"epoch": 3}, "liveMigration": {"preparation": grant}},
        });
        for (pointer, value) in fields {
            *shoot.pointer_mut(pointer).unwrap() = value.clone();
        }
        serde_json::from_value(shoot).unwrap()
    }

    #[test]
    fn a_prepared_namespace_stays_under_its_grant_alone() {
        let granted = shoot(&[]);
        let kept = |shoot: Option<&Shoot>, epoch, now| is_kept(shoot, "b", epoch, at(now));
        assert!(kept(Some(&granted), 3, 99));
        // The expiry, by the clock of this seed.
        assert!(!kept(Some(&granted), 3, 100));
        // A leftover of a preparation in an earlier epoch.
        assert!(!kept(Some(&granted), 2, 99));
        // The Shoot is gone from the garden.
        assert!(!kept(None, 3, 99));
        for (field, value) in [
            ("/status/liveMigration", Value::Null),
            ("/status/liveMigration/preparation/destination", json!("c")),
            ("/status/seedName", json!("c")),
            ("/status/ownership/epoch", json!(4)),
            ("/metadata/uid", json!("v")),
        ] {
            let mut ended = shoot(&[(field, value)]);
            assert!(!kept(Some(&ended), 3, 99), "{field}");
            // A planned move alone is no grant.
            ended.spec.seed_name = Some("b".to_owned());
            assert!(!kept(Some(&ended), 3, 99), "{field}");
        }
    }

    /// The flow of the owner removes the mark, and the clean-up of a former seed removes the namespace.
    #[test]
    fn a_residency_takes_the_namespace_over() {
        let epoch = ("/status/ownership/epoch", json!(4));
        let arrived = shoot(&[("/status/seedName", json!("b")), epoch]);
        assert!(is_kept(Some(&arrived), "b", 3, at(99)));
        let mut former = shoot(&[("/status/seedName", json!("c"))]);
        let formers = json!([{"name": "b", "epoch": 4}]);
        former.status.as_mut().unwrap().former_seeds = serde_json::from_value(formers).unwrap();
        assert!(is_kept(Some(&former), "b", 3, at(99)));
    }
}
