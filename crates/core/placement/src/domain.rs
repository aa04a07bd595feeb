//! `spec.dns.domain` of a Shoot before the reservation by garden-controller-manager.

use api::gardencore::Shoot;

use crate::{hosting_seed, operation::is_half_created, status};

/// The domain of a Shoot that waits for the reservation. A seed takes the Shoot only after the reservation.
///
/// `None` for a shoot that a seed hosts. Policy `shoot-ownership` lets a seed take a Shoot only with a
/// reserved domain, and policy `shoot-domain-change` keeps the domain from then on. So the host has deployed
/// a domain that was reserved, or that is older than the reservations. Neither a member nor a seed can change
/// that proof, which every destination of a move reads. A creation that has not succeeded proves nothing: a
/// gardenlet of an earlier version took the Shoot before the reservation.
#[must_use]
pub fn unreserved_domain(shoot: &Shoot) -> Option<&str> {
    let domain = shoot.spec.dns.as_ref()?.domain.as_deref()?;
    let reserved = status(shoot).and_then(|status| status.reserved_domain.as_deref());
    let is_deployed = is_hosted(shoot) && !is_half_created(shoot);
    (reserved != Some(domain) && !is_deployed).then_some(domain)
}

/// Whether a seed has taken the Shoot. No seed has an object of a Shoot that no seed has taken.
#[must_use]
pub fn is_hosted(shoot: &Shoot) -> bool {
    hosting_seed(shoot).is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    const DOMAIN: &str = "web.customer.test";

    fn shoot(dns: &Value, status: &Value) -> Shoot {
        serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {"cloudProfile": {"name": "local"},
            "region": "local", "provider": {"type": "local"}, "kubernetes": {}, "dns": dns}, "status": status}))
        .unwrap()
    }

    fn status(host: Option<&str>, reserved: Option<&str>, last: Option<(&str, &str)>) -> Value {
        let last = last.map(|(type_, state)| {
            json!({"type": type_, "state": state, "progress": 1, "description": "d",
                "lastUpdateTime": "2026-01-01T00:00:00Z"})
        });
        json!({"seedName": host, "reservedDomain": reserved, "lastOperation": last})
    }

    #[test]
    fn a_shoot_without_a_host_waits_for_its_own_domain() {
        let named = json!({"domain": DOMAIN});
        let unreserved = |status: &Value| {
            let shoot = shoot(&named, status);
            unreserved_domain(&shoot).map(str::to_owned)
        };
        let waits = Some(DOMAIN.to_owned());
        assert_eq!(unreserved(&Value::Null), waits);
        assert_eq!(unreserved(&status(None, None, Some(("Create", "Error")))), waits);
        assert_eq!(
            unreserved(&status(None, Some("other.customer.test"), None)),
            waits
        );
        assert_eq!(unreserved(&status(None, Some(DOMAIN), None)), None);
        for dns in [json!(null), json!({}), json!({"domain": null})] {
            assert_eq!(unreserved_domain(&shoot(&dns, &Value::Null)), None, "{dns}");
        }
    }

    /// Else a move or takeover of a shoot from before the reservations would wait, or lose the domain.
    #[test]
    fn a_shoot_that_a_seed_hosts_waits_for_no_domain() {
        let named = json!({"domain": DOMAIN});
        for last in [
            ("Create", "Succeeded"),
            ("Reconcile", "Error"),
            ("Migrate", "Succeeded"),
            ("Restore", "Processing"),
            ("Delete", "Error"),
        ] {
            let hosted = shoot(&named, &status(Some("a"), None, Some(last)));
            assert_eq!(unreserved_domain(&hosted), None, "{last:?}");
        }
        // Of an earlier version, whose gardenlet took the Shoot before the reservation. Without a recorded
        // operation no seed has deployed the domain.
        for last in [Some(("Create", "Error")), None] {
            let refused = shoot(&named, &status(Some("a"), None, last));
            assert_eq!(unreserved_domain(&refused), Some(DOMAIN), "{last:?}");
        }
    }
}
