//! The order of each operation on a shoot. A file `…_flow.rs` is a whole flow; a file `…_steps.rs` has steps
//! that several flows share. The crate `parts` implements the steps.
//!
//! | file | content |
//! |---|---|
//! | `reconcile_flow` | creation, reconciliation, restore in a destination |
//! | `migrate_flow` | a planned move in the source, before the hand-over |
//! | `leave_flow` | the clean-up of a seed that the shoot has left |
//! | `prepare_flow` | the preparation of a seed for a shoot of a different seed |
//! | `sleep_flow` | a hibernated shoot: reconciliation and restore |
//! | `delete_flow` | the deletion |
//! | `force_delete_flow` | the forced deletion |
//! | `base_steps` | the first steps of a control plane in a seed |
//! | `backup_steps` | the backups from which etcd starts |
//! | `extension_steps` | further extensions, by the phase of the registration |
//! | `kube_apiserver_exposure_steps` | the address and the DNS records of the API |
//! | `sleep_steps` | the stop of a control plane that keeps the data |
//! | `take_down` | the last steps of both deletions |
//! | `graph` | retries and timeouts of all tasks, and the tasks for each verb of a part |
//! | `safety` | the rules for tasks that change an external system |

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
