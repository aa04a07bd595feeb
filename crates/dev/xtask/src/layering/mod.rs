//! `xtask layering`: the arrows between crates and the habits that a compiler does not check.
//!
//! The table in `allowed` is the only definition of the allowed dependencies. A new arrow is a decision: the
//! arrow is added to the table and to `docs/understand/architecture.md` in the same change.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

mod allowed;
mod groups;
mod page;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use self::{allowed::ALLOWED, page::DrawnCrate};
use crate::{cycles, modules, mutations, sources, untested};

/// Crates of the workspace that only tests use.
const DEVELOPMENT: &[&str] = &[
    "aws-fixture",
    "extension-contract",
    "flow-drill",
    "garden-fixture",
    "lease-server",
    "local-cloud-fixture",
    "parts-fixture",
    "provider-aws-fixture",
    "stalled-server",
    "testkit",
    "xtask",
    "repot-tests",
    "repot-drill",
    "repot-operations",
];

/// These crates work when every API server is gone: no dependency on Kubernetes, not even indirectly.
const WITHOUT_KUBE: &[&str] = &["flow", "ownership", "permit"];

/// Crates that `api`, a crate of types only, must not use directly.
const NOT_IN_API: &[&str] = &["tokio", "futures", "hyper", "reqwest", "tower"];

/// Packages with a name on the registry that differs from the name of the crate.
const PACKAGE_NAMES: &[(&str, &str)] = &[("repot-lease", "lease"), ("repot-permit", "permit")];

/// Reads `cargo metadata` and the sources, and fails with a line for each breach.
pub fn run() -> Result<()> {
    let output = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version=1", "--locked"])
        .output()
        .context("cargo metadata could not be started")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata = serde_json::from_slice(&output.stdout)?;
    let workspace = Workspace::read(&metadata)?;
    let mut breaches = workspace.breaches();
    let root = Path::new(".");
    let page = std::fs::read_to_string(root.join(page::PAGE)).context(page::PAGE)?;
    breaches.extend(page::breaches(&page::read(&page), &workspace.drawn_crates()));
    breaches.extend(mutations::breaches(&metadata, root)?);
    breaches.extend(sources::breaches(root)?);
    breaches.extend(cycles::breaches(root)?);
    breaches.extend(modules::breaches(root)?);
    breaches.extend(untested::breaches(&metadata)?);
    for breach in &breaches {
        eprintln!("layering: {breach}");
    }
    if !breaches.is_empty() {
        bail!(
            "{} breach(es) of the layering; docs/understand/architecture.md says why the rules are there",
            breaches.len()
        );
    }
    println!("layering: ok ({} crates)", workspace.uses.len());
    Ok(())
}

/// The crates of this workspace and their dependencies.
struct Workspace {
    /// Direct dependencies of every crate of the workspace, by name.
    uses: BTreeMap<String, Uses>,
    /// All direct and indirect dependencies of a crate, by name, without the crate. Only for crates of the
    /// workspace.
    below: BTreeMap<String, BTreeSet<String>>,
    /// Crates that run as a process, without development crates.
    processes: BTreeSet<String>,
    /// The group of each crate below `crates/`, by name.
    groups: BTreeMap<String, String>,
}

#[derive(Default)]
struct Uses {
    normal: BTreeSet<String>,
    tests: BTreeSet<String>,
}

