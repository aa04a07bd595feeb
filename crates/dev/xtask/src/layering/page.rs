//! The drawing of the crates in `docs/understand/architecture.md`, and the differences from the manifests.

use std::collections::{BTreeMap, BTreeSet};

/// The page with the drawing.
pub(super) const PAGE: &str = "docs/understand/architecture.md";

/// A crate and the crates that this crate uses outside of tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DrawnCrate {
    pub(super) group: String,
    pub(super) uses: BTreeSet<String>,
}

/// The crates of the drawing, by name. A line without indentation names a group. An indented line names a
/// crate, the crates that this crate uses after `──`, and a remark after two spaces.
pub(super) fn read(page: &str) -> BTreeMap<String, DrawnCrate> {
    let block = page.split("\n```\n").find(|block| block.starts_with("core/\n"));
    let (mut crates, mut group) = (BTreeMap::new(), "");
    for line in block.into_iter().flat_map(str::lines) {
        if !line.starts_with(' ') {
            group = line.trim_end_matches('/');
            continue;
        }
        let Some(name) = line.split_whitespace().next() else {
            continue;
        };
        let list = line.split_once(" ── ").map_or("", |(_, rest)| rest);
        let list = list.split("  ").next().unwrap_or_default();
        let uses = list.split(", ").map(str::trim).filter(|used| !used.is_empty());
        let drawn = DrawnCrate {
            group: group.to_owned(),
            uses: uses.map(ToOwned::to_owned).collect(),
        };
        crates.insert(name.to_owned(), drawn);
    }
    crates
}

/// A line for each difference between the drawing and the crates with a manifest.
pub(super) fn breaches(
    drawn: &BTreeMap<String, DrawnCrate>,
    actual: &BTreeMap<String, DrawnCrate>,
) -> Vec<String> {
    let mut breaches = Vec::new();
    let names: BTreeSet<_> = drawn.keys().chain(actual.keys()).collect();
    for name in names {
        let (Some(line), Some(manifest)) = (drawn.get(name), actual.get(name)) else {
            let missing = if actual.contains_key(name) {
                "has no line for this crate"
            } else {
                "has a line, and there is no such crate below crates/"
            };
            breaches.push(format!("{name}: {PAGE} {missing}"));
            continue;
        };
        if line.group != manifest.group {
            breaches.push(format!(
                "{name}: {PAGE} names group {}, and the crate is in crates/{}",
                line.group, manifest.group
            ));
        }
        let lacking = manifest.uses.difference(&line.uses);
        breaches.extend(lacking.map(|used| format!("{name} uses {used}: {PAGE} lacks {used} in the line")));
        let extra = line.uses.difference(&manifest.uses);
        breaches
            .extend(extra.map(|used| format!("{name} does not use {used}: {PAGE} has {used} in the line")));
    }
    breaches
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
