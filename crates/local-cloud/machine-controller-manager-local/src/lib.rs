//! Machines of a shoot in the local cloud: the process of `machine-controller-manager` with a driver over
//! `cloud-local`.

pub mod driver;

use runtime::client::apply::FieldManager;

/// Writes machine objects, Nodes and instances.
pub const MANAGER: FieldManager = FieldManager("machine-controller-manager-local");
