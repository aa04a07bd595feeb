//! The instance and the Node of a Machine.

use api::machine::Machine;
use kube::ResourceExt;

use crate::constants::{FORCE_DELETION, NODE};

/// The id of the instance at the provider, if recorded.
pub fn provider_id(machine: &Machine) -> Option<&str> {
    machine.spec.provider_id.as_deref().filter(|id| !id.is_empty())
}

/// The name of the Node, if recorded.
pub fn node_name(machine: &Machine) -> Option<&str> {
    machine
        .labels()
        .get(NODE)
        .map(String::as_str)
        .filter(|name| !name.is_empty())
}

/// Whether the deletion does not wait for the pods.
pub fn is_forced(machine: &Machine) -> bool {
    machine
        .labels()
        .get(FORCE_DELETION)
        .is_some_and(|value| value.eq_ignore_ascii_case("true"))
}
