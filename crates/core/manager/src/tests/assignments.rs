//! Main, migrated or unowned: by example, and for all known controllers and managers.

use std::collections::BTreeSet;

use leader_migration::{
    ANY_COMPONENT,
    Assignment::{self, Main, Migrated, Unowned},
    LeaderMigrationConfiguration, Manager, Migration,
};
use rstest::rstest;

use super::{KEP_EXAMPLE, config};
use crate::{GARDENLET, PROVIDER_AWS, SUITE};

#[rstest]
// Not in the configuration: the home runs the controller, a guest does not.
#[case("shoot", "gardenlet", &[], Main)]
#[case("backup-bucket", "gardenlet", &[], Main)]
#[case("backup-bucket", "provider-local", &[], Unowned)]
#[case("node-route-controller", "cloud-controller-manager", &[], Main)]
#[case("node-route-controller", "kube-controller-manager", &[], Unowned)]
// The manager or the controller is unknown.
#[case("shoot", "gardenlet-of-mine", &[], Unowned)]
#[case("mine", "gardenlet-of-mine", &[], Main)]
#[case("mine", "gardenlet", &[], Main)]
// Assigned to a single manager of two.
#[case("backup-bucket", "gardenlet", &[("backup-bucket", "gardenlet")], Migrated)]
#[case("backup-bucket", "provider-local", &[("backup-bucket", "gardenlet")], Unowned)]
#[case("backup-bucket", "gardenlet", &[("backup-bucket", "provider-local")], Unowned)]
#[case("backup-bucket", "provider-local", &[("backup-bucket", "provider-local")], Migrated)]
#[case("backup-entry", "gardenlet", &[("backup-bucket", "provider-local")], Main)]
// Assigned to any manager.
#[case("backup-bucket", "gardenlet", &[("backup-bucket", "*")], Migrated)]
#[case("backup-bucket", "provider-local", &[("backup-bucket", "*")], Migrated)]
// Old and new names on either side.
#[case("node-ipam-controller", "kube-controller-manager", &[("nodeipam", "kube-controller-manager")], Migrated)]
#[case("nodeipam", "kube-controller-manager", &[("node-ipam-controller", "kube-controller-manager")], Migrated)]
#[case("service", "cloud-controller-manager", &[("service-controller", "*")], Migrated)]
#[case("service-lb-controller", "kube-controller-manager", &[("service", "cloud-controller-manager")], Unowned)]
fn by_example(
    #[case] controller: &str,
    #[case] component: &str,
    #[case] entries: &[(&str, &str)],
    #[case] expected: Assignment,
) {
    let config = (!entries.is_empty()).then(|| config(entries));
    assert_eq!(SUITE.assignment(controller, component, config.as_ref()), expected);
}

/// RK-13: the default equals the KEP's example, and matches the present names of both managers.
#[test]
fn the_default_gives_the_cloud_controllers_to_either_manager() {
    let default = LeaderMigrationConfiguration::default_for_cloud_provider();
    let mut example = LeaderMigrationConfiguration::parse(KEP_EXAMPLE, "kep.yaml", &SUITE).unwrap();
    for entry in &mut example.controller_leaders {
        entry.line = None;
    }
    assert_eq!(default, example);
    let migrated = |component: &str| {
        let all = SUITE.manager(component).unwrap().all();
        all.filter(|name| SUITE.assignment(name, component, Some(&default)) == Migrated)
            .collect::<BTreeSet<_>>()
    };
    let expected = BTreeSet::from([
        "cloud-node-lifecycle-controller",
        "node-route-controller",
        "service-lb-controller",
    ]);
    assert_eq!(migrated("kube-controller-manager"), expected);
    assert_eq!(migrated("cloud-controller-manager"), expected);
    assert_eq!(
        SUITE.assignment(
            "cloud-node-controller",
            "cloud-controller-manager",
            Some(&default)
        ),
        Main
    );
}

/// RK-26: while migration is off, each known controller runs in a single manager.
#[test]
fn without_migration_a_controller_runs_in_its_home_only() {
    for controller in controllers() {
        let runs = managers()
            .filter(|m| m.can_run(controller) && SUITE.assignment(controller, m.component, None) == Main);
        assert_eq!(runs.count(), 1, "{controller}");
    }
}

