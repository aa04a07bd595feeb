//! Each mutation of crate `mutation` has a place in production code and a test that fails under the mutation.
//! No release has a switch. Dev-dependencies alone enable the feature `switches` of crate `mutation`. Neither
//! a chart, a script nor production code sets the variable that such a build reads.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::sources::{crate_of, rust_files};

const CRATE: &str = "mutation";
const FEATURE: &str = "switches";
const VARIABLE: &str = "REPOT_MUTATION";

/// A line for each breach in the workspace of this `cargo metadata`, and below `root`.
pub fn breaches(metadata: &Value, root: &Path) -> Result<Vec<String>> {
    let mut breaches = in_dependencies(metadata);
    for folder in ["charts", "hack", "crates"] {
        in_files(root, &root.join(folder), &mut breaches)?;
    }
    let listed = fs::read_to_string(root.join("crates/core/mutation/src/lib.rs"))?;
    let mut sources = String::new();
    for file in rust_files(root)? {
        if !["crates/core/mutation", "crates/dev/xtask"]
            .iter()
            .any(|own| file.starts_with(root.join(own)))
        {
            sources += &fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        }
    }
    breaches.extend(unproven(&listed, &sources));
    Ok(breaches)
}

fn in_dependencies(metadata: &Value) -> Vec<String> {
    let mut breaches = Vec::new();
    for package in list(&metadata["packages"]) {
        let name = package["name"].as_str().unwrap_or_default();
        for dependency in list(&package["dependencies"]) {
            let enables = list(&dependency["features"])
                .iter()
                .any(|feature| feature == FEATURE);
            if dependency["name"] == CRATE && enables && dependency["kind"] != "dev" {
                breaches.push(format!(
                    "{name} enables the feature {FEATURE} of {CRATE} outside of its dev-dependencies: a release could switch off safety rules"
                ));
            }
        }
        for (feature, enabled) in package["features"].as_object().into_iter().flatten() {
            let through = |enabled: &str| {
                enabled
                    .strip_prefix(CRATE)
                    .is_some_and(|rest| rest.trim_start_matches('?') == format!("/{FEATURE}"))
                    || (name == CRATE && enabled == FEATURE)
            };
            if list(enabled).iter().filter_map(Value::as_str).any(through) {
                breaches.push(format!(
                    "the feature {feature} of {name} enables {FEATURE} of {CRATE}: name that feature in dev-dependencies alone"
                ));
            }
        }
    }
    breaches
}

/// Mutations that production code does not ask for, or that no test names.
fn unproven(listed: &str, sources: &str) -> Vec<String> {
    let names = listed
        .lines()
        .skip_while(|line| !line.starts_with("mutations! {"));
    let names = names.take_while(|line| *line != "}").filter_map(|line| {
        let name = line.trim().strip_suffix(',')?;
        name.chars().all(char::is_alphanumeric).then_some(name)
    });
    let mut breaches = Vec::new();
    for name in names {
        let uses: Vec<bool> = sources
            .split(&format!("Mutation::{name}"))
            .skip(1)
            .filter(|rest| !rest.starts_with(char::is_alphanumeric))
            .map(|rest| rest.starts_with(".is_active()"))
            .collect();
        if !uses.contains(&true) {
            breaches.push(format!("no production code asks for Mutation::{name}"));
        }
        if !uses.contains(&false) {
            breaches.push(format!(
                "no test fails under Mutation::{name}: call assert_killed_by"
            ));
        }
    }
    breaches
}

/// In `crates`, production code counts alone: tests may give a child process the variable.
fn in_files(root: &Path, folder: &Path, breaches: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if path.is_dir() {
            in_files(root, &path, breaches)?;
        } else if may_not_name(&shown) {
            let content = fs::read(&path).with_context(|| shown.clone())?;
            if String::from_utf8_lossy(&content).contains(VARIABLE) {
                breaches.push(format!(
                    "{shown} names {VARIABLE}, which switches off a safety rule where the feature {FEATURE} is enabled (make e2e)"
                ));
            }
        }
    }
    Ok(())
}

fn may_not_name(path: &str) -> bool {
    let Some((name, file)) = crate_of(path) else {
        return !path.starts_with("crates/");
    };
    file.starts_with("src/") && ![CRATE, "xtask"].contains(&name)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_release_that_could_switch_off_a_safety_rule_is_found() {
        let uses = |kind: Value, features: Value| json!({"name": "parts", "features": {}, "dependencies": [{"name": "mutation", "kind": kind, "features": features}]});
        for (package, is_found) in [
            (uses(json!(null), json!([])), false),
            (uses(json!("dev"), json!(["switches"])), false),
            (uses(json!(null), json!(["switches"])), true),
            (uses(json!("build"), json!(["switches"])), true),
            (
                json!({"name": "mutation", "features": {"switches": []}, "dependencies": []}),
                false,
            ),
            (
                json!({"name": "mutation", "features": {"switches": [], "default": ["switches"]}, "dependencies": []}),
                true,
            ),
            (
                json!({"name": "parts", "features": {"fast": ["mutation/switches"]}, "dependencies": []}),
                true,
            ),
            (
                json!({"name": "parts", "features": {"fast": ["mutation?/switches"]}, "dependencies": []}),
                true,
            ),
        ] {
            let found = in_dependencies(&json!({"packages": [package]}));
            assert_eq!(!found.is_empty(), is_found, "{package}: {found:?}");
        }
    }

    #[test]
    fn a_mutation_without_a_place_or_a_proof_is_found() {
        let listed = "mutations! {\n    /// One.\n    Late,\n    LateAgain,\n}\nother,\n";
        let place = "if Mutation::Late.is_active() || Mutation::LateAgain.is_active() {}\n";
        let proof = "Mutation::LateAgain.assert_killed_by(test);\n(Mutation::Late, test)";
        assert!(unproven(listed, &format!("{place}{proof}")).is_empty());
        assert_eq!(
            unproven(listed, &format!("{place}Mutation::LateAgain")),
            ["no test fails under Mutation::Late: call assert_killed_by"]
        );
        assert_eq!(unproven(listed, proof).len(), 2);
    }

    #[test]
    fn charts_scripts_and_production_code_do_not_name_the_variable() {
        for (path, is_read) in [
            ("charts/etcd-druid/templates/deployment.yaml", true),
            ("hack/e2e.sh", true),
            ("crates/components/etcd-druid/src/objects/etcd.rs", true),
            (
                "crates/components/etcd-backup-restore/tests/real/lab/mod.rs",
                false,
            ),
            ("crates/core/mutation/src/switch.rs", false),
        ] {
            assert_eq!(may_not_name(path), is_read, "{path}");
        }
    }
}
