//! The functions that a call may mean, and the kinds of the generic parameters in a call.

use std::collections::HashMap;

use syn::{Expr, Pat};

use super::{
    evaluate::Names,
    items::Function,
    paths::{Callee, generic_of_closure},
    shapes::{KindOf, Shape},
};

impl Names<'_> {
    /// The functions that a call may mean: those with the number of arguments, in the nearest place.
    /// A function that takes no `Api` in the place of an `Api` is not meant; `shapes` are the shapes of the
    /// arguments, if known.
    pub fn candidates(&self, callee: &Callee<'_>, arguments: &[&Expr], shapes: &[Shape]) -> Vec<usize> {
        let scope = &self.function.scope;
        let mut best = (0, Vec::new());
        for &index in self.items.by_name.get(callee.name).into_iter().flatten() {
            let function = &self.items.functions[index];
            let takes = function.inputs.len() + usize::from(function.has_self && !callee.is_method);
            if takes != arguments.len() || (callee.is_method && !function.has_self) {
                continue;
            }
            let skipped = arguments.len() - function.inputs.len();
            let takes_apis = shapes
                .iter()
                .skip(skipped)
                .zip(&function.inputs)
                .all(|(shape, (_, of))| {
                    !matches!(shape, Shape::Api(..))
                        || matches!(
                            self.items.shape(&function.scope, of),
                            Shape::Api(..) | Shape::Object(KindOf::Generic(_)) | Shape::Unknown
                        )
                });
            if !takes_apis {
                continue;
            }
            let of_owner = callee.owner.is_some() && callee.owner == function.scope.owner;
            let of_module = callee.owner.as_deref().is_some_and(|owner| {
                let path = function
                    .scope
                    .file
                    .trim_end_matches(".rs")
                    .trim_end_matches("/mod");
                path.rsplit('/').next() == Some(owner)
            });
            let is_near = function.scope.crate_name == scope.crate_name;
            let rank = if of_owner {
                5 + u8::from(is_near)
            } else if of_module {
                4
            } else if callee.owner.is_some() && !function.is_of_trait {
                continue;
            } else if function.scope.file == scope.file {
                3
            } else {
                1 + u8::from(is_near)
            };
            if rank > best.0 {
                best = (rank, Vec::new());
            }
            if rank == best.0 {
                best.1.push(index);
            }
        }
        best.1
    }

    /// The kinds of the generic parameters of a called function.
    pub fn bindings(
        &self,
        function: &Function,
        callee: &Callee<'_>,
        arguments: &[&Expr],
        expected: &Shape,
    ) -> HashMap<String, KindOf> {
        let mut kinds = HashMap::new();
        let mut set = |name: &String, kind: KindOf| {
            if kind != KindOf::Unknown {
                kinds.entry(name.clone()).or_insert(kind);
            }
        };
        let given = callee.turbofish.into_iter().flat_map(|turbofish| &turbofish.args);
        for (name, argument) in function.generics.iter().zip(given) {
            if let syn::GenericArgument::Type(argument) = argument {
                set(name, self.items.kind(&self.function.scope, argument));
            }
        }
        let skipped = arguments.len() - function.inputs.len().min(arguments.len());
        for ((_, of), argument) in function.inputs.iter().zip(&arguments[skipped..]) {
            match self.items.shape(&function.scope, of) {
                Shape::Api(KindOf::Generic(name), _) | Shape::Object(KindOf::Generic(name)) => {
                    match self.shape_of(argument, &Shape::Unknown) {
                        Shape::Api(kind, _) | Shape::Object(kind) => set(&name, kind),
                        _ => {}
                    }
                }
                _ => {}
            }
            if let (Some(name), kind) = (generic_of_closure(of, function), self.kind_of_closure(argument)) {
                set(&name, kind);
            }
        }
        if let (Some(output), Shape::Api(kind, _) | Shape::Object(kind)) = (&function.output, expected)
            && let Shape::Api(KindOf::Generic(name), _) | Shape::Object(KindOf::Generic(name)) =
                self.items.shape(&function.scope, output)
        {
            set(&name, kind.clone());
        }
        kinds
    }

    /// The kind of the first typed parameter of a closure, or of a function that is passed by name.
    fn kind_of_closure(&self, argument: &Expr) -> KindOf {
        let shape = match argument {
            Expr::Closure(closure) => closure.inputs.iter().find_map(|input| match input {
                Pat::Type(typed) => Some(self.items.shape(&self.function.scope, &typed.ty)),
                _ => None,
            }),
            Expr::Path(path) => path.path.segments.last().and_then(|last| {
                let named = self.items.by_name.get(&last.ident.to_string())?;
                let scope = &self.function.scope;
                let mut here = named.iter().map(|index| &self.items.functions[*index]);
                let found = here.find(|found| found.scope.crate_name == scope.crate_name)?;
                Some(self.items.shape(&found.scope, &found.inputs.first()?.1))
            }),
            _ => None,
        };
        match shape {
            Some(Shape::Object(kind)) if !matches!(kind, KindOf::Generic(_)) => kind,
            _ => KindOf::Unknown,
        }
    }
}
