//! The functions, fields, aliases and implementations of the sources, for the search for requests.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use syn::{Attribute, Fields, FnArg, GenericParam, ImplItem, Item, Pat, Type, UseTree};

use super::{
    kinds::Kinds,
    shapes::{Scope, Shape, type_arguments},
};
use crate::sources::{crate_of, files_below};

/// A function with a body, or the initial value of a constant.
pub struct Function {
    pub scope: Scope,
    pub name: String,
    /// Generic parameters of the function, without those of the type, in the order of the declaration.
    pub generics: Vec<String>,
    pub has_self: bool,
    pub inputs: Vec<(Pat, Type)>,
    pub output: Option<Type>,
    pub body: syn::Block,
    /// All words of the body and of the signature, for the search for reachable functions.
    pub words: BTreeSet<String>,
    /// Whether the function implements a trait, so that a caller may not name the type.
    pub is_of_trait: bool,
}

/// An implementation of the trait `Reconciler` with a finalizer. The runner writes the finalizer.
pub struct Reconciled {
    pub scope: Scope,
    pub object: Type,
}

/// All items of the shipped sources.
#[derive(Default)]
pub struct Items {
    pub kinds: Kinds,
    pub functions: Vec<Function>,
    pub by_name: HashMap<String, Vec<usize>>,
    /// Fields by the name of the field: the struct, the scope and the type.
    pub fields: HashMap<String, Vec<(Scope, Type)>>,
    /// The words of the definition of each type and alias, for the search for reachable functions.
    pub types: BTreeMap<String, BTreeSet<String>>,
    /// Types of constants, by the name of the constant.
    pub values: HashMap<String, Vec<(Scope, Type)>>,
    /// Aliases by crate and name.
    pub aliases: HashMap<(String, String), (Scope, Type)>,
    /// Types that a crate defines, so that an equal name of a kind means this type there.
    pub defined: BTreeSet<(String, String)>,
    pub reconciled: Vec<Reconciled>,
}

impl Items {
    /// Reads the sources below `crates/`, without development crates and tests.
    pub fn read(root: &Path) -> Result<Self> {
        let mut items = Self {
            kinds: Kinds::read(root)?,
            ..Self::default()
        };
        let mut sources = Vec::new();
        for file in files_below(vec![root.join("crates")], "rs")? {
            let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            if is_shipped(&shown) {
                let text = fs::read_to_string(&file).with_context(|| shown.clone())?;
                sources.push((shown, text));
            }
        }
        let of_tests: Vec<String> = sources
            .iter()
            .flat_map(|(path, text)| modules_of_tests(path, text))
            .collect();
        for (path, text) in &sources {
            if !of_tests.iter().any(|module| is_in_module(path, module)) {
                items.add_file(path, text)?;
            }
        }
        Ok(items)
    }

    /// Adds the items of a file. `path` is relative to the repository.
    pub fn add_file(&mut self, path: &str, text: &str) -> Result<()> {
        let parsed = syn::parse_file(text).with_context(|| path.to_owned())?;
        let crate_name = crate_of(path).map_or("", |(name, _)| name);
        let scope = Scope::new(crate_name, path);
        self.add_items(&scope, &parsed.items);
        Ok(())
    }

