//! Scenarios that share an environment are tests with separate names.
// An async function without an await has the signature of a scenario.
#![allow(clippy::unwrap_used, clippy::unused_async, missing_docs)]

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};

/// A variable with the path of a file. The environment writes each call to the file.
const CALLS: &str = "REPOT_SCENARIO_CALLS";

/// With this variable, the scenario of the child module fails.
const FAILURE: &str = "REPOT_SCENARIO_FAILURE";

/// A folder that ends with the last scenario.
struct Environment(tempfile::TempDir);

impl Environment {
    async fn start() -> Result<Self> {
        note("start")?;
        Ok(Self(tempfile::tempdir()?))
    }

    async fn clean(&self) -> Result<()> {
        note("clean")
    }

    async fn end(self) -> Result<()> {
        note(&format!("end {}", self.0.path().display()))
    }
}

fn note(call: &str) -> Result<()> {
    if let Some(file) = env::var_os(CALLS).map(PathBuf::from) {
        let mut calls = fs::File::options().append(true).create(true).open(file)?;
        writeln!(calls, "{call}")?;
    }
    Ok(())
}

async fn the_environment_is_shared(environment: &Environment) -> Result<()> {
    note("the_environment_is_shared")?;
    println!("printed by the_environment_is_shared");
    ensure!(environment.0.path().is_dir());
    Ok(())
}

mod children {
    pub async fn of_a_module_run_too(environment: &super::Environment) {
        super::note("children::of_a_module_run_too").unwrap();
        println!("printed by of_a_module_run_too");
        assert!(std::env::var_os(super::FAILURE).is_none(), "a requested failure");
        assert!(environment.0.path().is_dir());
    }
}

testkit::scenarios! {
    mod shared for Environment = Environment::start(), after each Environment::clean => Environment::end;
    in_sequence:
    the_environment_is_shared,
    children::{of_a_module_run_too};
}

/// This program with these arguments.
fn program(arguments: &[&str]) -> Command {
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(arguments).env_remove("RUST_TEST_NOCAPTURE");
    program
}

/// Runs this program with these arguments. Returns the calls in order.
fn calls(arguments: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls");
    let ended = program(arguments).env(CALLS, &file).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    // No call, no file.
    let calls = fs::read_to_string(file).unwrap_or_default();
    calls.lines().map(ToOwned::to_owned).collect()
}

/// The folder must not outlive the program.
fn is_end(call: &str) -> bool {
    let folder = call.strip_prefix("end ").map(Path::new);
    folder.is_some_and(|folder| !folder.exists())
}

#[test]
fn a_scenario_runs_alone_by_its_name() {
    let calls = calls(&["--exact", "shared::children::of_a_module_run_too"]);
    assert_eq!(calls[..3], ["start", "children::of_a_module_run_too", "clean"]);
    assert!(calls.len() == 4 && is_end(&calls[3]), "{calls:?}");
}

#[test]
fn a_skipped_scenario_does_not_run() {
    let calls = calls(&["shared::", "--skip", "environment_is_shared"]);
    assert_eq!(calls[..3], ["start", "children::of_a_module_run_too", "clean"]);
    assert!(calls.len() == 4 && is_end(&calls[3]), "{calls:?}");
}

#[test]
fn an_exact_filter_selects_whole_names() {
    let part = calls(&["--exact", "shared::the_environment"]);
    assert!(part.is_empty(), "{part:?}");
    let both = calls(&[
        "--exact",
        "shared::children::of_a_module_run_too",
        "shared::the_environment_is_shared",
    ]);
    assert_all_run(&both);
}

#[test]
fn all_scenarios_run_in_the_declared_order_on_a_single_environment() {
    assert_all_run(&calls(&["shared::"]));
}

/// The harness begins the test that is first in the alphabet, and the scenario of that test is the last.
#[test]
fn a_single_test_thread_runs_all_scenarios() {
    assert_all_run(&calls(&["shared::", "--test-threads=1"]));
}

#[test]
fn printed_text_is_not_credited_to_the_test_that_began_first() {
    let arguments = ["shared::", "--test-threads=1"];
    let ended = program(&arguments).env(FAILURE, "1").output().unwrap();
    assert!(!ended.status.success(), "{ended:?}");
    let output = String::from_utf8(ended.stdout).unwrap();
    let (during, failures) = output.split_once("\nfailures:\n").unwrap();
    for line in [
        "printed by the_environment_is_shared",
        "printed by of_a_module_run_too",
    ] {
        assert!(during.contains(line) && !failures.contains(line), "{output}");
    }
    assert!(failures.contains("a requested failure"), "{output}");
}

#[track_caller]
fn assert_all_run(calls: &[String]) {
    let expected = [
        "start",
        "the_environment_is_shared",
        "clean",
        "children::of_a_module_run_too",
        "clean",
    ];
    assert_eq!(calls[..5], expected);
    assert!(calls.len() == 6 && is_end(&calls[5]), "{calls:?}");
}