impl Workspace {
    fn read(metadata: &Value) -> Result<Self> {
        let members: BTreeSet<&str> = list(&metadata["workspace_members"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let mut names = BTreeMap::new();
        let mut uses = BTreeMap::new();
        let mut processes = BTreeSet::new();
        let mut groups = BTreeMap::new();
        let root = Path::new(metadata["workspace_root"].as_str().unwrap_or_default());
        for package in list(&metadata["packages"]) {
            let (Some(id), Some(name)) = (package["id"].as_str(), crate_name(package)) else {
                continue;
            };
            names.insert(id, name);
            if members.contains(id) {
                uses.insert(name.to_owned(), direct(package));
                let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
                if let Some(group) = groups::group_of(manifest, root) {
                    groups.insert(name.to_owned(), group);
                }
                if has_program(package) && !is_development(name) {
                    processes.insert(name.to_owned());
                }
            }
        }
        let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"]) {
            let Some(id) = node["id"].as_str() else { continue };
            let normal = list(&node["deps"])
                .iter()
                .filter(|dep| list(&dep["dep_kinds"]).iter().any(|k| k["kind"].is_null()));
            edges.insert(id, normal.filter_map(|dep| dep["pkg"].as_str()).collect());
        }
        if uses.is_empty() || edges.is_empty() {
            bail!("cargo metadata names no crates");
        }
        let below = members
            .iter()
            .filter_map(|id| {
                let below = reachable(id, &edges)
                    .into_iter()
                    .filter_map(|id| names.get(id))
                    .map(ToString::to_string);
                Some((names.get(id)?.to_string(), below.collect()))
            })
            .collect();
        Ok(Self {
            uses,
            below,
            processes,
            groups,
        })
    }

    fn breaches(&self) -> Vec<String> {
        let mut breaches = self.breaches_of_groups();
        for (name, uses) in &self.uses {
            let Some(allowed) = allowed(name) else {
                breaches.push(format!(
                    "crate {name} is not in the table of crates/dev/xtask/src/layering/allowed.rs"
                ));
                continue;
            };
            for used in uses.normal.union(&uses.tests) {
                if used != name && self.processes.contains(name) && self.processes.contains(used) {
                    breaches.push(format!(
                        "{name} uses {used}: no process imports another; move what they share to a crate below both"
                    ));
                }
            }
            for used in uses.normal.iter().filter(|used| self.uses.contains_key(*used)) {
                if is_development(used) && !is_development(name) {
                    breaches.push(format!("{name} uses {used} outside of its tests"));
                } else if !matches(allowed, used) {
                    breaches.push(format!("{name} must not use {used}"));
                }
            }
            for used in uses.tests.iter().filter(|used| self.uses.contains_key(*used)) {
                breaches.extend(self.refused_in_tests(name, allowed, used).map(|refused| {
                    format!("the tests of {name} must not use {refused}; put such a test under tests/")
                }));
            }
        }
        for name in WITHOUT_KUBE {
            let below = self.below.get(*name).into_iter().flatten();
            for used in below.filter(|used| used.starts_with("kube") || *used == "k8s-openapi") {
                breaches.push(format!(
                    "{name} has {used} below it, but must work when every API server is gone"
                ));
            }
        }
        for used in self.uses.get("api").into_iter().flat_map(|uses| &uses.normal) {
            if NOT_IN_API.contains(&used.as_str()) {
                breaches.push(format!("api uses {used}, but is types only"));
            }
        }
        breaches
    }
}

impl Workspace {
    /// The crate that the tests of `name` must not use, if any: `used`, or a crate below the development
    /// crate
    /// `used`. So a development crate brings no crate into tests that the table refuses.
    fn refused_in_tests(&self, name: &str, allowed: &[&str], used: &str) -> Option<String> {
        if used == name || matches(allowed, used) {
            return None;
        }
        if !is_development(used) {
            return Some(used.to_owned());
        }
        let below = self.uses.get(used).into_iter().flat_map(|uses| &uses.normal);
        below
            .filter(|below| self.uses.contains_key(*below))
            .find_map(|below| self.refused_in_tests(name, allowed, below))
            .map(|refused| format!("{used}, with {refused}"))
    }

    /// The crates below `crates/`, with the crates of the workspace that each crate uses outside of tests.
    fn drawn_crates(&self) -> BTreeMap<String, DrawnCrate> {
        let drawn = self.uses.iter().filter_map(|(name, uses)| {
            let group = self.groups.get(name)?.clone();
            let uses = uses.normal.iter().filter(|used| self.uses.contains_key(*used));
            let uses = uses.cloned().collect();
            Some((name.clone(), DrawnCrate { group, uses }))
        });
        drawn.collect()
    }

