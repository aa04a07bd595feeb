//! The requests of a function.

use std::collections::BTreeSet;

use syn::{
    Expr, Pat, Token,
    parse::Parser as _,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use super::{
    evaluate::Names,
    items::{Function, Items},
    kinds::Kind,
    paths::{Callee, is_wrapping, makes_api_by_function, owner_of, qualifier, tail},
    shapes::{Cluster, KindOf, Shape},
    vocabulary::{LISTING, METHODS, WATCHING},
};

/// A request to an API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    pub kind: KindOf,
    /// With a slash; empty for the resource.
    pub subresource: &'static str,
    pub verb: &'static str,
    pub cluster: Cluster,
}

pub struct Walk<'a> {
    names: Names<'a>,
    summaries: &'a [BTreeSet<Request>],
    found: BTreeSet<Request>,
    expected: Shape,
    /// The value of the function, and the shape that the signature requires.
    tail: Option<(*const Expr, Shape)>,
}

impl<'a> Walk<'a> {
    /// The requests of a function. `summaries`: the known requests of all functions.
    pub fn read(
        items: &'a Items,
        function: &'a Function,
        summaries: &'a [BTreeSet<Request>],
    ) -> BTreeSet<Request> {
        let mut walk = Self {
            names: Names::new(items, function),
            summaries,
            found: BTreeSet::new(),
            expected: Shape::Unknown,
            tail: None,
        };
        let output = function.output.as_ref();
        let output = output.map_or(Shape::Unknown, |output| items.shape(&function.scope, output));
        walk.tail = tail(&function.body).map(|tail| (std::ptr::from_ref(tail), output));
        walk.visit_block(&function.body);
        walk.found
    }

    fn shape_of(&self, expr: &Expr) -> Shape {
        self.names.shape_of(expr, &Shape::Unknown)
    }

    fn emit(&mut self, kind: &KindOf, cluster: Cluster, subresource: &'static str, verb: &'static str) {
        if *kind == KindOf::Unknown {
            return;
        }
        self.found.insert(Request {
            kind: kind.clone(),
            subresource,
            verb,
            cluster,
        });
    }