    fn add_items(&mut self, outer: &Scope, items: &[Item]) {
        let mut scope = outer.clone();
        for item in items {
            if let Item::Use(item) = item {
                let mut path = Vec::new();
                scope.import(|imports| flatten(&item.tree, &mut path, imports));
            }
        }
        for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
            self.add_item(&scope, item);
        }
    }

    fn add_item(&mut self, scope: &Scope, item: &Item) {
        match item {
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    self.add_items(scope, items);
                }
            }
            Item::Type(alias) => {
                let key = (scope.crate_name.clone(), alias.ident.to_string());
                self.add_words(&alias.ident, &alias.ty);
                let scope = scope.with_generics(&alias.generics);
                self.aliases.insert(key, (scope, (*alias.ty).clone()));
            }
            Item::Struct(item) => {
                self.define(scope, &item.ident.to_string());
                let scope = scope
                    .with_generics(&item.generics)
                    .owned_by(&item.ident.to_string());
                self.add_fields(&scope, &item.fields);
            }
            Item::Enum(item) => {
                self.define(scope, &item.ident.to_string());
                let scope = scope
                    .with_generics(&item.generics)
                    .owned_by(&item.ident.to_string());
                for variant in &item.variants {
                    self.add_fields(&scope, &variant.fields);
                }
            }
            Item::Const(item) => self.add_value(scope, &item.vis, &item.ident, (&item.ty, &item.expr)),
            Item::Static(item) => self.add_value(scope, &item.vis, &item.ident, (&item.ty, &item.expr)),
            Item::Fn(item) => self.add_function(scope, &item.sig, &item.block, false),
            Item::Impl(item) => self.add_impl(scope, item),
            Item::Trait(item) => {
                let scope = scope
                    .with_generics(&item.generics)
                    .owned_by(&item.ident.to_string());
                for item in &item.items {
                    if let syn::TraitItem::Fn(item) = item
                        && let Some(block) = &item.default
                    {
                        self.add_function(&scope, &item.sig, block, true);
                    }
                }
            }
            _ => {}
        }
    }

    fn define(&mut self, scope: &Scope, name: &str) {
        self.defined.insert((scope.crate_name.clone(), name.to_owned()));
    }

    fn add_fields(&mut self, scope: &Scope, fields: &Fields) {
        for (number, field) in fields.iter().enumerate() {
            let name = field
                .ident
                .as_ref()
                .map_or(number.to_string(), ToString::to_string);
            let of_name = self.fields.entry(name).or_default();
            of_name.push((scope.clone(), field.ty.clone()));
            if let Some(owner) = &scope.owner {
                self.add_words(owner, &field.ty);
            }
        }
    }

    fn add_words(&mut self, name: &impl ToString, of: &Type) {
        let words = self.types.entry(name.to_string()).or_default();
        words.extend(words_of(quote::quote!(#of)));
    }

    fn add_impl(&mut self, scope: &Scope, item: &syn::ItemImpl) {
        let owner = last_word(&item.self_ty).unwrap_or_default();
        let scope = scope.with_generics(&item.generics).owned_by(&owner);
        let of_trait = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let mut has_finalizer = false;
        for item in &item.items {
            match item {
                ImplItem::Fn(item) if !is_for_tests(&item.attrs) => {
                    self.add_function(&scope, &item.sig, &item.block, of_trait.is_some());
                }
                ImplItem::Const(item) => {
                    has_finalizer |= item.ident == "FINALIZER"
                        && !matches!(&item.expr, syn::Expr::Path(path) if path.path.is_ident("None"));
                    self.add_value(&scope, &item.vis, &item.ident, (&item.ty, &item.expr));
                }
                _ => {}
            }
        }
        if let Some(of_trait) = of_trait.filter(|of_trait| of_trait.ident == "Reconciler" && has_finalizer)
            && let Some(object) = type_arguments(of_trait).first()
        {
            self.reconciled.push(Reconciled {
                scope,
                object: (*object).clone(),
            });
        }
    }

    fn add_value(
        &mut self,
        scope: &Scope,
        visibility: &syn::Visibility,
        name: &syn::Ident,
        (of, value): (&Type, &syn::Expr),
    ) {
        let of_name = self.values.entry(name.to_string()).or_default();
        // Files without an own constant of the name see a public constant first.
        let position = match visibility {
            syn::Visibility::Inherited => of_name.len(),
            _ => 0,
        };
        of_name.insert(position, (scope.clone(), of.clone()));
        let body = syn::parse_quote!({ #value });
        let words = words_of(quote::quote!(#value));
        self.push(Function {
            scope: scope.clone(),
            name: name.to_string(),
            generics: Vec::new(),
            has_self: false,
            inputs: Vec::new(),
            output: None,
            body,
            words,
            is_of_trait: false,
        });
    }

    fn add_function(&mut self, scope: &Scope, sig: &syn::Signature, block: &syn::Block, is_of_trait: bool) {
        let inner = scope.with_generics(&sig.generics);
        let of_types = sig.generics.params.iter().filter_map(|param| match param {
            GenericParam::Type(param) => Some(param.ident.to_string()),
            _ => None,
        });
        let inputs = sig.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(input) => Some(((*input.pat).clone(), (*input.ty).clone())),
            FnArg::Receiver(_) => None,
        });
        for statement in &block.stmts {
            if let syn::Stmt::Item(item @ Item::Fn(_)) = statement {
                self.add_item(scope, item);
            }
        }
        let output = match &sig.output {
            syn::ReturnType::Type(_, output) => Some((**output).clone()),
            syn::ReturnType::Default => None,
        };
        self.push(Function {
            scope: inner,
            name: sig.ident.to_string(),
            generics: of_types.collect(),
            has_self: sig.receiver().is_some(),
            inputs: inputs.collect(),
            output,
            body: block.clone(),
            words: words_of(quote::quote!(#sig #block)),
            is_of_trait,
        });
    }

    fn push(&mut self, function: Function) {
        let of_name = self.by_name.entry(function.name.clone()).or_default();
        of_name.push(self.functions.len());
        self.functions.push(function);
    }

    /// The shape of a constant: of the file, of the crate, or of any crate.
    pub fn value(&self, from: &Scope, name: &str) -> Shape {
        let of_name = self.values.get(name).map_or(&[][..], Vec::as_slice);
        let of_file = of_name.iter().find(|(scope, _)| scope.file == from.file);
        let of_crate = || {
            of_name
                .iter()
                .find(|(scope, _)| scope.crate_name == from.crate_name)
        };
        match of_file.or_else(of_crate).or_else(|| of_name.first()) {
            Some((scope, of)) => self.shape(scope, of),
            None => Shape::Unknown,
        }
    }

    /// The shape of a field of this name. With several fields of the name, the field of the struct.
    pub fn field(&self, crate_name: &str, owner: Option<&str>, name: &str) -> Shape {
        let of_name = self.fields.get(name).map_or(&[][..], Vec::as_slice);
        let of_owner = of_name
            .iter()
            .filter(|(scope, _)| owner.is_some_and(|owner| scope.owner.as_deref() == Some(owner)));
        let in_crate = of_owner.clone().find(|(scope, _)| scope.crate_name == crate_name);
        if let Some((scope, found)) = in_crate.or_else(|| of_owner.clone().next()) {
            return self.shape(scope, found);
        }
        let mut shapes: Vec<Shape> = Vec::new();
        for (scope, found) in of_name.iter().filter(|(scope, _)| scope.crate_name == crate_name) {
            let shape = self.shape(scope, found);
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        match shapes.as_slice() {
            [only] => only.clone(),
            _ => Shape::Unknown,
        }
    }
}

/// Whether the file belongs to a process or to a library of processes.
pub fn is_shipped(path: &str) -> bool {
    let is_test = |part: &str| part == "tests" || part == "examples" || part.ends_with("_tests");
    path.starts_with("crates/")
        && path.contains("/src/")
        && !path.starts_with("crates/dev/")
        && !path.trim_end_matches(".rs").split('/').any(is_test)
}

/// The modules in separate files that only tests have, as paths without `.rs`.
pub fn modules_of_tests(path: &str, text: &str) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = match file {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        file => format!("{folder}/{}", file.trim_end_matches(".rs")),
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pairs = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
    let names = pairs.filter_map(|pair| pair[1].trim_start_matches("pub ").strip_prefix("mod "));
    names
        .filter_map(|name| Some(format!("{folder}/{}", name.strip_suffix(';')?)))
        .collect()
}

fn is_in_module(path: &str, module: &str) -> bool {
    path.strip_prefix(module)
        .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// All words of a piece of code.
fn words_of(code: proc_macro2::TokenStream) -> BTreeSet<String> {
    let (mut words, mut streams) = (BTreeSet::new(), vec![code]);
    while let Some(stream) = streams.pop() {
        for token in stream {
            match token {
                proc_macro2::TokenTree::Ident(word) => {
                    words.insert(word.to_string());
                }
                proc_macro2::TokenTree::Group(group) => streams.push(group.stream()),
                _ => {}
            }
        }
    }
    words
}

fn last_word(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        Type::Reference(reference) => last_word(&reference.elem),
        _ => None,
    }
}

fn flatten(tree: &UseTree, path: &mut Vec<String>, imports: &mut BTreeMap<String, Vec<String>>) {
    let mut add = |name: String, last: String| {
        let mut full: Vec<String> = path.iter().cloned().chain([last]).collect();
        if full.last().is_some_and(|last| last == "self") {
            full.pop();
        }
        let name = if name == "self" {
            full.last().cloned()
        } else {
            Some(name)
        };
        if let Some(name) = name {
            imports.insert(name, full);
        }
    };
    match tree {
        UseTree::Name(name) => add(name.ident.to_string(), name.ident.to_string()),
        UseTree::Rename(rename) => add(rename.rename.to_string(), rename.ident.to_string()),
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            flatten(&step.tree, path, imports);
            path.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, path, imports);
            }
        }
        UseTree::Glob(_) => {}
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute
                    .meta
                    .require_list()
                    .is_ok_and(|list| list.tokens.to_string() == "test"))
    })
}
