//! Machines of a shoot in Amazon Web Services: the process of `machine-controller-manager` with a driver over
//! `cloud-aws`.

pub mod driver;

use runtime::client::apply::FieldManager;

/// Writes machine objects, Nodes and instances.
pub const MANAGER: FieldManager = FieldManager("machine-controller-manager-aws");
