//! The grant by which a seed prepares for a shoot that a different seed hosts.

use api::gardencore::{Shoot, shoot::MigrationPreparation};
use ownership::{PreparationGrant, SeedEpoch};

use crate::{hosting_seed, status};

/// Between the name of the Shoot and the grant, in the name of the object with the keys.
const INFIX: &str = ".preparation-";
/// Before the grant and the name of the shoot's own BackupEntry, in the name of the BackupEntry of a
/// preparation.
const ENTRY_PREFIX: &str = "prepared-";

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

/// Epoch and expiry (Unix seconds) of a grant. Two grants of one epoch differ in the expiry.
#[must_use]
pub fn grant_id(granted: &MigrationPreparation) -> String {
    format!("{}-{}", granted.epoch, granted.expiry.0.as_second())
}

/// The name of the InternalSecret with the keys for the destination of this grant. The policies
/// `gardenlet-internalsecret` and `gardenlet-shoot-objects` repeat the name.
#[must_use]
pub fn preparation_state_name(shoot: &str, granted: &MigrationPreparation) -> String {
    format!("{shoot}{INFIX}{}", grant_id(granted))
}

/// The Shoot in a name of [`preparation_state_name`]; `None` for any further name.
#[must_use]
pub fn shoot_of_preparation_state(name: &str) -> Option<&str> {
    let (shoot, grant) = name.rsplit_once(INFIX)?;
    let (epoch, expiry) = grant.split_once('-')?;
    (!shoot.is_empty() && is_number(epoch) && is_number(expiry)).then_some(shoot)
}

/// The name of the BackupEntry for the destination of this grant, and of the folder in the bucket of the
/// destination. `entry`: the name of the shoot's own BackupEntry. The policies `gardenlet-backupentry` and
/// `garden-controller-manager-backupentry` repeat the name.
#[must_use]
pub fn preparation_entry_name(entry: &str, granted: &MigrationPreparation) -> String {
    format!("{ENTRY_PREFIX}{}-{entry}", grant_id(granted))
}

/// The name of the shoot's own BackupEntry in a name of [`preparation_entry_name`]; `None` for any further
/// name.
#[must_use]
pub fn entry_of_preparation(name: &str) -> Option<&str> {
    let (epoch, rest) = name.strip_prefix(ENTRY_PREFIX)?.split_once('-')?;
    let (expiry, entry) = rest.split_once('-')?;
    (!entry.is_empty() && is_number(epoch) && is_number(expiry)).then_some(entry)
}

fn is_number(text: &str) -> bool {
    (1..=19).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::{Role, names, role};

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

    /// garden-controller-manager grants a right to this name, and deletes objects of such names.
    #[test]
    fn an_object_with_keys_is_of_one_grant_and_one_shoot() {
        let granted = shoot(&json!({}));
        let granted = preparation(&granted).unwrap();
        let name = preparation_state_name("web", granted);
        assert_eq!(name, "web.preparation-3-1767225600");
        assert_eq!(name, format!("web.preparation-{}", grant_id(granted)));
        for (name, shoot) in [
            (&*name, Some("web")),
            ("web.preparation-1-2.preparation-3-4", Some("web.preparation-1-2")),
            ("web.state-1-0", None),
            ("web.preparation-1", None),
            ("web.preparation-1-", None),
            ("web.preparation-1-2-3", None),
            ("web.preparation-+1-2", None),
            ("web.preparation--1-2", None),
            ("web.preparation-1-20000000000000000000", None),
            (".preparation-1-2", None),
            ("", None),
        ] {
            assert_eq!(shoot_of_preparation_state(name), shoot, "{name}");
        }
        let mut later = granted.clone();
        later.expiry = serde_json::from_value(json!("2026-01-01T00:00:01Z")).unwrap();
        assert_ne!(preparation_state_name("web", &later), name);
    }

    /// A restore reads the shoot's own entry and the source entry by name.
    #[test]
    fn the_entry_of_a_preparation_has_no_name_that_a_restore_reads() {
        let granted = shoot(&json!({}));
        let granted = preparation(&granted).unwrap();
        let own = names::backup_entry("shoot--dev--web", "u");
        let name = preparation_entry_name(&own, granted);
        assert_eq!(name, "prepared-3-1767225600-shoot--dev--web--u");
        for (name, entry) in [
            (&*name, Some(&*own)),
            (&*own, None),
            ("source-shoot--dev--web--u", None),
            ("prepared-3-shoot--dev--web--u", None),
            ("prepared-3-1767225600-", None),
            ("prepared-3-1767225600", None),
            ("prepared--3-1767225600-e", None),
            ("prepared-+3-1767225600-e", None),
            ("prepared-3-20000000000000000000-e", None),
            ("source-prepared-3-1767225600-e", None),
            ("", None),
        ] {
            assert_eq!(entry_of_preparation(name), entry, "{name}");
        }
        let mut later = granted.clone();
        later.expiry = serde_json::from_value(json!("2026-01-01T00:00:01Z")).unwrap();
        assert_ne!(preparation_entry_name(&own, &later), name);
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
