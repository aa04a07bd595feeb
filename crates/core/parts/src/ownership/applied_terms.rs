//! The owner terms of a shoot's processes. A flow records the terms in `status.ownerChecks` of the Shoot at
//! the end, and withdraws the record before the first process gets different terms. A takeover needs the
//! record: a process with different or missing terms may ask a server that no destination knows
//! (docs/understand/ownership.md, "Who gets the settings").

use api::gardencore::{Seed as SeedObject, Shoot, shoot::SeedOwnerCheck};
use kube::ResourceExt;
use placement::owner_terms;
use runtime::{Result, client::Cluster};
use serde_json::json;

use crate::{ConflictLimit, FIELD_MANAGER, Facts, ownership::owner_claim};

/// The record of the owner terms of a shoot.
#[derive(Debug)]
pub struct AppliedTerms;

impl AppliedTerms {
    /// The terms that a flow gives to processes: a hash of epoch, identity, zone, servers and settings.
    /// `None` where the Seed does not check owners.
    #[must_use]
    pub fn of_seed(seed: &SeedObject, epoch: i64) -> Option<String> {
        owner_terms::hash(seed, epoch)
    }

    /// Withdraws the record if this flow gives different terms. Must come before the first change of the
    /// flow.
    pub async fn withdraw_other(f: &Facts) -> Result<()> {
        let wanted = Self::of_seed(&f.seed_object, f.epoch());
        change(f, |entry| {
            let is_other = entry.terms.is_some() && entry.terms != wanted;
            is_other.then(|| SeedOwnerCheck {
                terms: None,
                ..entry.clone()
            })
        })
        .await
    }

    /// Records the terms after a flow has ended: every process that the flow deploys runs with these terms.
    pub async fn record(f: &Facts) -> Result<()> {
        let Some(terms) = Self::of_seed(&f.seed_object, f.epoch()) else {
            return Ok(());
        };
        let (name, dns) = owner_claim::name(&f.seed_object, &f.names)?;
        change(f, |entry| {
            let recorded = SeedOwnerCheck {
                epoch: f.epoch(),
                terms: Some(terms.clone()),
                name: Some(name.clone()),
                zone: Some(dns.zone_name().to_owned()),
                ..entry.clone()
            };
            (recorded != *entry).then_some(recorded)
        })
        .await
    }
}

/// Changes the entry of this seed, while the shoot is on this seed in the epoch of the flow. After a
/// concurrent write, `decide` runs again.
async fn change(f: &Facts, decide: impl Fn(&SeedOwnerCheck) -> Option<SeedOwnerCheck> + Send) -> Result<()> {
    let own = f.seed_object.name_any();
    let api = f.garden.namespaced::<Shoot>(&f.shoot_namespace());
    let mut conflicts = ConflictLimit::default();
    loop {
        let newest = f.newest_shoot().await?;
        let Some(status) = newest.status.as_ref() else {
            return Ok(());
        };
        if status.seed_name.as_deref() != Some(own.as_str()) || status.epoch() != f.epoch() {
            return Ok(());
        }
        let entry = status.owner_check_in(&own).cloned();
        let entry = entry.unwrap_or_else(|| SeedOwnerCheck {
            seed_name: own.clone(),
            epoch: f.epoch(),
            ..SeedOwnerCheck::default()
        });
        let Some(changed) = decide(&entry) else {
            return Ok(());
        };
        let patch = json!({"ownerChecks": status.owner_checks_with(changed)});
        if FIELD_MANAGER
            .try_merge_status_of(&api, &newest, &patch)
            .await?
            .is_some()
        {
            return Ok(());
        }
        conflicts.count("Shoot", &newest.name_any())?;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::Value;

    use super::*;

    #[test]
    fn terms_differ_where_a_process_would_ask_or_believe_otherwise() {
        let seed = |checks: &Value, identity: &str, zone: &str| -> SeedObject {
            serde_json::from_value(json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "a"},
                "spec": {
                    "dns": {"internal": {"type": "local", "domain": "internal.example.test", "zone": zone,
                        "credentialsRef": {"name": "dns", "namespace": "garden"}}},
                    "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                    "provider": {"type": "local", "region": "local"}, "settings": {"ownerChecks": checks}},
                "status": {"clusterIdentity": identity},
            }))
            .unwrap()
        };
        let usual = json!({"enabled": true, "authorities": ["192.0.2.1:53"]});
        let of = |seed: &SeedObject, epoch| AppliedTerms::of_seed(seed, epoch).unwrap();
        let first = of(&seed(&usual, "i", "example.test"), 1);
        assert_eq!(first.len(), 32);
        assert_eq!(first, of(&seed(&usual, "i", "example.test"), 1));
        for (checks, identity, zone, epoch) in [
            (usual.clone(), "i", "example.test", 2),
            (usual.clone(), "other", "example.test", 1),
            (usual.clone(), "i", "internal.example.test", 1),
            (
                json!({"enabled": true, "authorities": ["192.0.2.2:53"]}),
                "i",
                "example.test",
                1,
            ),
            (json!({"enabled": true}), "i", "example.test", 1),
            (
                json!({"enabled": true, "authorities": ["192.0.2.1:53"], "validity": "30s", "fence": "1m"}),
                "i",
                "example.test",
                1,
            ),
        ] {
            let other = of(&seed(&checks, identity, zone), epoch);
            assert_ne!(first, other, "{checks} {identity} {zone} {epoch}");
        }
        for off in [json!({"enabled": false}), Value::Null] {
            assert_eq!(AppliedTerms::of_seed(&seed(&off, "i", "example.test"), 1), None);
        }
    }
}
