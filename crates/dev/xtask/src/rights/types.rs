//! The shapes of the values of a type.

use syn::Type;

use super::{
    items::Items,
    shapes::{Cluster, KindOf, Scope, Shape, type_arguments},
};

const WRAPPERS: &[&str] = &[
    "Option",
    "Result",
    "Arc",
    "Rc",
    "Box",
    "Vec",
    "VecDeque",
    "BTreeSet",
    "HashSet",
    "Store",
    "SharedWatch",
    "Pin",
    "MutexGuard",
    "Cow",
    "BoxStream",
    "BoxFuture",
    "ObjectList",
    "Feed",
    "Cache",
];
const MAPS: &[&str] = &["BTreeMap", "HashMap"];
const DYNAMIC: &[&str] = &["DynamicObject", "ReducedObject"];

impl Items {
    /// The shape of values of a type.
    pub fn shape(&self, scope: &Scope, of: &Type) -> Shape {
        match of {
            Type::Reference(inner) => self.shape(scope, &inner.elem),
            Type::Paren(inner) => self.shape(scope, &inner.elem),
            Type::Group(inner) => self.shape(scope, &inner.elem),
            Type::Slice(inner) => self.shape(scope, &inner.elem),
            Type::Array(inner) => self.shape(scope, &inner.elem),
            // A cache and a stream of changes: the cache has the kind.
            Type::Tuple(inner) if !inner.elems.is_empty() => self.shape(scope, &inner.elems[0]),
            Type::ImplTrait(bounds) => self.shape_of_bounds(scope, &bounds.bounds),
            Type::TraitObject(bounds) => self.shape_of_bounds(scope, &bounds.bounds),
            Type::Path(path) => self.shape_of_path(scope, &path.path),
            _ => Shape::Unknown,
        }
    }

    fn shape_of_bounds<'b>(
        &self,
        scope: &Scope,
        bounds: impl IntoIterator<Item = &'b syn::TypeParamBound>,
    ) -> Shape {
        for bound in bounds {
            let syn::TypeParamBound::Trait(bound) = bound else {
                continue;
            };
            let Some(last) = bound.path.segments.last() else {
                continue;
            };
            if last.ident == "Cluster" {
                return Shape::Client(Cluster::Unknown);
            }
            if let syn::PathArguments::Parenthesized(function) = &last.arguments
                && let syn::ReturnType::Type(_, output) = &function.output
            {
                return self.shape(scope, output);
            }
            if let syn::PathArguments::AngleBracketed(arguments) = &last.arguments {
                for argument in &arguments.args {
                    if let syn::GenericArgument::AssocType(item) = argument {
                        return self.shape(scope, &item.ty);
                    }
                }
            }
        }
        Shape::Unknown
    }

    pub fn shape_of_path(&self, scope: &Scope, path: &syn::Path) -> Shape {
        let Some(last) = path.segments.last() else {
            return Shape::Unknown;
        };
        let (name, arguments) = (last.ident.to_string(), type_arguments(last));
        if path.segments.len() == 1 {
            if scope.clusters.contains(&name) {
                return Shape::Client(Cluster::Unknown);
            }
            if scope.generics.contains(&name) {
                return Shape::Object(KindOf::Generic(name));
            }
            if name == "Self"
                && let Some(owner) = &scope.owner
            {
                return Shape::Named(owner.clone());
            }
        }
        let full = scope.full(path);
        let is = |names: &[&str]| names.contains(&name.as_str());
        if name == "Api" {
            let kind = arguments
                .first()
                .map_or(KindOf::Unknown, |kind| self.kind(scope, kind));
            return Shape::Api(kind, Cluster::Unknown);
        }
        if name == "PartialObjectMeta" {
            let kind = arguments
                .first()
                .map_or(KindOf::Unknown, |kind| self.kind(scope, kind));
            return Shape::Object(kind);
        }
        if is(DYNAMIC) {
            return Shape::Object(KindOf::Dynamic);
        }
        if is(WRAPPERS)
            && let Some(inner) = arguments.first()
        {
            return self.shape(scope, inner);
        }
        if is(MAPS)
            && let Some(inner) = arguments.get(1)
        {
            return self.shape(scope, inner);
        }
        self.shape_of_name(scope, &full)
    }

    fn shape_of_name(&self, scope: &Scope, full: &[String]) -> Shape {
        let Some(name) = full.last() else {
            return Shape::Unknown;
        };
        if full.iter().any(|word| word == "client" || word == "clusters") {
            let cluster = match name.as_str() {
                "Garden" => Some(Cluster::Garden),
                "Seed" => Some(Cluster::Seed),
                "Shoot" => Some(Cluster::Shoot),
                _ => None,
            };
            if let Some(cluster) = cluster {
                return Shape::Client(cluster);
            }
        }
        let first = full.first().map_or("", String::as_str);
        let is_local = full.len() == 1 || matches!(first, "crate" | "super" | "self");
        let key = (scope.crate_name.clone(), name.clone());
        if is_local && let Some((scope, found)) = self.aliases.get(&key) {
            return self.shape(scope, found);
        }
        if first == "kube" && name == "Client" {
            return Shape::Client(Cluster::Unknown);
        }
        let is_foreign = matches!(first, "kube" | "std" | "tokio" | "futures" | "http");
        if is_foreign || (is_local && self.defined.contains(&key)) {
            return Shape::Named(name.clone());
        }
        match self.kinds.find(full) {
            Some(kind) => Shape::Object(KindOf::Known(kind.clone())),
            None => Shape::Named(name.clone()),
        }
    }

    pub fn kind(&self, scope: &Scope, of: &Type) -> KindOf {
        match self.shape(scope, of) {
            Shape::Object(kind) => kind,
            _ => KindOf::Unknown,
        }
    }
}