    /// A line for each use of a crate of a group that the user's group must not use.
    fn breaches_of_groups(&self) -> Vec<String> {
        let mut breaches = Vec::new();
        for (name, uses) in &self.uses {
            let Some(group) = self.groups.get(name) else {
                continue;
            };
            // A crate without uses shows an unknown group, too.
            let used = uses.normal.iter().chain([name]);
            breaches.extend(used.filter_map(|used| {
                let breach = groups::breach(group, self.groups.get(used)?)?;
                Some(format!("{name} uses {used}: {breach}"))
            }));
        }
        breaches
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn direct(package: &Value) -> Uses {
    let mut uses = Uses::default();
    for dependency in list(&package["dependencies"]) {
        let Some(name) = crate_name(dependency) else {
            continue;
        };
        let kind = if dependency["kind"] == "dev" {
            &mut uses.tests
        } else {
            &mut uses.normal
        };
        kind.insert(name.to_owned());
    }
    uses
}

/// The name of a package or dependency in the table.
fn crate_name(package: &Value) -> Option<&str> {
    let package = package["name"].as_str()?;
    let listed = PACKAGE_NAMES.iter().find(|(name, _)| *name == package);
    Some(listed.map_or(package, |(_, name)| *name))
}

fn is_development(name: &str) -> bool {
    DEVELOPMENT.contains(&name)
}

fn has_program(package: &Value) -> bool {
    let mut targets = list(&package["targets"]).iter();
    targets.any(|target| list(&target["kind"]).iter().any(|kind| kind == "bin"))
}

fn reachable<'a>(from: &'a str, edges: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut todo = vec![from];
    while let Some(id) = todo.pop() {
        for next in edges.get(id).into_iter().flatten() {
            if seen.insert(*next) {
                todo.push(next);
            }
        }
    }
    seen
}

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    ALLOWED
        .iter()
        .find(|(pattern, _)| matches(&[pattern], name))
        .map(|(_, allowed)| *allowed)
}

fn matches(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => *pattern == name,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Breaches of a workspace of `crates`: name, normal dependencies, test dependencies. Further crates are
    /// `foreign`.
    fn breaches(crates: &[(&str, &[&str], &[&str])], foreign: &[(&str, &[&str])]) -> Vec<String> {
        let package = |name: &str, normal: &[&str], tests: &[&str]| {
            let normal = normal.iter().map(|n| json!({"name": n, "kind": null}));
            let tests = tests.iter().map(|n| json!({"name": n, "kind": "dev"}));
            json!({"id": name, "name": name, "dependencies": normal.chain(tests).collect::<Vec<_>>()})
        };
        let node = |name: &str, normal: &[&str]| {
            let deps = normal
                .iter()
                .map(|n| json!({"pkg": n, "dep_kinds": [{"kind": null}]}));
            json!({"id": name, "deps": deps.collect::<Vec<_>>()})
        };
        let ours = crates
            .iter()
            .map(|(name, normal, tests)| package(name, normal, tests));
        let theirs = foreign.iter().map(|(name, normal)| package(name, normal, &[]));
        let nodes = crates.iter().map(|(name, normal, _)| node(name, normal));
        let metadata = json!({
            "workspace_members": crates.iter().map(|c| c.0).collect::<Vec<_>>(),
            "packages": ours.chain(theirs).collect::<Vec<_>>(),
            "resolve": {"nodes": nodes.chain(foreign.iter().map(|(name, normal)| node(name, normal))).collect::<Vec<_>>()},
        });
        Workspace::read(&metadata).unwrap().breaches()
    }

    #[test]
    fn allowed_arrows_pass() {
        let crates: [(&str, &[&str], &[&str]); 4] = [
            ("api", &["serde"], &[]),
            ("extension", &["api"], &[]),
            ("provider-local", &["extension", "api"], &["testkit"]),
            ("testkit", &[], &[]),
        ];
        assert!(breaches(&crates, &[("serde", &[])]).is_empty());
    }

    #[test]
    fn a_crate_with_a_different_name_on_the_registry_is_known_by_the_name_of_the_crate() {
        let crates: [(&str, &[&str], &[&str]); 3] = [
            ("repot-permit", &["api"], &[]),
            ("repot-lease", &["repot-permit"], &[]),
            ("api", &[], &[]),
        ];
        assert_eq!(breaches(&crates, &[]), ["permit must not use api"]);
    }

    #[test]
    fn a_process_that_imports_another_is_found_whatever_the_table_says() {
        let program = |name: &str, uses: &[&str]| {
            let uses = uses.iter().map(|n| json!({"name": n, "kind": null}));
            let targets = [json!({"kind": ["lib"]}), json!({"kind": ["bin"]})];
            json!({"id": name, "name": name, "dependencies": uses.collect::<Vec<_>>(), "targets": targets})
        };
        let metadata = json!({
            "workspace_members": ["gardenlet", "lease", "testkit"],
            "packages": [program("gardenlet", &["lease"]), program("lease", &[]), program("testkit", &["lease"])],
            "resolve": {"nodes": [{"id": "gardenlet", "deps": []}]},
        });
        assert_eq!(
            Workspace::read(&metadata).unwrap().breaches()[..1],
            ["gardenlet uses lease: no process imports another; move what they share to a crate below both"]
        );
    }

    #[test]
    fn a_provider_and_the_gardenlet_never_meet() {
        let crates: [(&str, &[&str], &[&str]); 2] = [
            ("gardenlet", &["provider-aws"], &[]),
            ("provider-aws", &["gardenlet"], &[]),
        ];
        assert_eq!(
            breaches(&crates, &[]),
            [
                "gardenlet must not use provider-aws",
                "provider-aws must not use gardenlet"
            ]
        );
    }

    #[test]
    fn a_crate_of_the_core_that_uses_a_different_group_is_found() {
        let package = |name: &str, group: &str, uses: &[&str]| {
            let uses = uses.iter().map(|n| json!({"name": n, "kind": null}));
            json!({"id": name, "name": name, "dependencies": uses.collect::<Vec<_>>(),
                "manifest_path": format!("/repository/crates/{group}/{name}/Cargo.toml")})
        };
        let metadata = json!({
            "workspace_root": "/repository",
            "workspace_members": ["placement", "tunnel"],
            "packages": [package("placement", "core", &["tunnel"]), package("tunnel", "components", &[])],
            "resolve": {"nodes": [{"id": "placement", "deps": []}]},
        });
        assert_eq!(
            Workspace::read(&metadata).unwrap().breaches()[..1],
            ["placement uses tunnel: crates/core must not use crates/components"]
        );
    }

    #[test]
    fn flow_has_no_kube_however_deep() {
        let crates: [(&str, &[&str], &[&str]); 1] = [("flow", &["a"], &[])];
        let found = breaches(
            &crates,
            &[("a", &["b"]), ("b", &["kube-core"]), ("kube-core", &[])],
        );
        assert_eq!(
            found,
            ["flow has kube-core below it, but must work when every API server is gone"]
        );
    }

    #[test]
    fn tests_only_crates_and_unknown_crates_are_found() {
        let crates: [(&str, &[&str], &[&str]); 4] = [
            ("runtime", &["testkit"], &[]),
            ("testkit", &[], &[]),
            ("novelty", &[], &[]),
            ("api", &["tokio"], &["runtime"]),
        ];
        assert_eq!(
            breaches(&crates, &[("tokio", &[])]),
            [
                "the tests of api must not use runtime; put such a test under tests/",
                "crate novelty is not in the table of crates/dev/xtask/src/layering/allowed.rs",
                "runtime uses testkit outside of its tests",
                "api uses tokio, but is types only",
            ]
        );
    }

    #[test]
    fn a_development_crate_brings_only_allowed_crates_into_tests() {
        let crates: [(&str, &[&str], &[&str]); 5] = [
            ("testkit", &[], &[]),
            ("api", &[], &["lease-server"]),
            ("lease", &["permit"], &["lease-server"]),
            ("lease-server", &["permit", "testkit"], &[]),
            ("permit", &[], &[]),
        ];
        assert_eq!(
            breaches(&crates, &[]),
            [
                "the tests of api must not use lease-server, with permit; put such a test under tests/",
                "lease-server must not use testkit",
            ]
        );
    }
}
