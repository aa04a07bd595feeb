//! The shapes of values that matter for requests: an `Api`, an object of a kind, and the client of a cluster.
//!
//! A wrapper such as `Option`, `Result`, `Vec`, `Arc` or a reference has the shape of the wrapped value.

use std::{collections::BTreeMap, rc::Rc};

use syn::{GenericParam, Generics, Type};

use super::kinds::Kind;

/// The kind of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KindOf {
    Known(Kind),
    /// A generic parameter of the function, or of the type of a method.
    Generic(String),
    /// A type for objects of any kind, such as `DynamicObject`.
    Dynamic,
    Unknown,
}

/// The cluster of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cluster {
    Garden,
    Seed,
    Shoot,
    /// The cluster of an argument, by the number of the argument.
    Argument(usize),
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Api(KindOf, Cluster),
    Object(KindOf),
    Client(Cluster),
    Named(String),
    Unknown,
}

/// The place of a piece of code: file, imports, generic parameters and the type of `Self`.
#[derive(Clone)]
pub struct Scope {
    pub crate_name: String,
    pub file: String,
    imports: Rc<BTreeMap<String, Vec<String>>>,
    pub generics: Vec<String>,
    pub clusters: Vec<String>,
    pub owner: Option<String>,
}

impl Scope {
    pub fn new(crate_name: &str, file: &str) -> Self {
        Self {
            crate_name: crate_name.to_owned(),
            file: file.to_owned(),
            imports: Rc::default(),
            generics: Vec::new(),
            clusters: Vec::new(),
            owner: None,
        }
    }

    pub fn import(&mut self, add: impl FnOnce(&mut BTreeMap<String, Vec<String>>)) {
        add(Rc::make_mut(&mut self.imports));
    }

    pub fn with_generics(&self, generics: &Generics) -> Self {
        let (clusters, others) = parameters(generics);
        let mut scope = self.clone();
        scope.clusters.extend(clusters);
        scope.generics.extend(others);
        scope
    }

    pub fn owned_by(&self, owner: &str) -> Self {
        let mut scope = self.clone();
        scope.owner = Some(owner.to_owned());
        scope
    }

    /// The path with the import of the first word.
    pub fn full(&self, path: &syn::Path) -> Vec<String> {
        let words: Vec<String> = path.segments.iter().map(|word| word.ident.to_string()).collect();
        match words
            .split_first()
            .and_then(|(first, rest)| Some((self.imports.get(first)?, rest)))
        {
            Some((import, rest)) => import.iter().chain(rest).cloned().collect(),
            None => words,
        }
    }
}

/// The type arguments of the last segment of a path.
pub fn type_arguments(segment: &syn::PathSegment) -> Vec<&Type> {
    match &segment.arguments {
        syn::PathArguments::AngleBracketed(arguments) => arguments
            .args
            .iter()
            .filter_map(|argument| match argument {
                syn::GenericArgument::Type(argument) => Some(argument),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The names of the generic parameters that stand for a cluster, and of all remaining parameters.
fn parameters(generics: &Generics) -> (Vec<String>, Vec<String>) {
    let (mut clusters, mut others) = (Vec::new(), Vec::new());
    for param in &generics.params {
        if let GenericParam::Type(param) = param {
            let is_cluster = param.bounds.iter().any(|bound| {
                matches!(bound, syn::TypeParamBound::Trait(bound)
                    if bound.path.segments.last().is_some_and(|last| last.ident == "Cluster"))
            });
            let names = if is_cluster { &mut clusters } else { &mut others };
            names.push(param.ident.to_string());
        }
    }
    (clusters, others)
}