    fn method_of_api(&mut self, call: &syn::ExprMethodCall, kind: &KindOf, cluster: Cluster) {
        let name = call.method.to_string();
        let Some((_, subresource, verb)) = METHODS.iter().find(|(method, ..)| *method == name) else {
            return;
        };
        self.emit(kind, cluster, subresource, verb);
        let arguments = &call.args;
        let is_apply = quote::quote!(#arguments).to_string().contains("Patch :: Apply");
        if is_apply && name == "patch" {
            self.emit(kind, cluster, "", "create");
        }
    }

    /// A call of a function that may get an `Api`, or that sends requests for a generic parameter.
    fn call(&mut self, callee: &Callee<'_>, arguments: &[&Expr]) {
        let shapes: Vec<Shape> = arguments.iter().map(|argument| self.shape_of(argument)).collect();
        let full = match &callee.owner {
            Some(owner) if !callee.is_method => format!("{owner}::{}", callee.name),
            _ => callee.name.to_owned(),
        };
        let is_listing = LISTING.contains(&callee.name);
        if is_listing || WATCHING.contains(&full.as_str()) || WATCHING.contains(&callee.name) {
            for shape in &shapes {
                if let Shape::Api(kind, cluster) = shape {
                    let kind = self.kind_from_closure(kind, arguments);
                    self.emit(&kind, *cluster, "", "list");
                    if !is_listing {
                        self.emit(&kind, *cluster, "", "watch");
                    }
                }
            }
            return;
        }
        if full == "Events::new" || full == "Recorder::new" {
            let cluster = match shapes.first() {
                Some(Shape::Client(cluster)) => *cluster,
                _ => Cluster::Unknown,
            };
            let events = KindOf::Known(Kind {
                group: "events.k8s.io".to_owned(),
                plural: "events".to_owned(),
            });
            self.emit(&events, cluster, "", "create");
            self.emit(&events, cluster, "", "patch");
            return;
        }
        for index in self.names.candidates(callee, arguments, &shapes) {
            self.call_of(index, callee, arguments, &shapes);
        }
    }

    fn kind_from_closure(&self, kind: &KindOf, arguments: &[&Expr]) -> KindOf {
        if *kind != KindOf::Unknown {
            return kind.clone();
        }
        for argument in arguments {
            if let Expr::Closure(closure) = argument
                && let Some(Pat::Type(typed)) = closure.inputs.first()
                && let Shape::Object(kind) = self.names.items.shape(&self.names.function.scope, &typed.ty)
            {
                return kind;
            }
        }
        match &self.expected {
            Shape::Object(kind) | Shape::Api(kind, _) => kind.clone(),
            _ => KindOf::Unknown,
        }
    }

    /// The requests of a called function, with the kinds and clusters of this call.
    fn call_of(&mut self, index: usize, callee: &Callee<'_>, arguments: &[&Expr], shapes: &[Shape]) {
        let function = &self.names.items.functions[index];
        let summary = &self.summaries[index];
        if !summary.iter().any(is_open) {
            return;
        }
        let kinds = self.names.bindings(function, callee, arguments, &self.expected);
        let skipped = arguments.len() - function.inputs.len().min(arguments.len());
        for request in summary.iter().filter(|request| is_open(request)) {
            let kind = match &request.kind {
                KindOf::Generic(name) => match kinds.get(name) {
                    Some(kind) => kind.clone(),
                    // A parameter of the type: a different call binds this parameter.
                    None if !function.generics.contains(name) && function.has_self => continue,
                    None => KindOf::Unknown,
                },
                known => known.clone(),
            };
            let cluster = match request.cluster {
                Cluster::Argument(number) => match shapes.get(number + skipped) {
                    Some(Shape::Api(_, cluster) | Shape::Client(cluster)) => *cluster,
                    // A different function of the same name.
                    _ => continue,
                },
                known => known,
            };
            if kind != KindOf::Unknown {
                self.found.insert(Request {
                    kind,
                    cluster,
                    ..request.clone()
                });
            }
        }
    }

    /// A macro with expressions, such as `select!` and `join!`. Parts that are no expressions are skipped.
    fn tokens(&mut self, tokens: proc_macro2::TokenStream) {
        let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
        if let Ok(list) = parser.parse2(tokens.clone()) {
            list.iter().for_each(|expr| self.visit_expr(expr));
            return;
        }
        let mut part = proc_macro2::TokenStream::new();
        let mut parts = Vec::new();
        for token in tokens {
            match &token {
                proc_macro2::TokenTree::Punct(sign) if matches!(sign.as_char(), ',' | ';' | '=' | '>') => {
                    parts.push(std::mem::take(&mut part));
                }
                _ => part.extend([token]),
            }
        }
        parts.push(part);
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            if let Ok(expr) = syn::parse2::<Expr>(part.clone()) {
                self.visit_expr(&expr);
            } else if let Ok(block) = syn::Block::parse_within.parse2(part) {
                for statement in &block {
                    self.visit_stmt(statement);
                }
            }
        }
    }

    fn bind_local(&mut self, pattern: &Pat, init: &Expr) {
        match (pattern, init) {
            (Pat::Type(typed), init) => {
                if let (Pat::Tuple(names), syn::Type::Tuple(types), Expr::Tuple(values)) =
                    (&*typed.pat, &*typed.ty, init)
                {
                    for ((name, of), value) in names.elems.iter().zip(&types.elems).zip(&values.elems) {
                        self.bind_typed(name, of, value);
                    }
                    return;
                }
                self.bind_typed(&typed.pat, &typed.ty, init);
            }
            (Pat::Tuple(names), Expr::Tuple(values)) if names.elems.len() == values.elems.len() => {
                for (name, value) in names.elems.iter().zip(&values.elems) {
                    self.bind_local(name, value);
                }
            }
            (pattern, init) => {
                let shape = self.shape_of(init);
                self.names.bind(pattern, &shape);
            }
        }
    }

