//! The grant by which a seed prepares for a shoot that a different seed hosts.

use api::gardencore::{Shoot, shoot::MigrationPreparation};
use ownership::{PreparationGrant, SeedEpoch};

use crate::{hosting_seed, status};

/// The grant that the status records, whether valid or void.
#[must_use]
pub fn recorded_preparation(shoot: &Shoot) -> Option<&MigrationPreparation> {
    status(shoot)?.live_migration.as_ref()?.preparation.as_ref()
}

/// The valid grant. A grant is void as soon as the Shoot is a different object, has a different host or
/// epoch, or is being deleted. So each hand-over and each takeover ends the grant in the same write. The
/// policies of the garden apply the same rule. The caller compares the expiry with the clock.
#[must_use]
pub fn preparation(shoot: &Shoot) -> Option<&MigrationPreparation> {
    let granted = recorded_preparation(shoot)?;
    let now = SeedEpoch {
        seed: hosting_seed(shoot)?,
        epoch: status(shoot)?.epoch(),
    };
    let grant = PreparationGrant {
        source: SeedEpoch {
            seed: granted.source.as_str(),
            epoch: granted.epoch,
        },
        destination: granted.destination.as_str(),
    };
    let is_same_shoot = shoot.metadata.uid.as_ref() == Some(&granted.uid);
    let is_valid = grant.is_valid(&now) && is_same_shoot && shoot.metadata.deletion_timestamp.is_none();
    is_valid.then_some(granted)
}

/// The valid grant of the seed of that name.
#[must_use]
pub fn preparation_in<'a>(shoot: &'a Shoot, seed: &str) -> Option<&'a MigrationPreparation> {
    preparation(shoot).filter(|granted| granted.destination == seed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::{Role, role};

    /// A Shoot on seed `a` in epoch 3, with a grant for seed `b` and these changes.
    fn shoot(changes: &Value) -> Shoot {
        let grant = json!({"uid": "u", "source": "a", "destination": "b", "epoch": 3,
            "expiry": "2026-01-01T00:00:00Z"});
        let mut shoot = json!({
            "metadata": {"name": "web", "uid": "u"},
            "spec": {"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "ownership": {"epoch": 3}, "liveMigration": {"preparation": grant}},
        });
        json_patch::merge(&mut shoot, changes);
        serde_json::from_value(shoot).unwrap()
    }

    #[test]
    fn a_grant_makes_the_destination_incoming() {
        let granted = shoot(&json!({}));
        for (seed, expected) in [("a", Role::Owner), ("b", Role::Incoming), ("c", Role::Nobody)] {
            assert_eq!(role(&granted, seed), expected, "{seed}");
            assert_eq!(preparation_in(&granted, seed).is_some(), seed == "b");
        }
    }

    /// No process has to write for the end of the grant.
    #[test]
    fn a_grant_is_void_for_any_other_residency() {
        let granted = |fields: Value| json!({"status": {"liveMigration": {"preparation": fields}}});
        for changes in [
            json!({"metadata": {"uid": "v"}}),
            json!({"metadata": {"uid": null}}),
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            json!({"status": {"seedName": "c"}}),
            json!({"status": {"seedName": null}}),
            json!({"status": {"ownership": {"epoch": 4}}}),
            json!({"status": {"ownership": null}}),
            granted(json!({"uid": "v"})),
            granted(json!({"source": "c"})),
            granted(json!({"epoch": 2})),
            granted(Value::Null),
            json!({"status": {"liveMigration": null}}),
        ] {
            let void = shoot(&changes);
            assert_eq!(preparation(&void), None, "{changes}");
            assert_eq!(role(&void, "b"), Role::Nobody, "{changes}");
        }
        let of_the_host = shoot(&granted(json!({"destination": "a"})));
        assert_eq!(preparation(&of_the_host), None);
    }

    /// A seed that got the shoot back, and a seed that still cleans up, prepare nothing.
    #[test]
    fn no_role_of_a_residency_gives_way_to_a_grant() {
        let former = json!({"status": {"formerSeeds": [{"name": "b", "epoch": 2}]}});
        assert_eq!(role(&shoot(&former), "b"), Role::Former { epoch: 2 });
        let arrived = json!({"status": {"seedName": "b", "ownership": {"epoch": 4}}});
        assert_eq!(role(&shoot(&arrived), "b"), Role::Owner);
    }
}
