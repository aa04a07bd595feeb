//! Tests of leader migration. Only `two_managers` needs real servers.
#![allow(clippy::unwrap_used, clippy::panic)]
// expect-test writes the hashes, needed or not.
#![allow(clippy::needless_raw_string_hashes)]

mod assignments;
mod both_locks;
mod command_line;
mod told;
mod two_managers;

use super::{LeaderMigrationConfiguration, Manager, print_if_asked};

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
    LeaderMigrationConfiguration::parse(&text(entries), "m.yaml").unwrap()
}

fn text(entries: &[(&str, &str)]) -> String {
    let mut text = "apiVersion: controllermanager.config.k8s.io/v1\nkind: LeaderMigrationConfiguration\n\
                    leaderName: shared\ncontrollerLeaders:\n"
        .to_owned();
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
    print_if_asked(args.collect::<Vec<_>>(), manager).map(|text| text.map_err(|error| error.to_string()))
}