/// Checks every configuration with a single entry, and every configuration with two entries of movable
/// controllers, against every known manager and controller.
#[test]
fn no_valid_configuration_lets_a_controller_run_twice_or_vanish_in_silence() {
    let mut checked = 0;
    for first in entries(&controllers_and_a_stranger()) {
        check(&config(&[first]));
        checked += 1;
    }
    let movable: Vec<_> = managers().flat_map(|m| m.guests.iter().copied()).collect();
    for first in entries(&movable) {
        for second in entries(&movable).filter(|second| second.0 != first.0) {
            check(&config(&[first, second]));
            checked += 1;
        }
    }
    assert!(checked > 1_000, "{checked}");
}

fn check(config: &LeaderMigrationConfiguration) {
    let told = plan(&GARDENLET, config).warnings();
    for controller in controllers() {
        let able: Vec<_> = managers().filter(|m| m.can_run(controller)).collect();
        let in_state = |wanted| {
            let assigned = |m: &&&Manager| SUITE.assignment(controller, m.component, Some(config)) == wanted;
            able.iter().filter(assigned).count()
        };
        let (main, migrated, unowned) = (in_state(Main), in_state(Migrated), in_state(Unowned));
        // Each manager has exactly a single state of the three, and no controller is under two locks at once.
        assert_eq!(main + migrated + unowned, able.len());
        assert!(main <= 1, "{controller} runs twice under main locks: {config:?}");
        assert!(
            main == 0 || migrated == 0,
            "{controller} runs under a main and the migration lock: {config:?}"
        );
        if main + migrated == 0 {
            let place = config
                .controller_leaders
                .iter()
                .position(|entry| SUITE.present_name(&entry.name) == controller);
            let field = format!("controllerLeaders[{}].component: ", place.unwrap());
            assert!(
                told.iter().any(|loss| loss.contains(&field)),
                "{controller}: {config:?}: {told:?}"
            );
        }
    }
    // For every holder of the lock: a controller that the holder does not run but a second manager could run
    // must cause a warning.
    let holders = managers().filter(|m| plan(m, config).takes_lock());
    for holder in holders {
        let kept_out = config.controller_leaders.iter().any(|entry| {
            let name = SUITE.present_name(&entry.name);
            let other = managers().find(|m| m.can_run(name) && entry.is_for(m.component));
            other.is_some() && !entry.is_for(holder.component)
        });
        assert!(!kept_out || !told.is_empty(), "{}: {config:?}", holder.component);
    }
    for entry in &config.controller_leaders {
        let name = SUITE.present_name(&entry.name);
        let known = managers().any(|m| m.can_run(name));
        assert!(
            known || told.iter().any(|loss| loss.contains(&entry.name)),
            "{entry:?}"
        );
    }
}

fn plan(manager: &Manager, config: &LeaderMigrationConfiguration) -> Migration {
    Migration {
        config: config.clone(),
        manager: *manager,
        table: SUITE,
        origin: "m.yaml".to_owned(),
    }
}

/// The managers of the suite, with a single provider: controllers of two providers with the same name act on
/// objects of different types.
fn managers() -> impl Iterator<Item = &'static Manager> {
    SUITE.managers.iter().filter(|manager| **manager != PROVIDER_AWS)
}

fn controllers() -> BTreeSet<&'static str> {
    managers().flat_map(Manager::all).collect()
}

fn controllers_and_a_stranger() -> Vec<&'static str> {
    controllers().into_iter().chain(["stranger"]).collect()
}

/// Each controller with each component.
fn entries<'a>(controllers: &'a [&'static str]) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    let components = || {
        let known = managers().map(|m| m.component);
        known.chain([ANY_COMPONENT, "nobody"])
    };
    controllers
        .iter()
        .flat_map(move |controller| components().map(move |component| (*controller, component)))
}

/// The digest covers the controllers under the lock, not the managers: the manager changes in the middle of
/// every migration.
#[test]
fn two_files_with_the_same_controllers_have_one_digest() {
    let digest = |entries: &[(&str, &str)]| plan(&GARDENLET, &config(entries)).digest();
    let one = digest(&[("route", "*"), ("service", "*")]);
    assert_eq!(
        one,
        digest(&[
            ("service-lb-controller", "cloud-controller-manager"),
            ("node-route-controller", "*")
        ])
    );
    assert_ne!(one, digest(&[("route", "*")]));
    assert_ne!(one, digest(&[("route", "*"), ("nodeipam", "*")]));
}
