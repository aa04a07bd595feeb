//! Flags, alone and together.

use std::{fs, time::Duration};

use clap::Parser;
use expect_test::expect;
use rstest::rstest;

use leader_migration::{
    Assignment, Flags, Manager, Migration, OnDisagreement, kubernetes::CLOUD_CONTROLLER_MANAGER,
};

use super::{KEP_EXAMPLE, printed, text};
use crate::{GARDENLET, PROVIDER_LOCAL, SUITE};

/// A manager's command line.
#[derive(Debug, Parser)]
struct Config {
    /// Stands for the manager's remaining flags.
    #[arg(long)]
    seed_name: String,
    #[command(flatten)]
    leader: Flags,
}

const ENABLE: &str = "--enable-leader-migration";

fn flags(args: &[&str]) -> Result<Flags, String> {
    let all = ["gardenlet", "--seed-name", "a"].iter().chain(args);
    Config::try_parse_from(all)
        .map(|config| config.leader)
        .map_err(|error| error.to_string())
}

fn migration(args: &[&str]) -> Result<Option<Migration>, String> {
    flags(args)?
        .migration(&GARDENLET, &SUITE)
        .map_err(|error| error.to_string())
}

#[test]
fn defaults_are_those_of_kubernetes() {
    let flags = flags(&[]).unwrap();
    assert!(flags.leader_elect && !flags.enable_leader_migration && !flags.print_leader_migration);
    assert_eq!(flags.timing().unwrap(), lease::Timing::default());
    assert_eq!(flags.main_lock(&GARDENLET), "gardenlet");
    assert_eq!(flags.leader_elect_resource_namespace, "garden");
    assert!(flags.migration(&GARDENLET, &SUITE).unwrap().is_none());
}

#[test]
fn durations_and_names_can_be_given() {
    let flags = flags(&[
        "--leader-elect-lease-duration=137s",
        "--leader-elect-renew-deadline=1m47s",
        "--leader-elect-retry-period=26s",
        "--leader-elect-resource-name=mine",
        "--leader-elect-resource-namespace=kube-system",
    ])
    .unwrap();
    assert_eq!(flags.timing().unwrap().renew_deadline, Duration::from_secs(107));
    assert_eq!(flags.main_lock(&GARDENLET), "mine");
    assert_eq!(flags.leader_elect_resource_namespace, "kube-system");
}

/// RK-16: the default configuration applies where no file is named, also if the flag is present but empty.
#[rstest]
#[case(&[ENABLE])]
#[case(&[ENABLE, "--leader-migration-config="])]
#[case(&["--enable-leader-migration=true", "--feature-gates=ControllerManagerLeaderMigration=true"])]
#[case(&[ENABLE, "--feature-gates", "ControllerManagerLeaderMigration=false,ControllerManagerLeaderMigration=true"])]
fn the_default_configuration_counts(#[case] args: &[&str]) {
    let migration = migration(args).unwrap().unwrap();
    assert_eq!(
        migration.config.leader_name,
        "cloud-provider-extraction-migration"
    );
    assert_eq!(migration.origin, "default configuration");
}

/// RK-14: a file replaces the whole default; no part of the default is mixed in.
#[test]
fn a_file_replaces_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    fs::write(&file, text(&[("route", "cloud-controller-manager")])).unwrap();
    let config = format!("--leader-migration-config={}", file.display());
    let flags = flags(&[ENABLE, &config]).unwrap();
    let migration = flags
        .migration(&CLOUD_CONTROLLER_MANAGER, &SUITE)
        .unwrap()
        .unwrap();
    assert_eq!(migration.config.leader_name, "shared");
    assert_eq!(migration.assignment("route"), Assignment::Migrated);
    assert_eq!(migration.assignment("service"), Assignment::Main);
}

#[rstest]
#[case(&["--enable-leader-migration=false"])]
#[case(&["--leader-elect=false"])]
#[case(&["--feature-gates=ControllerManagerLeaderMigration=false"])]
#[case(&["--leader-migration-config="])]
fn what_is_off_is_off(#[case] args: &[&str]) {
    assert!(migration(args).unwrap().is_none());
}

