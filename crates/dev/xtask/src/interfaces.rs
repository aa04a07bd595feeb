//! Modules that a reader of a folder must not meet. The folder calls such a module through an interface, and
//! the interface is named for its role.

/// A folder whose files must not contain some words.
struct Interface {
    folder: &'static str,
    /// In lower case. A word counts in code and in comments, also as a part of a longer word.
    words: &'static [&'static str],
    /// The file that names the implementation, and the only permitted text with a word.
    joint: (&'static str, &'static str),
    instead: &'static str,
    /// A folder below `folder` with rules for all flows, also for the tasks behind the interface.
    exempt: &'static str,
}

const INTERFACES: &[Interface] = &[Interface {
    folder: "crates/core/gardenlet/src/shoot/",
    words: &["zone", "isolat"],
    joint: (
        "crates/core/gardenlet/src/shoot/mod.rs",
        "zone_isolation::interface",
    ),
    instead: "a reader of a move meets no zone: extend shoot/operation_hooks.rs, and implement the extension in \
              zone_isolation/interface.rs",
    exempt: "crates/core/gardenlet/src/shoot/flows/safety/",
}];

/// A line for each breach in a file. `path` is relative to the repository.
pub fn in_file(path: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    for interface in INTERFACES {
        if !path.starts_with(interface.folder) || path.starts_with(interface.exempt) {
            continue;
        }
        let (joint, permitted) = interface.joint;
        for (number, line) in text.lines().enumerate() {
            let line = if path == joint {
                line.replace(permitted, "")
            } else {
                line.to_owned()
            };
            let line = line.to_lowercase();
            let word = interface.words.iter().find(|word| line.contains(**word));
            breaches.extend(
                word.map(|word| format!("{path}:{} has \"{word}\"; {}", number + 1, interface.instead)),
            );
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::in_file;

    const FLOW: &str = "crates/core/gardenlet/src/shoot/flows/migrate_flow.rs";
    const JOINT: &str = "crates/core/gardenlet/src/shoot/mod.rs";

    #[test]
    fn a_move_that_names_a_zone_is_found() {
        let text = "use parts::Etcds;\nuse parts::SubnetIsolation;\n// Opens the Zone.\nlet zones = 1;\n";
        let found = in_file(FLOW, text);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].starts_with(&format!("{FLOW}:2 has \"isolat\"; a reader of a move")),
            "{found:?}"
        );
        assert!(found[1].contains(":3 has \"zone\""), "{found:?}");
    }

    #[test]
    fn only_the_joint_names_the_interface() {
        let joint = "use crate::{Context, zone_isolation::interface};\n";
        assert!(in_file(JOINT, joint).is_empty());
        assert_eq!(in_file(FLOW, joint).len(), 1);
        assert_eq!(in_file(JOINT, "use crate::zone_isolation::record;\n").len(), 1);
        assert_eq!(
            in_file(JOINT, "use crate::zone_isolation::interface; // opens a zone\n").len(),
            1
        );
    }

    #[test]
    fn the_rules_for_all_flows_may_name_zones() {
        let path = "crates/core/gardenlet/src/shoot/flows/safety/samples.rs";
        assert!(in_file(path, "pub struct Zones;\n").is_empty());
    }

    #[test]
    fn the_isolation_of_zones_may_name_zones() {
        let path = "crates/core/gardenlet/src/zone_isolation/steps.rs";
        assert!(in_file(path, "pub struct Zones;\n").is_empty());
    }
}
