//! The order of each operation on a shoot. A file `…_flow.rs` is a whole flow; a file `…_steps.rs` has steps
//! that several flows share. The crate `parts` implements the steps.

pub(crate) mod backup_steps;
pub(crate) mod base_steps;
pub mod delete_flow;
pub(crate) mod extension_steps;
pub mod force_delete_flow;
pub(crate) mod graph;
pub(crate) mod kube_apiserver_exposure_steps;
pub mod leave_flow;
pub mod migrate_flow;
pub mod prepare_flow;
pub mod reconcile_flow;
#[cfg(any(test, feature = "flow-samples"))]
pub mod safety;
pub mod sleep_flow;
pub(crate) mod sleep_steps;
pub(crate) mod take_down;

pub use graph::ShootFlow;