/// RK-17 to RK-19: contradicting flags are an error.
#[test]
fn combinations_that_end_the_process() {
    let file = "--leader-migration-config=/etc/m.yaml";
    let cases: [&[&str]; 7] = [
        &[file],
        &[file, "--enable-leader-migration=false"],
        &[ENABLE, "--feature-gates=ControllerManagerLeaderMigration=false"],
        &[ENABLE, "--leader-elect=false"],
        &[ENABLE, "--leader-migration-config=/nowhere/m.yaml"],
        &[ENABLE, "--leader-migration-config=/"],
        &[
            ENABLE,
            "--leader-elect-resource-name=cloud-provider-extraction-migration",
        ],
    ];
    let said = cases.map(|args| format!("{}\n  {}\n", args.join(" "), migration(args).unwrap_err()));
    expect![[r#"
        --leader-migration-config=/etc/m.yaml
          --leader-migration-config is given, but leader migration is not enabled: add --enable-leader-migration, or remove --leader-migration-config
        --leader-migration-config=/etc/m.yaml --enable-leader-migration=false
          --leader-migration-config is given, but leader migration is not enabled: add --enable-leader-migration, or remove --leader-migration-config
        --enable-leader-migration --feature-gates=ControllerManagerLeaderMigration=false
          --enable-leader-migration is given, but its feature gate is off: remove --feature-gates=ControllerManagerLeaderMigration=false, or remove --enable-leader-migration
        --enable-leader-migration --leader-elect=false
          --enable-leader-migration needs leader election: remove --leader-elect=false, or remove --enable-leader-migration
        --enable-leader-migration --leader-migration-config=/nowhere/m.yaml
          /nowhere/m.yaml: cannot be read (No such file or directory (os error 2)): correct --leader-migration-config, or remove it to use the default configuration
        --enable-leader-migration --leader-migration-config=/
          /: cannot be read (Is a directory (os error 21)): correct --leader-migration-config, or remove it to use the default configuration
        --enable-leader-migration --leader-elect-resource-name=cloud-provider-extraction-migration
          default configuration: leaderName: "cloud-provider-extraction-migration" is also this manager's main lock (--leader-elect-resource-name): give the two different names
    "#]].assert_eq(&said.concat());
}

#[rstest]
#[case(
    "--feature-gates=LeaderMigration=true",
    "there is no feature gate \"LeaderMigration\"; known: ControllerManager"
)]
#[case(
    "--feature-gates=ControllerManagerLeaderMigration",
    "write ControllerManagerLeaderMigration=true or"
)]
#[case(
    "--feature-gates=ControllerManagerLeaderMigration=yes",
    "write ControllerManagerLeaderMigration=true or"
)]
#[case("--leader-elect-retry-period=soon", "write it like 15s or 1m30s")]
#[case("--leader-elect-retry-period=-1s", "cannot be negative")]
#[case("--enable-leader-migration=maybe", "possible values: true, false")]
fn values_that_a_flag_does_not_take(#[case] flag: &str, #[case] words: &str) {
    let error = flags(&[flag]).unwrap_err();
    assert!(error.contains(words), "{error}");
}

#[test]
fn unsafe_durations_name_the_flags() {
    let flags = flags(&["--leader-elect-lease-duration=10s"]).unwrap();
    let error = flags.timing().unwrap_err().to_string();
    assert!(error.contains("--leader-elect-renew-deadline"), "{error}");
    assert!(
        error.contains("must be longer than the renew deadline"),
        "{error}"
    );
}

