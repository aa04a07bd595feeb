//! The imports between the files of a crate, read from the sources by name.
//!
//! A path counts for the file that defines the named item, across any number of `pub use`. Not counted are
//! `mod`, a `pub use` that re-exports definitions of child modules, a module that is only imported as a name,
//! and code for tests. Paths in macros count as elsewhere.

mod tree;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};

use tree::{Import, Tree};

/// The imported files for each file of a crate, by the path below `src`.
pub type Imports = BTreeMap<String, BTreeSet<String>>;

/// Maximum length of a chain of `pub use`; a longer chain is a cycle.
const LONGEST_CHAIN: usize = 16;

/// Imports between the files of the library or program with this first file.
pub fn collect(first_file: &Path) -> Result<Imports> {
    Ok(of_tree(&Tree::read(first_file)?))
}

fn of_tree(tree: &Tree) -> Imports {
    let mut imports = Imports::new();
    for (at, module) in tree.modules.iter().enumerate() {
        let mut found = BTreeSet::new();
        let passed_on = |import: &&Import| !(import.public && tree.is_below(at, &import.path));
        for import in module.imports.iter().filter(passed_on) {
            found.extend(file_of(tree, at, import));
        }
        let mut paths = Vec::new();
        for code in &module.code {
            paths_in(code.clone(), &mut paths);
        }
        for path in paths {
            found.extend(tree.defined_in(at, &path, LONGEST_CHAIN));
        }
        found.remove(&module.file);
        imports.entry(module.file.clone()).or_default().extend(found);
    }
    imports
}

fn file_of(tree: &Tree, at: usize, import: &Import) -> Option<String> {
    if import.name == "*" {
        return tree
            .module_at(at, &import.path)
            .map(|module| tree.modules[module].file.clone());
    }
    tree.defined_in(at, &import.path, LONGEST_CHAIN)
}

/// All paths in a piece of code: words with `::` in between. A word after a dot is a field or a method.
fn paths_in(code: TokenStream, paths: &mut Vec<Vec<String>>) {
    let (mut path, mut colons, mut after_dot) = (Vec::new(), 0, false);
    for token in code {
        match token {
            TokenTree::Ident(word) => {
                if colons != 2 {
                    paths.push(std::mem::take(&mut path));
                }
                if !after_dot || !path.is_empty() {
                    path.push(word.to_string());
                }
                (colons, after_dot) = (0, false);
            }
            TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
            TokenTree::Punct(sign) => {
                paths.push(std::mem::take(&mut path));
                (colons, after_dot) = (0, sign.as_char() == '.');
            }
            TokenTree::Group(group) => {
                paths.push(std::mem::take(&mut path));
                (colons, after_dot) = (0, false);
                paths_in(group.stream(), paths);
            }
            TokenTree::Literal(_) => {
                paths.push(std::mem::take(&mut path));
                (colons, after_dot) = (0, false);
            }
        }
    }
    paths.push(path);
    paths.retain(|path| !path.is_empty());
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Imports in a crate of these files.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        let tree = Tree::read_from("lib.rs", &|path: &str| files.get(path).map(ToString::to_string)).unwrap();
        of_tree(&tree)
            .iter()
            .flat_map(|(file, others)| others.iter().map(move |other| format!("{file} {other}")))
            .collect()
    }

    #[test]
    fn declarations_and_what_is_passed_on_do_not_count() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub(crate) use b::*;"),
            ("a.rs", "pub struct A;"),
            ("b.rs", "pub struct B;"),
        ];
        assert!(imports(&files).is_empty());
    }

    #[test]
    fn a_path_counts_for_the_file_that_defines_it() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use b::*;"),
            ("a.rs", "pub struct A;"),
            ("b.rs", "pub struct B; impl B { pub fn new() {} }"),
            ("c.rs", "use crate::{A, B as Other}; fn f() { crate::B::new() }"),
        ];
        assert_eq!(imports(&files), ["c.rs a.rs", "c.rs b.rs"]);
    }

    #[test]
    fn a_parent_that_uses_what_its_child_defines_imports_it() {
        let files = [
            ("lib.rs", "mod a; const N: u8 = 1;"),
            (
                "a.rs",
                "mod deep; pub use deep::D; fn f(d: D) { g(super::N) } fn g(_: u8) {}",
            ),
            ("a/deep.rs", "use super::g; pub struct D; fn h() { g(1) }"),
        ];
        assert_eq!(
            imports(&files),
            ["a.rs a/deep.rs", "a.rs lib.rs", "a/deep.rs a.rs"]
        );
    }

    #[test]
    fn a_module_as_a_name_counts_by_what_is_taken_from_it() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod inner; pub use inner::f;"),
            ("a/inner.rs", "pub fn f() {}"),
            ("b.rs", "use crate::a; fn g() { format!(\"{}\", a::f()); }"),
        ];
        assert_eq!(imports(&files), ["b.rs a/inner.rs"]);
    }

    #[test]
    fn tests_and_other_crates_do_not_count() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "use kube::b::B; #[cfg(test)] mod tests { use crate::b::B; } #[cfg(test)] use crate::b;",
            ),
            ("b.rs", "pub struct B; fn f(x: X) { x.a().b.c() }"),
        ];
        assert!(imports(&files).is_empty(), "{:?}", imports(&files));
    }

    #[test]
    fn modules_within_a_file_belong_to_it() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "mod inner { use super::super::b::B; pub struct I; } fn f(i: inner::I) {}",
            ),
            ("b.rs", "pub struct B; use crate::a::*;"),
        ];
        assert_eq!(imports(&files), ["a.rs b.rs", "b.rs a.rs"]);
    }
}
