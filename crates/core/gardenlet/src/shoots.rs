//! The shared watch of all Shoots in the garden, and the part of a Shoot that the store keeps. A decision
//! about a field that is not kept reads the complete Shoot.

use api::gardencore::{
    Shoot, ShootSpec, ShootStatus,
    shoot::{Hibernation, Ownership, Provider, Worker},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use placement::{Role, role, seed_name_alone, trim_spec};
use runtime::{
    client::{Cluster, Garden},
    controller::{SharedWatch, runner},
};

/// The annotation of `kubectl apply`, with the whole Shoot.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The watch of all Shoots, to which each controller of the process subscribes. The seed has a role for few
/// Shoots of a large garden, but a field selector cannot express the roles.
#[must_use]
pub fn watch(garden: &Garden, seed: &str) -> SharedWatch<Shoot> {
    let seed = seed.to_owned();
    SharedWatch::new(garden.all(), runner::few_at_a_time(), move |shoot| {
        trim(shoot, &seed);
    })
}

/// Whether the seed is the host of the Shoot.
#[must_use]
pub fn is_hosted(shoot: &Shoot, seed: &str) -> bool {
    let status = shoot.status.as_ref();
    status.and_then(|status| status.seed_name.as_deref()) == Some(seed)
}

/// Removes the fields that no controller reads from the store. Of a Shoot for which the seed has no role, the
/// fields stay that show a later role.
fn trim(shoot: &mut Shoot, seed: &str) {
    if role(shoot, seed) == Role::Nobody {
        let metadata = std::mem::take(&mut shoot.metadata);
        shoot.metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            deletion_timestamp: metadata.deletion_timestamp,
            ..ObjectMeta::default()
        };
        shoot.status = shoot.status.take().map(|status| ShootStatus {
            // A grant to prepare is valid in its epoch alone.
            ownership: status
                .live_migration
                .as_ref()
                .map(|_| Ownership::of_epoch(status.epoch())),
            live_migration: status.live_migration,
            seed_name: status.seed_name,
            former_seeds: status.former_seeds,
            ..ShootStatus::default()
        });
        trim_spec(shoot, seed_name_alone);
        return;
    }
    if let Some(annotations) = &mut shoot.metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
    trim_spec(shoot, read_fields);
}

/// The fields of the specification that the checks of `care` read.
fn read_fields(spec: ShootSpec) -> ShootSpec {
    let enabled = spec.hibernation.and_then(|hibernation| hibernation.enabled);
    ShootSpec {
        hibernation: Some(Hibernation {
            enabled,
            ..Hibernation::default()
        }),
        provider: Provider {
            workers: minimum_of_all(&spec.provider.workers).into_iter().collect(),
            ..Provider::default()
        },
        ..ShootSpec::default()
    }
}

/// A worker pool with the least number of nodes of all worker pools; `None` for a workerless shoot.
fn minimum_of_all(workers: &[Worker]) -> Option<Worker> {
    let minimum = workers
        .iter()
        .map(|worker| worker.minimum)
        .reduce(i32::saturating_add)?;
    Some(Worker {
        minimum,
        ..Worker::default()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(status: &Value) -> Shoot {
        let worker = |name: &str| json!({"name": name, "minimum": 2, "maximum": 3, "machine": {"type": "m"}});
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "garden-dev", "uid": "u", "generation": 7,
                "labels": {"a": "b"}, "annotations": {"a": "b", (LAST_APPLIED): "{}"}},
            "spec": {"seedName": "b", "region": "r", "purpose": "production", "kubernetes": {"version": "1.34"},
                "hibernation": {"enabled": true, "schedules": [{"start": "0 20 * * *"}]},
                "provider": {"type": "metal", "workers": [worker("a"), worker("b")],
                    "infrastructureConfig": {"a": "b"}}},
            "status": status,
        }))
        .unwrap()
    }

    fn trimmed(status: &Value, seed: &str) -> Shoot {
        let mut shoot = shoot(status);
        trim(&mut shoot, seed);
        shoot
    }

    fn status() -> Value {
        json!({"seedName": "a", "technicalID": "shoot--dev--web", "hibernated": true,
            "formerSeeds": [{"name": "c", "epoch": 1}]})
    }

    #[test]
    fn of_a_shoot_of_the_seed_the_checks_find_all_they_read() {
        let (whole, kept) = (shoot(&status()), trimmed(&status(), "a"));
        assert_eq!(
            (&kept.status, &kept.metadata.labels),
            (&whole.status, &whole.metadata.labels)
        );
        assert_eq!(kept.metadata.generation, Some(7));
        assert_eq!(json!(kept.metadata.annotations), json!({"a": "b"}));
        assert!(placement::is_to_sleep(&kept));
        let minima: Vec<_> = kept
            .spec
            .provider
            .workers
            .iter()
            .map(|worker| worker.minimum)
            .collect();
        assert_eq!(minima, [4]);
        assert_eq!(
            (kept.spec.purpose, kept.spec.provider.infrastructure_config),
            (None, None)
        );
        assert_eq!(minimum_of_all(&[]), None);
    }

    /// A seed that is named in any field can get a role. The role must not be hidden by the trim.
    #[test]
    fn the_role_of_each_seed_is_kept() {
        let grant = json!({"uid": "u", "source": "a", "destination": "d", "epoch": 3,
            "expiry": "2026-01-01T00:00:00Z"});
        let preparing = |epoch: i64| json!({"seedName": "a", "ownership": {"epoch": epoch}, "liveMigration": {"preparation": grant}});
        for status in [
            status(),
            json!({}),
            json!({"seedName": "b"}),
            preparing(3),
            preparing(4),
        ] {
            for seed in ["a", "b", "c", "d"] {
                let kept = trimmed(&status, seed);
                for asked in ["a", "b", "c", "d"] {
                    assert_eq!(
                        role(&kept, asked),
                        role(&shoot(&status), asked),
                        "{seed} {asked} {status}"
                    );
                }
            }
        }
    }

    #[test]
    fn of_a_shoot_of_another_seed_little_is_kept() {
        let kept = trimmed(&status(), "d");
        assert_eq!(
            (&kept.metadata.labels, &kept.metadata.annotations),
            (&None, &None)
        );
        assert_eq!(kept.metadata.uid.as_deref(), Some("u"));
        assert!(kept.spec.provider.workers.is_empty() && kept.spec.hibernation.is_none());
        assert!(!kept.status.unwrap().hibernated);
    }
}
