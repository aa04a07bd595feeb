//! Calls and paths in the sources: the called function, the client of a new `Api`, and wrapped values.

use syn::{Expr, Type};

use super::{
    items::Function,
    shapes::{Cluster, Shape, type_arguments},
    vocabulary::{MAKING, MAKING_FUNCTIONS, WRAPPING},
};

/// A called function, as the call names the function.
pub struct Callee<'a> {
    pub name: &'a str,
    /// The type or module before the name, or the type of the receiver.
    pub owner: Option<String>,
    pub turbofish: Option<&'a syn::AngleBracketedGenericArguments>,
    pub is_method: bool,
}

pub fn owner_of(receiver: &Shape) -> Option<String> {
    match receiver {
        Shape::Named(owner) => Some(owner.clone()),
        _ => None,
    }
}

/// The word before the last word of a path. `Self` is the type of the function.
pub fn qualifier(path: &syn::Path, function: &Function) -> Option<String> {
    let full = function.scope.full(path);
    let before = full.len().checked_sub(2).and_then(|index| full.get(index))?;
    if before == "Self" {
        function.scope.owner.clone()
    } else {
        Some(before.clone())
    }
}

/// The generic parameter in a parameter of type `impl Fn(&K) -> …`.
pub fn generic_of_closure(of: &Type, function: &Function) -> Option<String> {
    let Type::ImplTrait(bounds) = of else { return None };
    for bound in &bounds.bounds {
        if let syn::TypeParamBound::Trait(bound) = bound
            && let Some(last) = bound.path.segments.last()
            && let syn::PathArguments::Parenthesized(inputs) = &last.arguments
        {
            for input in &inputs.inputs {
                let inner: &Type = match input {
                    Type::Reference(inner) => &inner.elem,
                    other => other,
                };
                if let Type::Path(path) = inner
                    && let Some(name) = path.path.get_ident().map(ToString::to_string)
                    && function.scope.generics.contains(&name)
                {
                    return Some(name);
                }
            }
        }
    }
    None
}

/// The cluster of an `Api` that this call makes.
pub fn makes_api_by_method(call: &syn::ExprMethodCall, receiver: &Shape) -> Option<Cluster> {
    let name = call.method.to_string();
    if !MAKING.contains(&name.as_str()) {
        return None;
    }
    match receiver {
        Shape::Client(cluster) => Some(*cluster),
        _ if name == "namespaced" && call.args.len() == 1 => Some(Cluster::Unknown),
        _ if name == "cluster_wide" && call.args.is_empty() => Some(Cluster::Unknown),
        _ => None,
    }
}

/// The client of `Api::namespaced(client, …)` and similar calls.
pub fn makes_api_by_function(call: &syn::ExprCall) -> Option<&Expr> {
    let Expr::Path(path) = &*call.func else {
        return None;
    };
    let segments = &path.path.segments;
    let (last, before) = (segments.last()?, segments.iter().rev().nth(1)?);
    let is_making = before.ident == "Api" && MAKING_FUNCTIONS.contains(&last.ident.to_string().as_str());
    is_making.then(|| call.args.first()).flatten()
}

/// `K` of `Api::<K>::all`.
pub fn api_argument(path: &syn::Path) -> Option<&Type> {
    let before = path.segments.iter().rev().nth(1)?;
    type_arguments(before).first().copied()
}

pub fn is_wrapping(path: &syn::Path) -> bool {
    let words: Vec<String> = path.segments.iter().map(|word| word.ident.to_string()).collect();
    let full = words.join("::");
    WRAPPING
        .iter()
        .any(|name| full == *name || full.ends_with(&format!("::{name}")))
}

/// Fields and variables with a client have the name of the cluster.
pub fn cluster_of_name(name: &str) -> Shape {
    match name {
        "garden" => Shape::Client(Cluster::Garden),
        "seed" | "control" => Shape::Client(Cluster::Seed),
        "shoot" | "target" => Shape::Client(Cluster::Shoot),
        _ => Shape::Unknown,
    }
}

/// The expression with the value of a block.
pub fn tail(block: &syn::Block) -> Option<&Expr> {
    match block.stmts.last()? {
        syn::Stmt::Expr(expr, None) => Some(expr),
        _ => None,
    }
}
