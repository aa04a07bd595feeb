//! `--print-leader-migration` and the warnings (RK-34).

use std::fs;

use clap::{Args, Command, FromArgMatches};
use expect_test::{Expect, expect};

use leader_migration::{Flags, Locks, Manager, kubernetes::CLOUD_CONTROLLER_MANAGER};

use super::{KEP_EXAMPLE, printed, text};
use crate::{GARDENLET, PROVIDER_LOCAL, SUITE};

const PRINT: &str = "--print-leader-migration";

/// Prints with a file `m.yaml`.
fn check(manager: Manager, file: &str, expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.yaml");
    fs::write(&path, file).unwrap();
    let config = format!("--leader-migration-config={}", path.display());
    let args = [PRINT, "--enable-leader-migration", &config];
    let text = printed(&args, &manager).unwrap().unwrap();
    expected.assert_eq(&text.replace(path.to_str().unwrap(), "m.yaml"));
}

#[test]
fn without_migration_all_is_main_but_guests() {
    expect![[r#"
        cloud-node-controller main
        cloud-node-lifecycle-controller main
        node-route-controller main
        service-lb-controller main
        node-ipam-controller unowned
    "#]]
    .assert_eq(&printed(&[PRINT], &CLOUD_CONTROLLER_MANAGER).unwrap().unwrap());
}

#[test]
fn the_example_of_the_kep() {
    check(
        CLOUD_CONTROLLER_MANAGER,
        KEP_EXAMPLE,
        &expect![[r#"
        cloud-node-controller main
        cloud-node-lifecycle-controller migrated
        node-route-controller migrated
        service-lb-controller migrated
        node-ipam-controller unowned
        warning: m.yaml:7: controllerLeaders[0].name: "route" is a former name: write "node-route-controller", the only one that the kube-controller-manager matches
        warning: m.yaml:9: controllerLeaders[1].name: "service" is a former name: write "service-lb-controller", the only one that the kube-controller-manager matches
        warning: m.yaml:11: controllerLeaders[2].name: "cloud-node-lifecycle" is a former name: write "cloud-node-lifecycle-controller", the only one that the kube-controller-manager matches
    "#]],
    );
}

#[test]
fn either_manager_may_run_them() {
    let file = text(&[("backup-bucket", "*"), ("backup-entry", "*")]);
    check(
        GARDENLET,
        &file,
        &expect![[r#"
            shoot main
            shoot-care main
            shoot-state-sync main
            seed main
            seed-lease main
            backup-bucket migrated
            backup-entry migrated
            controller-installation main
        "#]],
    );
    check(
        PROVIDER_LOCAL,
        &file,
        &expect![[r#"
            infrastructure main
            controlplane main
            network main
            operatingsystemconfig main
            worker main
            subnetisolation main
            dnsrecord main
            backupbucket main
            backupentry main
            backup-bucket migrated
            backup-entry migrated
        "#]],
    );
}

#[test]
fn handed_over_for_good() {
    let file = text(&[
        ("backup-bucket", "provider-local"),
        ("backup-entry", "provider-local"),
    ]);
    check(
        GARDENLET,
        &file,
        &expect![[r#"
            shoot main
            shoot-care main
            shoot-state-sync main
            seed main
            seed-lease main
            backup-bucket unowned
            backup-entry unowned
            controller-installation main
            warning: m.yaml: no controller of gardenlet is migrated: it does not ask for the lock "shared"
        "#]],
    );
    check(
        PROVIDER_LOCAL,
        &file,
        &expect![[r#"
            infrastructure main
            controlplane main
            network main
            operatingsystemconfig main
            worker main
            subnetisolation main
            dnsrecord main
            backupbucket main
            backupentry main
            backup-bucket migrated
            backup-entry migrated
        "#]],
    );
}

#[test]
fn words_that_match_nothing() {
    let file = text(&[
        ("backup-buckets", "gardenlet"),
        ("shoot", "gardnelet"),
        ("dnsrecord", "gardenlet"),
        ("backup-entry", "gardenlet"),
    ]);
    check(
        GARDENLET,
        &file,
        &expect![[r#"
            shoot unowned
            shoot-care main
            shoot-state-sync main
            seed main
            seed-lease main
            backup-bucket main
            backup-entry migrated
            controller-installation main
            warning: m.yaml:5: controllerLeaders[0].name: "backup-buckets" matches no controller of any known manager: nothing runs by this entry
            warning: m.yaml:7: controllerLeaders[1].component: "gardnelet" is no known manager: "shoot" runs nowhere while this entry stands; it can run in gardenlet
            warning: m.yaml:9: controllerLeaders[2].component: "gardenlet" has no controller "dnsrecord": "dnsrecord" runs nowhere while this entry stands; it can run in provider-local
            warning: m.yaml:7: controllerLeaders[1].component: is "gardnelet", but "backup-buckets" is for "gardenlet": a lock has one holder, and what is not for it does not run as long as it holds the lock; give all entries of a file the same component
        "#]],
    );
}

#[test]
fn two_managers_under_one_lock() {
    let file = text(&[("backup-bucket", "gardenlet"), ("backup-entry", "provider-local")]);
    check(
        GARDENLET,
        &file,
        &expect![[r#"
            shoot main
            shoot-care main
            shoot-state-sync main
            seed main
            seed-lease main
            backup-bucket migrated
            backup-entry unowned
            controller-installation main
            warning: m.yaml:7: controllerLeaders[1].component: is "provider-local", but "backup-bucket" is for "gardenlet": a lock has one holder, and what is not for it does not run as long as it holds the lock; give all entries of a file the same component
        "#]],
    );
}

#[test]
fn nothing_of_this_manager() {
    check(
        GARDENLET,
        KEP_EXAMPLE,
        &expect![[r#"
            shoot main
            shoot-care main
            shoot-state-sync main
            seed main
            seed-lease main
            backup-bucket main
            backup-entry main
            controller-installation main
            warning: m.yaml:7: controllerLeaders[0].name: "route" is a former name: write "node-route-controller", the only one that the kube-controller-manager matches
            warning: m.yaml:9: controllerLeaders[1].name: "service" is a former name: write "service-lb-controller", the only one that the kube-controller-manager matches
            warning: m.yaml:11: controllerLeaders[2].name: "cloud-node-lifecycle" is a former name: write "cloud-node-lifecycle-controller", the only one that the kube-controller-manager matches
            warning: m.yaml: no controller of gardenlet is migrated: it does not ask for the lock "cloud-provider-extraction-migration"
        "#]],
    );
}

/// A process with flags that choose controllers: chosen controllers run, guests too, until a configuration
/// assigns the controllers differently (RK-23).
#[test]
fn what_a_process_chooses_itself() {
    let told = |chosen: &[&str], args: &[&str]| {
        let command = Flags::augment_args(Command::new("ccm").no_binary_name(true));
        let flags = Flags::from_arg_matches(&command.get_matches_from(args)).unwrap();
        Locks::assign_chosen(&flags, &CLOUD_CONTROLLER_MANAGER, &SUITE, |name| {
            chosen.contains(&name)
        })
        .unwrap()
        .to_string()
    };
    let chosen = [
        "cloud-node-controller",
        "node-ipam-controller",
        "service-lb-controller",
    ];
    expect![[r#"
        cloud-node-controller main
        cloud-node-lifecycle-controller disabled
        node-route-controller disabled
        service-lb-controller main
        node-ipam-controller main
    "#]]
    .assert_eq(&told(&chosen, &[]));
    expect![[r#"
        cloud-node-controller main
        cloud-node-lifecycle-controller disabled
        node-route-controller disabled
        service-lb-controller migrated
        node-ipam-controller unowned
        warning: default configuration: controllerLeaders[2]: migrates "cloud-node-lifecycle-controller" to "cloud-controller-manager", but this process's own flags switch it off: it runs nowhere while this process holds the lock
        warning: default configuration: controllerLeaders[0]: migrates "node-route-controller" to "cloud-controller-manager", but this process's own flags switch it off: it runs nowhere while this process holds the lock
    "#]]
    .assert_eq(&told(&chosen, &["--enable-leader-migration"]));
    // All migrated controllers are switched off: then the process does not request the lock, and prints that
    // fact.
    expect![[r#"
        cloud-node-controller main
        cloud-node-lifecycle-controller disabled
        node-route-controller disabled
        service-lb-controller disabled
        node-ipam-controller disabled
        warning: default configuration: controllerLeaders[2]: migrates "cloud-node-lifecycle-controller" to "cloud-controller-manager", but this process's own flags switch it off: it runs nowhere while this process holds the lock
        warning: default configuration: controllerLeaders[0]: migrates "node-route-controller" to "cloud-controller-manager", but this process's own flags switch it off: it runs nowhere while this process holds the lock
        warning: default configuration: controllerLeaders[1]: migrates "service-lb-controller" to "cloud-controller-manager", but this process's own flags switch it off: it runs nowhere while this process holds the lock
        warning: default configuration: no controller of cloud-controller-manager is migrated: it does not ask for the lock "cloud-provider-extraction-migration"
    "#]]
    .assert_eq(&told(&["cloud-node-controller"], &["--enable-leader-migration"]));
}

/// A file that the kube-controller-manager reads as well must use the names that the kube-controller-manager
/// knows.
#[test]
fn words_that_kubernetes_takes_otherwise() {
    let file = text(&[
        ("nodeipam", "cloud-controller-manager"),
        ("service-lb-controller", "kube-controller-manager"),
        ("route", "kube-controller-manager"),
        ("care", "gardenlet"),
    ]);
    check(
        CLOUD_CONTROLLER_MANAGER,
        &file,
        &expect![[r#"
        cloud-node-controller main
        cloud-node-lifecycle-controller main
        node-route-controller unowned
        service-lb-controller unowned
        node-ipam-controller migrated
        warning: m.yaml:5: controllerLeaders[0].name: "nodeipam" is a former name: write "node-ipam-controller", the only one that the kube-controller-manager matches
        warning: m.yaml:7: controllerLeaders[1].component: "kube-controller-manager" runs "service-lb-controller" only up to Kubernetes 1.30: with a later one it runs nowhere while this entry stands
        warning: m.yaml:9: controllerLeaders[2].component: "kube-controller-manager" runs "route" only up to Kubernetes 1.30: with a later one it runs nowhere while this entry stands
        warning: m.yaml:9: controllerLeaders[2].name: "route" is a former name: write "node-route-controller", the only one that the kube-controller-manager matches
        warning: m.yaml:7: controllerLeaders[1].component: is "kube-controller-manager", but "nodeipam" is for "cloud-controller-manager": a lock has one holder, and what is not for it does not run as long as it holds the lock; give all entries of a file the same component
    "#]],
    );
}

/// A manager outside the table of known managers: the manager's own lists decide home and guests.
#[test]
fn a_manager_of_ones_own() {
    let foo = Manager {
        component: "provider-foo",
        controllers: &["infrastructure", "foo"],
        guests: &["backup-bucket", "backup-entry"],
    };
    expect![[r#"
        infrastructure main
        foo main
        backup-bucket unowned
        backup-entry unowned
    "#]]
    .assert_eq(&printed(&[PRINT], &foo).unwrap().unwrap());
    let file = text(&[
        ("infrastructure", "provider-foo"),
        ("foo", "*"),
        ("backup-bucket", "provider-foo"),
    ]);
    check(
        foo,
        &file,
        &expect![[r#"
        infrastructure migrated
        foo migrated
        backup-bucket migrated
        backup-entry unowned
        warning: m.yaml:7: controllerLeaders[1].component: is "*", but "infrastructure" is for "provider-foo": a lock has one holder, and what is not for it does not run as long as it holds the lock; give all entries of a file the same component
    "#]],
    );
}

/// A manager outside this project with the name of a known manager: the manager's own lists decide.
#[test]
fn a_controller_that_this_manager_does_not_have_is_told() {
    const OF_SOME_CLOUD: Manager = Manager {
        component: CLOUD_CONTROLLER_MANAGER.component,
        controllers: &["cloud-node-controller"],
        guests: &[],
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.yaml");
    std::fs::write(
        &path,
        text(&[("node-route-controller", "cloud-controller-manager")]),
    )
    .unwrap();
    let file = format!("--leader-migration-config={}", path.display());
    let told = |manager: &Manager| {
        let args = ["--enable-leader-migration", &file, "--print-leader-migration"];
        printed(&args, manager).unwrap().unwrap()
    };
    let warning = "\"cloud-controller-manager\" has no controller \"node-route-controller\"";
    assert!(told(&OF_SOME_CLOUD).contains(warning), "{}", told(&OF_SOME_CLOUD));
    assert!(!told(&CLOUD_CONTROLLER_MANAGER).contains(warning));
}