    fn bind_typed(&mut self, name: &Pat, of: &syn::Type, value: &Expr) {
        let mut shape = self.names.items.shape(&self.names.function.scope, of);
        let init = self.names.shape_of(value, &shape);
        if let (Shape::Api(_, cluster), Shape::Api(_, of_init)) = (&mut shape, &init) {
            *cluster = *of_init;
        }
        let shape = if shape == Shape::Unknown { init } else { shape };
        self.names.bind(name, &shape);
    }

    /// The shape that the pattern of a local variable requires of a generic result.
    fn expected_by(&self, pattern: &Pat) -> Shape {
        match pattern {
            Pat::Type(typed) => self.names.items.shape(&self.names.function.scope, &typed.ty),
            Pat::Tuple(names) => names
                .elems
                .first()
                .map_or(Shape::Unknown, |name| self.expected_by(name)),
            Pat::Ident(name) => self.names.field(&name.ident.to_string()),
            _ => Shape::Unknown,
        }
    }
}

/// Whether the caller decides about the kind or the cluster.
fn is_open(request: &Request) -> bool {
    matches!(request.kind, KindOf::Generic(_)) || matches!(request.cluster, Cluster::Argument(_))
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        let Some(init) = &local.init else { return };
        let expected = self.expected_by(&local.pat);
        let before = std::mem::replace(&mut self.expected, expected);
        self.bind_local(&local.pat, &init.expr);
        self.visit_expr(&init.expr);
        self.expected = before;
        if let Some((_, diverge)) = &init.diverge {
            self.visit_expr(diverge);
        }
    }

    fn visit_expr_let(&mut self, expr: &'ast syn::ExprLet) {
        let shape = self.shape_of(&expr.expr);
        self.names.bind(&expr.pat, &shape);
        self.visit_expr(&expr.expr);
    }

    fn visit_expr_for_loop(&mut self, expr: &'ast syn::ExprForLoop) {
        let shape = self.shape_of(&expr.expr);
        self.names.bind(&expr.pat, &shape);
        visit::visit_expr_for_loop(self, expr);
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        let shape = self.shape_of(&expr.expr);
        self.visit_expr(&expr.expr);
        for arm in &expr.arms {
            self.names.bind(&arm.pat, &shape);
            self.visit_arm(arm);
        }
    }

    fn visit_expr_closure(&mut self, expr: &'ast syn::ExprClosure) {
        for input in &expr.inputs {
            if let Pat::Type(_) = input {
                self.names.bind(input, &Shape::Unknown);
            }
        }
        self.visit_expr(&expr.body);
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        let required = self.tail.as_ref().filter(|(tail, _)| std::ptr::eq(*tail, expr));
        if let Some(required) = required.map(|(_, required)| required.clone()) {
            let before = std::mem::replace(&mut self.expected, required);
            visit::visit_expr(self, expr);
            self.expected = before;
        } else {
            visit::visit_expr(self, expr);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        let receiver = self.shape_of(&call.receiver);
        let arguments: Vec<&Expr> = call.args.iter().collect();
        if let Shape::Api(kind, cluster) = &receiver {
            self.method_of_api(call, kind, *cluster);
        } else {
            let callee = Callee {
                name: &name,
                owner: owner_of(&receiver),
                turbofish: call.turbofish.as_ref(),
                is_method: true,
            };
            self.call(&callee, &arguments);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Expr::Path(path) = &*call.func
            && !is_wrapping(&path.path)
            && makes_api_by_function(call).is_none()
            && let Some(last) = path.path.segments.last()
        {
            let arguments: Vec<&Expr> = call.args.iter().collect();
            let name = last.ident.to_string();
            let turbofish = match &last.arguments {
                syn::PathArguments::AngleBracketed(turbofish) => Some(turbofish),
                _ => None,
            };
            let callee = Callee {
                name: &name,
                owner: qualifier(&path.path, self.names.function),
                turbofish,
                is_method: false,
            };
            self.call(&callee, &arguments);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.tokens(mac.tokens.clone());
    }

    /// Functions inside of functions are separate.
    fn visit_item(&mut self, _item: &'ast syn::Item) {}
}
