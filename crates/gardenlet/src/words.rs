//! What several parts say of things in the same way.

use k8s_openapi::api::core::v1::Node;
use runtime::words::some_of;

/// So many names are told of many.
const NAMES: usize = 5;

/// Some names, and how many there are besides.
pub(crate) fn names(all: &[impl AsRef<str>]) -> String {
    some_of(all, NAMES)
}

/// Whether a Node says that it is.
pub(crate) fn is_ready(node: &Node) -> bool {
    let status = node.status.as_ref();
    let mut conditions = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