/// Both locks are in the same namespace with the same identity; a manager without migrated controllers
/// requests only the main lock.
#[tokio::test]
async fn locks_of_a_process() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let unused = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
    let client = kube::Client::try_from(unused).unwrap();
    let metrics = lease::Metrics::default();
    let electors = |args: &[&str], manager: &Manager| {
        let flags = flags(args).unwrap();
        let migration = flags.migration(manager, &SUITE).unwrap();
        let with_terms = migration
            .as_ref()
            .map(|migration| (migration, migration.terms(&[], OnDisagreement::default())));
        flags.electors(&client, manager, with_terms, &metrics).unwrap()
    };
    let both = electors(&[ENABLE], &CLOUD_CONTROLLER_MANAGER).unwrap();
    let shared = both.migration.unwrap();
    assert_eq!(both.main.lock(), "garden/cloud-controller-manager");
    assert_eq!(shared.lock(), "garden/cloud-provider-extraction-migration");
    assert_eq!(both.main.identity(), shared.identity());

    assert!(electors(&[], &GARDENLET).unwrap().migration.is_none());
    assert!(
        electors(&[ENABLE], &GARDENLET).unwrap().migration.is_none(),
        "it migrates nothing"
    );
    assert!(electors(&["--leader-elect=false"], &GARDENLET).is_none());
}

/// The manager's own required flags may be missing, and these flags are not mistaken for the flags of this
/// crate.
#[test]
fn printing_needs_no_other_flag() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    fs::write(&file, text(&[("backup-bucket", "provider-local")])).unwrap();
    let file = file.display().to_string();
    let args = [
        "--kubeconfig",
        "--leader-elect",
        ENABLE,
        "--leader-migration-config",
        &file,
        "--print-leader-migration",
        "--concurrent-syncs=4",
        "more",
    ];
    let text = printed(&args, &GARDENLET).unwrap().unwrap();
    assert!(
        text.contains("backup-bucket unowned\nbackup-entry main\n"),
        "{text}"
    );
    let text = printed(&args, &PROVIDER_LOCAL).unwrap().unwrap();
    assert!(
        text.ends_with("backupentry main\nbackup-bucket migrated\nbackup-entry unowned\n"),
        "{text}"
    );
}

#[test]
fn printing_is_done_only_when_asked() {
    assert!(printed(&[], &GARDENLET).is_none());
    assert!(printed(&[ENABLE, "--leader-elect=maybe"], &GARDENLET).is_none());
    assert!(printed(&["--", "--print-leader-migration"], &GARDENLET).is_none());
}

/// An error is an error also for `--print-leader-migration`: the output never shows a configuration that
/// would not run.
#[test]
fn printing_fails_as_a_start_would() {
    let error = |args: &[&str]| printed(args, &GARDENLET).unwrap().unwrap_err();
    let both = [
        "--print-leader-migration",
        "--leader-migration-config=/etc/m.yaml",
    ];
    assert!(error(&both).contains("add --enable-leader-migration"));
    let wrong = ["--print-leader-migration", "--leader-elect=maybe"];
    assert!(error(&wrong).contains("possible values: true, false"));
}

/// The error names the place in the file also where the file contradicts the flags.
#[test]
fn the_main_lock_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    fs::write(&file, text(&[("backup-bucket", "*")])).unwrap();
    let config = format!("--leader-migration-config={}", file.display());
    let error = migration(&[ENABLE, &config, "--leader-elect-resource-name=shared"]).unwrap_err();
    let place = format!(
        "{}:3: leaderName: \"shared\" is also this manager's main lock",
        file.display()
    );
    assert!(error.starts_with(&place), "{error}");
}

/// The example of the KEP, byte by byte, is refused with the place and the remedy.
#[test]
fn the_example_of_the_kep_needs_quotes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    fs::write(&file, KEP_EXAMPLE.replace("\"*\"", "*").trim_start()).unwrap();
    let config = format!("--leader-migration-config={}", file.display());
    let error = migration(&[ENABLE, &config]).unwrap_err();
    let place = format!("{}:7: component: ", file.display());
    assert!(error.starts_with(&place), "{error}");
    assert!(
        error.contains(r#"put every * in quotes, component: "*""#),
        "{error}"
    );
}
