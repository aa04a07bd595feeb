//! The table: homes, guests, former names and locks.

use std::collections::BTreeSet;

use leader_migration::{LeaderMigrationConfiguration, Manager};
use rstest::rstest;

use super::text_with_lock;
use crate::{PROVIDER_AWS, SUITE};

/// Controllers of the two providers with the same name act on objects of different types.
#[test]
fn a_controller_has_one_home() {
    let mut homes = BTreeSet::new();
    for manager in SUITE.managers.iter().filter(|manager| **manager != PROVIDER_AWS) {
        for controller in manager.controllers {
            assert!(homes.insert(controller), "{controller} has two homes");
        }
    }
}

#[test]
fn a_guest_has_its_home_elsewhere() {
    for manager in SUITE.managers {
        for guest in manager.guests {
            let is_home = |home: &Manager| home.component != manager.component && home.is_home_of(guest);
            assert!(SUITE.managers.iter().any(is_home), "{guest}");
        }
    }
}

#[test]
fn former_names_lead_to_known_controllers_and_hide_none() {
    let mut former_names = BTreeSet::new();
    for (former, present) in SUITE.aliases.iter().flat_map(|list| list.iter()) {
        assert!(former_names.insert(former), "{former} stands twice");
        assert_eq!(
            SUITE.present_name(present),
            *present,
            "{former} leads to a former name"
        );
        assert!(
            SUITE.managers.iter().any(|manager| manager.is_home_of(present)),
            "{former} leads to {present}, a controller of no manager"
        );
        assert!(
            !SUITE.managers.iter().any(|manager| manager.can_run(former)),
            "{former} is also a present name"
        );
    }
}

#[test]
fn managers_have_names_of_their_own() {
    let names: BTreeSet<_> = SUITE.managers.iter().map(|m| m.component).collect();
    assert_eq!(names.len(), SUITE.managers.len());
}

#[rstest]
#[case("route", "node-route-controller")]
#[case("route-controller", "node-route-controller")]
#[case("service", "service-lb-controller")]
#[case("service-controller", "service-lb-controller")]
#[case("cloud-node-lifecycle", "cloud-node-lifecycle-controller")]
#[case("cloud-nodelifecycle-controller", "cloud-node-lifecycle-controller")]
#[case("nodeipam", "node-ipam-controller")]
#[case("node-ipam-controller", "node-ipam-controller")]
#[case("care", "shoot-care")]
#[case("nobody-knows-this", "nobody-knows-this")]
fn old_and_new_names_are_understood(#[case] old: &str, #[case] new: &str) {
    assert_eq!(SUITE.present_name(old), new);
}

/// A migration lock with the name of a main lock would be held by a manager that runs without the migrated
/// controllers.
#[rstest]
#[case("resource-manager", "resource-manager")]
#[case("provider-aws", "provider-aws")]
#[case("cloud-controller-manager-local", "cloud-controller-manager-local")]
#[case("kube-scheduler", "kube-scheduler")]
#[case("gardenlet", "gardenlet")]
#[case("kube-controller-manager", "kube-controller-manager")]
fn a_migration_lock_cannot_be_the_main_lock_of_a_manager(#[case] lock: &str, #[case] owner: &str) {
    let text = text_with_lock(lock, &[("backup-bucket", "*")]);
    let refused = LeaderMigrationConfiguration::parse(&text, "m.yaml", &SUITE).unwrap_err();
    let expected = format!(
        "m.yaml:3: leaderName: {lock:?} is the name of {owner}'s main lock: the migration lock needs a name \
         of its own, for example {lock}-migration"
    );
    assert_eq!(refused.to_string(), expected);
}

/// The component of each manager is the default name of the manager's main lock.
#[test]
fn every_manager_is_known_as_the_component_of_an_entry() {
    for manager in SUITE.managers {
        assert_eq!(SUITE.lock_owner(manager.component), Some(manager.component));
    }
}
