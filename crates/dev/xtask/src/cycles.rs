//! No two files of a crate import each other, directly or through further files. A reader of one file would
//! have to know the second file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;

use crate::{
    imports::{self, Imports},
    sources::crate_folders,
};

/// A line for each group of files of a crate below `root` that import each other.
pub fn breaches(root: &Path) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for folder in crate_folders(root)? {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for first in ["src/lib.rs", "src/main.rs"] {
            let first = folder.join(first);
            if first.is_file() {
                breaches.extend(describe_cycles(&name, &cycles_of(&imports::collect(&first)?)));
            }
        }
    }
    breaches.sort();
    Ok(breaches)
}

/// Files that reach each other by imports, and the imports between these files.
#[derive(Debug, PartialEq, Eq)]
struct Cycle {
    files: BTreeSet<String>,
    edges: Vec<String>,
}

fn describe_cycles(name: &str, cycles: &[Cycle]) -> Vec<String> {
    let line = |cycle: &Cycle| format!("{name}: files import each other: {}", cycle.edges.join(", "));
    cycles.iter().map(line).collect()
}

fn cycles_of(imports: &Imports) -> Vec<Cycle> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = imports
        .keys()
        .map(|file| (file.as_str(), reachable(file, imports)))
        .collect();
    let both = |a: &str, b: &str| reach[a].contains(b) && reach.get(b).is_some_and(|back| back.contains(a));
    let mut cycles: Vec<Cycle> = Vec::new();
    for file in imports.keys().filter(|file| both(file, file)) {
        if cycles.iter().any(|cycle| cycle.files.contains(file)) {
            continue;
        }
        let files: BTreeSet<String> = imports
            .keys()
            .filter(|other| both(file, other))
            .cloned()
            .collect();
        let within = |from: &&String| files.contains(*from);
        let edges = files
            .iter()
            .flat_map(|from| {
                imports[from]
                    .iter()
                    .filter(within)
                    .map(move |to| format!("{from} → {to}"))
            })
            .collect();
        cycles.push(Cycle { files, edges });
    }
    cycles
}

fn reachable<'a>(from: &str, imports: &'a Imports) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut todo: Vec<&str> = vec![from];
    while let Some(file) = todo.pop() {
        for next in imports.get(file).into_iter().flatten() {
            if seen.insert(next.as_str()) {
                todo.push(next);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Imports {
        let mut imports = Imports::new();
        for (from, to) in edges {
            imports
                .entry((*from).to_owned())
                .or_default()
                .insert((*to).to_owned());
            imports.entry((*to).to_owned()).or_default();
        }
        imports
    }

    #[test]
    fn files_that_import_each_other_are_found_also_by_way_of_others() {
        assert_eq!(cycles_of(&graph(&[("a", "b"), ("b", "c"), ("a", "c")])), []);
        let edges = [
            ("a", "b"),
            ("b", "a"),
            ("x", "y"),
            ("y", "z"),
            ("z", "x"),
            ("x", "a"),
        ];
        assert_eq!(
            describe_cycles("c", &cycles_of(&graph(&edges))),
            [
                "c: files import each other: a → b, b → a",
                "c: files import each other: x → y, y → z, z → x"
            ]
        );
    }
}
