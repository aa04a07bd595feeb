//! Isolation of a zone of a shoot (GEP-21): the plan, the deadline of the closing, the record in the status
//! of the Shoot, and the steps inside the flows of the shoot.
//!
//! `interface` is the only module that `shoot` uses, as the hooks of each operation
//! (`shoot/operation_hooks.rs`). Behind the interface: `dry_run` before an operation, `budget`, `steps` and
//! `watch` during an operation, `zone_status` and `recheck` for the status, `events` for Events and metrics,
//! and `deadline` for the controller beside the flows.

mod budget;
mod change_limit;
mod deadline;
mod dry_run;
mod events;
pub(crate) mod interface;
mod judgement;
mod recheck;
mod report;
mod steps;
mod survey;
mod volumes;
mod watch;
mod zone_status;

pub use interface::content_at_start;
pub use steps::Zones;
