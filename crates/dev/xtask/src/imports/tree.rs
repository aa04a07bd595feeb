//! The modules of a crate: the file of each module, the definitions, the imports, and the rest of the code.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, anyhow};
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Item, ItemMod, UseTree, Visibility};

/// All modules of a crate; the first module is the root.
#[derive(Default)]
pub struct Tree {
    /// In the order of discovery.
    pub modules: Vec<Module>,
}

/// A module.
pub struct Module {
    /// The file of the module, below `src`.
    pub file: String,
    /// The imports, a name each.
    pub imports: Vec<Import>,
    /// The definitions, without modules and imports.
    pub code: Vec<TokenStream>,
    defines: BTreeSet<String>,
    parent: Option<usize>,
    children: Vec<(String, usize)>,
}

/// A name from a `use`.
pub struct Import {
    /// The name here; `*` for all names of a module.
    pub name: String,
    /// The source of the name.
    pub path: Vec<String>,
    /// Whether further modules may import the name from here.
    pub public: bool,
}

/// The text of a file below `src`, if there is such a file.
type Reader<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Tree {
    /// Reads the crate with this first file.
    pub fn read(first_file: &Path) -> Result<Self> {
        let folder = first_file.parent().context("a first file lies in a folder")?;
        let name = first_file
            .file_name()
            .and_then(|name| name.to_str())
            .context("a first file has a name")?;
        Self::read_from(name, &|path| std::fs::read_to_string(folder.join(path)).ok())
            .with_context(|| first_file.display().to_string())
    }

    /// As [`Self::read`], with a different source of files.
    pub fn read_from(first_file: &str, read: Reader) -> Result<Self> {
        let mut tree = Self::default();
        tree.add_file(None, first_file, "", read)?;
        Ok(tree)
    }

    /// Adds the module of a file. Files of child modules are in `folder`; `folder` ends with a slash or is
    /// empty.
    fn add_file(&mut self, parent: Option<usize>, file: &str, folder: &str, read: Reader) -> Result<usize> {
        let text = read(file).ok_or_else(|| anyhow!("{file} cannot be read"))?;
        let parsed = syn::parse_file(&text).with_context(|| file.to_owned())?;
        self.add(parent, file, folder, parsed.items, read)
    }

    fn add(
        &mut self,
        parent: Option<usize>,
        file: &str,
        folder: &str,
        items: Vec<Item>,
        read: Reader,
    ) -> Result<usize> {
        let at = self.modules.len();
        self.modules.push(Module {
            file: file.to_owned(),
            imports: Vec::new(),
            code: Vec::new(),
            defines: BTreeSet::new(),
            parent,
            children: Vec::new(),
        });
        for item in items {
            if attributes(&item).iter().any(is_for_tests) {
                continue;
            }
            match item {
                Item::Mod(module) => {
                    let name = module.ident.to_string();
                    let child = self.add_child(at, file, folder, module, read)?;
                    self.modules[at].children.push((name, child));
                }
                Item::Use(item) => {
                    let public = !matches!(item.vis, Visibility::Inherited);
                    flatten(&item.tree, &mut Vec::new(), public, &mut self.modules[at].imports);
                }
                other => {
                    self.modules[at].defines.extend(name_of(&other));
                    self.modules[at].code.push(other.into_token_stream());
                }
            }
        }
        Ok(at)
    }

    fn add_child(
        &mut self,
        at: usize,
        file: &str,
        folder: &str,
        module: ItemMod,
        read: Reader,
    ) -> Result<usize> {
        let below = format!("{folder}{}/", module.ident);
        if let Some((_, items)) = module.content {
            return self.add(Some(at), file, &below, items, read);
        }
        let beside = format!("{folder}{}.rs", module.ident);
        let file = if read(&beside).is_some() {
            beside
        } else {
            format!("{below}mod.rs")
        };
        self.add_file(Some(at), &file, &below, read)
    }

    /// The file that defines the item of this path in module `at`. `None`: the item belongs to a foreign
    /// crate, or is a local name or a module.
    pub fn defined_in(&self, at: usize, path: &[String], chain: usize) -> Option<String> {
        let (mut at, mut rest) = match self.begin(at, path)? {
            Begin::Module(module, rest) => (module, rest),
            Begin::Import(import, rest) => return self.follow(at, import, rest, chain),
            Begin::Here => return Some(self.modules[at].file.clone()),
        };
        while let Some((word, after)) = rest.split_first() {
            if let Some(child) = self.child(at, word) {
                (at, rest) = (child, after);
                continue;
            }
            if self.modules[at].defines.contains(word) {
                return Some(self.modules[at].file.clone());
            }
            if let Some(import) = self.import(at, word) {
                return self.follow(at, import, after, chain);
            }
            return self
                .by_globs(at, rest, chain)
                .or_else(|| Some(self.modules[at].file.clone()));
        }
        None
    }

    /// The module that a path names in module `at`.
    pub fn module_at(&self, at: usize, path: &[String]) -> Option<usize> {
        let Begin::Module(mut module, rest) = self.begin(at, path)? else {
            return None;
        };
        for word in rest {
            module = self.child(module, word)?;
        }
        Some(module)
    }

    /// Whether a path in module `at` leads into the module's own children.
    pub fn is_below(&self, at: usize, path: &[String]) -> bool {
        let path = match path.split_first() {
            Some((word, rest)) if word == "self" => rest,
            _ => path,
        };
        path.first().is_some_and(|word| self.child(at, word).is_some())
    }

    fn begin<'a>(&'a self, at: usize, path: &'a [String]) -> Option<Begin<'a>> {
        let (first, mut rest) = path.split_first()?;
        let mut module = match first.as_str() {
            "crate" => 0,
            "self" => at,
            "super" => self.modules[at].parent?,
            word => {
                return if let Some(child) = self.child(at, word) {
                    Some(Begin::Module(child, rest))
                } else if self.modules[at].defines.contains(word) {
                    Some(Begin::Here)
                } else {
                    self.import(at, word).map(|import| Begin::Import(import, rest))
                };
            }
        };
        while let Some(("super", after)) = rest.split_first().map(|(word, after)| (word.as_str(), after)) {
            (module, rest) = (self.modules[module].parent?, after);
        }
        Some(Begin::Module(module, rest))
    }

    fn follow(&self, at: usize, import: &Import, rest: &[String], chain: usize) -> Option<String> {
        let path: Vec<String> = import.path.iter().chain(rest).cloned().collect();
        // `use kube::kube` and similar imports: the name belongs to a foreign crate, not to this import.
        let same = path.first() == Some(&import.name);
        (chain > 0 && !same)
            .then(|| self.defined_in(at, &path, chain - 1))
            .flatten()
            .or_else(|| {
                let child = same.then(|| self.child(at, &import.name)).flatten();
                child.and_then(|_| self.defined_in(at, &path, chain.saturating_sub(1)))
            })
    }

    fn by_globs(&self, at: usize, path: &[String], chain: usize) -> Option<String> {
        let globs = self.modules[at]
            .imports
            .iter()
            .filter(|import| import.name == "*");
        globs
            .filter_map(|glob| self.module_at(at, &glob.path))
            .filter(|module| *module != at && chain > 0)
            .find_map(|module| {
                let word = path.first()?;
                let known = self.modules[module].defines.contains(word)
                    || self.child(module, word).is_some()
                    || self.import(module, word).is_some();
                let path: Vec<String> = std::iter::once("self".to_owned())
                    .chain(path.iter().cloned())
                    .collect();
                known.then(|| self.defined_in(module, &path, chain - 1)).flatten()
            })
    }

    fn child(&self, at: usize, name: &str) -> Option<usize> {
        let mut children = self.modules[at].children.iter();
        children.find(|(child, _)| child == name).map(|(_, child)| *child)
    }

    fn import(&self, at: usize, name: &str) -> Option<&Import> {
        self.modules[at].imports.iter().find(|import| import.name == name)
    }
}

enum Begin<'a> {
    Module(usize, &'a [String]),
    Import(&'a Import, &'a [String]),
    Here,
}

fn flatten(tree: &UseTree, path: &mut Vec<String>, public: bool, imports: &mut Vec<Import>) {
    let mut add = |name: String, mut path: Vec<String>| {
        // `use a::{self}` names `a`.
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let name = if name == "self" {
            path.last().cloned().unwrap_or(name)
        } else {
            name
        };
        imports.push(Import { name, path, public });
    };
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            flatten(&step.tree, path, public, imports);
            path.pop();
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            add(name.clone(), path.iter().cloned().chain([name]).collect());
        }
        UseTree::Rename(rename) => {
            let from = path.iter().cloned().chain([rename.ident.to_string()]);
            add(rename.rename.to_string(), from.collect());
        }
        UseTree::Glob(_) => add("*".to_owned(), path.clone()),
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, path, public, imports);
            }
        }
    }
}

fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::TraitAlias(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .meta
            .require_list()
            .is_ok_and(|list| list.tokens.to_string() == "test")
}
