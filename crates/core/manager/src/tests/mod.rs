//! Tests of the suite's table: the command line, the warnings, and every configuration of movable
//! controllers.
#![allow(clippy::unwrap_used, clippy::panic)]
// expect-test writes the hashes, needed or not.
#![allow(clippy::needless_raw_string_hashes)]

mod assignments;
mod command_line;
mod names;
mod printed;

use leader_migration::{LeaderMigrationConfiguration, Manager, print_if_asked};

use crate::SUITE;

/// The example of the KEP, with the quotes that YAML needs.
const KEP_EXAMPLE: &str = r#"
kind: LeaderMigrationConfiguration
apiVersion: controllermanager.config.k8s.io/v1alpha1
leaderName: cloud-provider-extraction-migration
resourceLock: leases
controllerLeaders:
  - name: route
    component: "*"
  - name: service
    component: "*"
  - name: cloud-node-lifecycle
    component: "*"
"#;

/// A configuration of version v1 with these names and components.
fn config(entries: &[(&str, &str)]) -> LeaderMigrationConfiguration {
    LeaderMigrationConfiguration::parse(&text(entries), "m.yaml", &SUITE).unwrap()
}

fn text(entries: &[(&str, &str)]) -> String {
    text_with_lock("shared", entries)
}

fn text_with_lock(lock: &str, entries: &[(&str, &str)]) -> String {
    let mut text = format!(
        "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n\
         leaderName: {lock}\ncontrollerLeaders:\n"
    );
    for (name, component) in entries {
        text.extend(["- name: ", name, "\n  component: '", component, "'\n"]);
    }
    text
}

/// The output of `--print-leader-migration`, if that flag is among the arguments.
fn printed(args: &[&str], manager: &Manager) -> Option<Result<String, String>> {
    let args = std::iter::once(&manager.component)
        .chain(args)
        .map(|arg| (*arg).into());
    print_if_asked(args.collect::<Vec<_>>(), manager, &SUITE)
        .map(|text| text.map_err(|error| error.to_string()))
}
