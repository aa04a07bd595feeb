//! The shape of an expression, as far as the shape is visible without a compiler.

use std::collections::HashMap;

use syn::{Expr, Pat, Type};

use super::{
    items::{Function, Items},
    paths::{
        Callee, api_argument, cluster_of_name, is_wrapping, makes_api_by_function, makes_api_by_method,
        owner_of, qualifier, tail,
    },
    shapes::{Cluster, KindOf, Shape},
    vocabulary::SAME,
};

/// How deep calls are followed for the cluster of a result.
const DEEPEST: usize = 4;

/// The names and shapes in a function.
pub struct Names<'a> {
    pub items: &'a Items,
    pub function: &'a Function,
    pub shapes: HashMap<String, Shape>,
    depth: usize,
}

impl<'a> Names<'a> {
    pub fn new(items: &'a Items, function: &'a Function) -> Self {
        Self::at_depth(items, function, 0)
    }

    fn at_depth(items: &'a Items, function: &'a Function, depth: usize) -> Self {
        let mut names = Self {
            items,
            function,
            shapes: HashMap::new(),
            depth,
        };
        if let (true, Some(owner)) = (function.has_self, &function.scope.owner) {
            names
                .shapes
                .insert("self".to_owned(), Shape::Named(owner.clone()));
        }
        for (number, (pattern, of)) in function.inputs.iter().enumerate() {
            let shape = match items.shape(&function.scope, of) {
                Shape::Api(kind, Cluster::Unknown) => Shape::Api(kind, Cluster::Argument(number)),
                Shape::Client(Cluster::Unknown) => Shape::Client(Cluster::Argument(number)),
                other => other,
            };
            names.bind(pattern, &shape);
        }
        names
    }

    /// Gives the names of a pattern the shape of the matched value.
    pub fn bind(&mut self, pattern: &Pat, shape: &Shape) {
        match pattern {
            Pat::Ident(name) => {
                self.shapes.insert(name.ident.to_string(), shape.clone());
            }
            Pat::Reference(inner) => self.bind(&inner.pat, shape),
            Pat::Paren(inner) => self.bind(&inner.pat, shape),
            Pat::Type(typed) => {
                let shape = self.items.shape(&self.function.scope, &typed.ty);
                self.bind(&typed.pat, &shape);
            }
            Pat::TupleStruct(inner) if inner.elems.len() == 1 => self.bind(&inner.elems[0], shape),
            Pat::Tuple(inner) => {
                for element in &inner.elems {
                    let shape = self.of_field_with_name(element);
                    self.bind(element, &shape);
                }
            }
            _ => {}
        }
    }

    /// A local name that becomes a field of the same name has the shape of the field.
    fn of_field_with_name(&self, pattern: &Pat) -> Shape {
        match pattern {
            Pat::Ident(name) => self.field(&name.ident.to_string()),
            _ => Shape::Unknown,
        }
    }

    pub fn field(&self, name: &str) -> Shape {
        let scope = &self.function.scope;
        self.items.field(&scope.crate_name, scope.owner.as_deref(), name)
    }

    /// The shape of an expression. `expected` is the shape that the place of the expression requires.
    pub fn shape_of(&self, expr: &Expr, expected: &Shape) -> Shape {
        let inner = |expr: &Expr| self.shape_of(expr, expected);
        match expr {
            Expr::Reference(expr) => inner(&expr.expr),
            Expr::Paren(expr) => inner(&expr.expr),
            Expr::Group(expr) => inner(&expr.expr),
            Expr::Try(expr) => inner(&expr.expr),
            Expr::Await(expr) => inner(&expr.base),
            Expr::Unary(expr) => inner(&expr.expr),
            Expr::Index(expr) => inner(&expr.expr),
            Expr::Async(expr) => tail(&expr.block).map_or(Shape::Unknown, inner),
            Expr::Block(expr) => tail(&expr.block).map_or(Shape::Unknown, inner),
            Expr::If(expr) => tail(&expr.then_branch).map_or(Shape::Unknown, inner),
            Expr::Match(expr) => {
                let mut arms = expr.arms.iter().map(|arm| inner(&arm.body));
                arms.find(|shape| *shape != Shape::Unknown)
                    .unwrap_or(Shape::Unknown)
            }
            Expr::Struct(expr) => self.items.shape_of_path(&self.function.scope, &expr.path),
            Expr::Path(path) => self.of_path(&path.path),
            Expr::Field(field) => self.of_field(field),
            Expr::MethodCall(call) => self.of_method(call, expected),
            Expr::Call(call) => self.of_call(call, expected),
            _ => Shape::Unknown,
        }
    }

    fn of_path(&self, path: &syn::Path) -> Shape {
        let Some(name) = path.segments.last().map(|last| last.ident.to_string()) else {
            return Shape::Unknown;
        };
        if path.segments.len() > 1
            || name
                .chars()
                .all(|letter| letter.is_ascii_uppercase() || letter == '_')
        {
            return self.items.value(&self.function.scope, &name);
        }
        match self.shapes.get(&name) {
            Some(Shape::Unknown) | None => cluster_of_name(&name),
            Some(shape) => shape.clone(),
        }
    }

