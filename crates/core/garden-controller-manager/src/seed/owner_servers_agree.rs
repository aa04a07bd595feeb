//! Whether a Seed uses the same DNS servers for owner records as all other Seeds of the same internal domain.
//! A difference lets two control planes write, or keeps shoots from being taken over. Pure; `controller.rs`
//! writes the condition `OwnerServersAgree`.

use std::sync::Arc;

use api::{
    constants::condition::OWNER_SERVERS_AGREE,
    gardencore::Seed,
    meta::{Condition, ConditionStatus, find_condition},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

use crate::shoot_takeover::servers;

/// The first difference to another Seed, in the order of names; `None` where no other Seed keeps owner
/// records under the same domain.
fn compare(seed: &Seed, all: &[Arc<Seed>]) -> Option<Result<(), String>> {
    let name = seed.name_any();
    let mut others: Vec<_> = all
        .iter()
        .filter(|other| other.name_any() != name && servers::share_domain(seed, other))
        .collect();
    others.sort_by_key(|other| other.name_any());
    let mut differences = others
        .iter()
        .filter_map(|other| servers::disagreement(seed, None, other));
    match differences.next() {
        Some(difference) => Some(Err(difference)),
        None => (!others.is_empty()).then_some(Ok(())),
    }
}

/// The condition `OwnerServersAgree` of a Seed; `None` without a Seed to compare.
pub(super) fn condition(seed: &Seed, all: &[Arc<Seed>], now: Time) -> Option<Condition> {
    Some(match compare(seed, all)? {
        Ok(()) => Condition::new(
            OWNER_SERVERS_AGREE,
            ConditionStatus::True,
            "ServersAgree",
            "All Seeds with owner records under this domain ask the same DNS servers.",
            now,
        ),
        Err(difference) => Condition::new(
            OWNER_SERVERS_AGREE,
            ConditionStatus::False,
            "ServersDisagree",
            &format!(
                "Different DNS servers are asked for owner records: {difference}. No shoot is taken over between these seeds without a \
                 person's statement that the source is off. Name the same servers in both Seeds, and reconcile the shoots."
            ),
            now,
        ),
    })
}

/// Whether the Seed has this condition already. The times do not count, or each comparison would be a write.
pub(super) fn is_reported(seed: &Seed, wanted: Option<&Condition>) -> bool {
    let status = seed.status.as_ref();
    let reported = status.and_then(|status| find_condition(&status.conditions, OWNER_SERVERS_AGREE));
    let content = |condition: &Condition| {
        (
            condition.status,
            condition.reason.clone(),
            condition.message.clone(),
        )
    };
    reported.map(content) == wanted.map(content)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn seed(name: &str, domain: &str, authorities: &[&str]) -> Arc<Seed> {
        let seed = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": name},
            "spec": {"dns": {"internal": {"type": "local", "domain": domain, "zone": "example.test",
                    "credentialsRef": {"name": "dns", "namespace": "garden"}}},
                "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                "provider": {"type": "local", "region": "local"},
                "settings": {"ownerChecks": {"enabled": true, "authorities": authorities}}},
        });
        Arc::new(serde_json::from_value(seed).unwrap())
    }

    fn check_servers(seed: &Seed, all: &[Arc<Seed>]) -> Option<Condition> {
        condition(seed, all, Time(jiff::Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn an_edit_that_lets_two_seeds_disagree_is_reported_once() {
        let (one, two) = ("192.0.2.1:53", "192.0.2.2:53");
        let domain = "internal.example.test";
        let (a, b) = (seed("a", domain, &[one]), seed("b", domain, &[one]));
        let elsewhere = seed("c", "other.example.test", &[two]);
        assert_eq!(check_servers(&a, &[a.clone(), elsewhere.clone()]), None);
        let same = check_servers(&a, &[a.clone(), b.clone(), elsewhere]).unwrap();
        assert_eq!(same.status, ConditionStatus::True);
        let edited = seed("b", domain, &[two]);
        let found = check_servers(&a, &[edited.clone(), a.clone()]).unwrap();
        assert_eq!(found.status, ConditionStatus::False);
        for part in ["seed a asks 192.0.2.1:53", "seed b asks 192.0.2.2:53"] {
            assert!(found.message.contains(part), "{}", found.message);
        }
        assert!(!is_reported(&a, Some(&found)));
        let mut reported = a.as_ref().clone();
        reported.status = serde_json::from_value(json!({"conditions": [found]})).unwrap();
        assert!(is_reported(&reported, Some(&found)));
        let further_reason = Condition {
            reason: "FurtherReason".into(),
            ..found
        };
        for different in [Some(&same), Some(&further_reason), None] {
            assert!(!is_reported(&reported, different), "{different:?}");
        }
        let unnamed = check_servers(&b, &[seed("a", domain, &[]), b.clone()]).unwrap();
        assert!(unnamed.message.contains("NS records"), "{}", unnamed.message);
    }
}
