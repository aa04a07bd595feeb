//! Parts of roles and bindings in the shoot. Pure.

use serde_json::{Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) fn role_ref(kind: &str, name: &str) -> Value {
    named(kind, name)
}

pub(crate) fn user(name: &str) -> Value {
    named("User", name)
}

pub(crate) fn group(name: &str) -> Value {
    named("Group", name)
}

fn named(kind: &str, name: &str) -> Value {
    json!({"apiGroup": GROUP, "kind": kind, "name": name})
}
