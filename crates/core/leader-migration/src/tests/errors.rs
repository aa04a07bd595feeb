//! Errors as types: an author can react to each cause.

use std::io;

use clap::{Args, Command, FromArgMatches};
use kube::client::Body;
use rstest::rstest;
use tokio_util::sync::CancellationToken;
use tower::service_fn;

use crate::{
    ConfigError, FeatureGate, FeatureGateError, Flags, FlagsError, LeaderMigrationConfiguration, Locks,
    Manager, ManagerTable,
    ProblemKind::{self, Duplicate, Format, Lock, Syntax, UnknownField, Value},
    RunError,
};

const LIBRARIAN: Manager = Manager {
    component: "librarian",
    controllers: &["shelf"],
    guests: &[],
};

fn flags(args: &[&str]) -> Flags {
    let command = Flags::augment_args(Command::new("librarian").no_binary_name(true));
    Flags::from_arg_matches(&command.get_matches_from(args)).unwrap()
}

fn refused(args: &[&str]) -> ConfigError {
    Locks::assign(&flags(args), &LIBRARIAN, &ManagerTable::EMPTY).unwrap_err()
}

#[test]
fn contradicting_flags_have_a_variant_each() {
    let enable = "--enable-leader-migration";
    let file = "--leader-migration-config=/nowhere/m.yaml";
    assert!(matches!(
        refused(&[file]),
        ConfigError::Flags(FlagsError::FileWithoutMigration)
    ));
    assert!(matches!(
        refused(&[enable, "--feature-gates=ControllerManagerLeaderMigration=false"]),
        ConfigError::Flags(FlagsError::GateIsOff)
    ));
    assert!(matches!(
        refused(&[enable, "--leader-elect=false"]),
        ConfigError::Flags(FlagsError::NoLeaderElection)
    ));
    assert!(matches!(
        refused(&["--leader-elect-lease-duration=10s"]),
        ConfigError::Flags(FlagsError::UnsafeTiming(lease::TimingError::LeaseTooShort { .. }))
    ));
    assert!(matches!(
        refused(&[enable, file]),
        ConfigError::Unreadable { error, .. } if error.kind() == io::ErrorKind::NotFound
    ));
}

#[test]
fn a_feature_gate_that_is_not_known_has_a_variant() {
    let unknown = "Other=true".parse::<FeatureGate>();
    assert_eq!(unknown, Err(FeatureGateError::Unknown("Other".to_owned())));
    let no_boolean = "ControllerManagerLeaderMigration=1".parse::<FeatureGate>();
    assert_eq!(no_boolean, Err(FeatureGateError::NoBoolean));
}

/// The cause of each mistake in a file, in the order of the checks.
#[rstest]
#[case::no_yaml("kind: [", &[Syntax])]
#[case::a_different_kind("{kind: Pod, apiVersion: v1}", &[Format, Format])]
#[case::no_lock("{NAME, leaderName: librarian, controllerLeaders: [{name: shelf, component: a}]}", &[Lock])]
#[case::several(
    "{NAME, lock: a, controllerLeaders: [{name: shelf, component: a}, {name: shelf, component: a}]}",
    &[UnknownField, Value, Duplicate]
)]
fn a_mistake_in_a_file_has_a_kind(#[case] text: &str, #[case] expected: &[ProblemKind]) {
    let name = "kind: LeaderMigrationConfiguration, apiVersion: controllermanager.config.k8s.io/v1";
    let table = ManagerTable {
        managers: &[LIBRARIAN],
        ..ManagerTable::EMPTY
    };
    let refused = LeaderMigrationConfiguration::parse(&text.replace("NAME", name), "m.yaml", &table);
    let Err(ConfigError::Invalid { problems, .. }) = refused else {
        panic!("{refused:?}")
    };
    let kinds: Vec<_> = problems.iter().map(|problem| problem.kind).collect();
    assert_eq!(kinds, expected);
}

#[derive(Debug, thiserror::Error)]
#[error("the shelf is empty")]
struct EmptyShelf;

/// An author finds the error of the author's controllers again, beside the errors of the locks.
#[tokio::test]
#[allow(clippy::disallowed_methods)] // a client without a server
async fn the_error_of_a_controller_is_returned_as_a_value() {
    let unreachable = service_fn(|_: http::Request<Body>| async {
        Err::<http::Response<Body>, _>(io::Error::other("there is no server"))
    });
    let client = kube::Client::new(unreachable, "ns");
    let locks = Locks::assign(
        &flags(&["--leader-elect=false"]),
        &LIBRARIAN,
        &ManagerTable::EMPTY,
    )
    .unwrap();
    let work = |controllers: Vec<&'static str>, _| {
        assert_eq!(controllers, ["shelf"]);
        async { Err(EmptyShelf) }
    };
    let ended = locks.run(&client, |_| {}, CancellationToken::new(), work).await;
    assert!(
        matches!(ended, Err(RunError::Controllers(EmptyShelf))),
        "{ended:?}"
    );
}