    fn of_field(&self, field: &syn::ExprField) -> Shape {
        let name = match &field.member {
            syn::Member::Named(name) => name.to_string(),
            syn::Member::Unnamed(number) => number.index.to_string(),
        };
        let owner = match self.shape_of(&field.base, &Shape::Unknown) {
            Shape::Named(owner) => Some(owner),
            _ => None,
        };
        let scope = &self.function.scope;
        match self.items.field(&scope.crate_name, owner.as_deref(), &name) {
            Shape::Unknown => cluster_of_name(&name),
            Shape::Client(Cluster::Unknown) => match cluster_of_name(&name) {
                Shape::Unknown => Shape::Client(Cluster::Unknown),
                known => known,
            },
            shape => shape,
        }
    }

    fn of_method(&self, call: &syn::ExprMethodCall, expected: &Shape) -> Shape {
        let name = call.method.to_string();
        let receiver = self.shape_of(&call.receiver, &Shape::Unknown);
        if let Some(cluster) = makes_api_by_method(call, &receiver) {
            return Shape::Api(self.kind_of_turbofish(call.turbofish.as_ref(), expected), cluster);
        }
        if SAME.contains(&name.as_str()) && !(name == "client" && matches!(receiver, Shape::Named(_))) {
            return self.shape_of(&call.receiver, expected);
        }
        if let Shape::Api(kind, cluster) = receiver {
            return if name == "into_client" {
                Shape::Client(cluster)
            } else {
                Shape::Object(kind)
            };
        }
        let arguments: Vec<&Expr> = call.args.iter().collect();
        let callee = Callee {
            name: &name,
            owner: owner_of(&receiver),
            turbofish: call.turbofish.as_ref(),
            is_method: true,
        };
        self.of_result(&callee, &arguments, expected)
    }

    fn kind_of_turbofish(
        &self,
        turbofish: Option<&syn::AngleBracketedGenericArguments>,
        expected: &Shape,
    ) -> KindOf {
        let argument = turbofish.and_then(|turbofish| turbofish.args.first());
        if let Some(syn::GenericArgument::Type(argument)) = argument
            && !matches!(argument, Type::Infer(_))
        {
            return self.items.kind(&self.function.scope, argument);
        }
        match expected {
            Shape::Api(kind, _) => kind.clone(),
            _ => KindOf::Unknown,
        }
    }

    fn of_call(&self, call: &syn::ExprCall, expected: &Shape) -> Shape {
        let Expr::Path(path) = &*call.func else {
            return Shape::Unknown;
        };
        let arguments: Vec<&Expr> = call.args.iter().collect();
        if let Some(client) = makes_api_by_function(call) {
            let cluster = match self.shape_of(client, &Shape::Unknown) {
                Shape::Client(cluster) => cluster,
                _ => Cluster::Unknown,
            };
            let kind = api_argument(&path.path).map_or_else(
                || match expected {
                    Shape::Api(kind, _) => kind.clone(),
                    _ => KindOf::Unknown,
                },
                |kind| self.items.kind(&self.function.scope, kind),
            );
            return Shape::Api(kind, cluster);
        }
        if is_wrapping(&path.path)
            && let Some(first) = arguments.first()
        {
            return self.shape_of(first, expected);
        }
        let segments = &path.path.segments;
        let Some(last) = segments.last() else {
            return Shape::Unknown;
        };
        let name = last.ident.to_string();
        let turbofish = match &last.arguments {
            syn::PathArguments::AngleBracketed(turbofish) => Some(turbofish),
            _ => None,
        };
        let callee = Callee {
            name: &name,
            owner: qualifier(&path.path, self.function),
            turbofish,
            is_method: false,
        };
        self.of_result(&callee, &arguments, expected)
    }

    /// The shape of the result of a function of the workspace.
    fn of_result(&self, callee: &Callee<'_>, arguments: &[&Expr], expected: &Shape) -> Shape {
        let mut shapes: Vec<Shape> = Vec::new();
        for index in self.candidates(callee, arguments, &[]) {
            let function = &self.items.functions[index];
            let Some(output) = &function.output else { continue };
            let shape = match self.items.shape(&function.scope, output) {
                Shape::Object(KindOf::Generic(name)) => {
                    let kinds = self.bindings(function, callee, arguments, expected);
                    Shape::Object(kinds.get(&name).cloned().unwrap_or(KindOf::Unknown))
                }
                Shape::Api(kind, Cluster::Unknown) => {
                    Shape::Api(kind, self.cluster_of_result(function, arguments))
                }
                Shape::Client(Cluster::Unknown) => {
                    let known = cluster_of_name(callee.name.trim_end_matches("_client"));
                    if known == Shape::Unknown {
                        Shape::Client(Cluster::Unknown)
                    } else {
                        known
                    }
                }
                other => other,
            };
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        match shapes.as_slice() {
            [only] => only.clone(),
            _ => Shape::Unknown,
        }
    }

    fn cluster_of_result(&self, function: &'a Function, arguments: &[&Expr]) -> Cluster {
        if self.depth == DEEPEST {
            return Cluster::Unknown;
        }
        let inside = Names::at_depth(self.items, function, self.depth + 1);
        let Some(tail) = tail(&function.body) else {
            return Cluster::Unknown;
        };
        match inside.shape_of(tail, &Shape::Unknown) {
            Shape::Api(_, Cluster::Argument(number)) => {
                let argument = arguments
                    .get(number)
                    .map(|argument| self.shape_of(argument, &Shape::Unknown));
                match argument {
                    Some(Shape::Client(cluster) | Shape::Api(_, cluster)) => cluster,
                    _ => Cluster::Unknown,
                }
            }
            Shape::Api(_, cluster) => cluster,
            _ => Cluster::Unknown,
        }
    }
}
