//! Which instance and which Node a Machine has.

use api::machine::Machine;
use kube::ResourceExt;

use crate::words::{FORCE_DELETION, NODE};

/// Its id at the provider, if it has one.
pub fn provider_id(machine: &Machine) -> Option<&str> {
    machine.spec.provider_id.as_deref().filter(|id| !id.is_empty())
}

/// The name of its Node, if it has one.
pub fn node_name(machine: &Machine) -> Option<&str> {
    machine
        .labels()
        .get(NODE)
        .map(String::as_str)
        .filter(|name| !name.is_empty())
}

/// Whether its pods are not waited for.
pub fn is_forced(machine: &Machine) -> bool {
    machine
        .labels()
        .get(FORCE_DELETION)
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
}
