//! The shoot controller: decides which flow a Shoot needs, runs the flow, and reports the progress in the
//! status of the Shoot.
//!
//! A move runs `migrate_flow.rs` (source seed) and then `reconcile_flow.rs` with `restoring` (destination
//! seed). The clean-up in the source is `leave_flow.rs`. A hibernated shoot is reconciled by `sleep_flow.rs`.
//! The crate `placement` decides which seed acts, and `dispatch.rs` decides when. The crate `parts`
//! implements the steps.

mod backup_steps;
mod base_steps;
mod confirmation;
mod controller;
pub mod delete_flow;
mod departure;
pub mod dispatch;
mod exposure_steps;
mod extension_steps;
pub mod force_delete_flow;
mod graph;
mod identity;
mod leave;
pub mod leave_flow;
mod left_behind;
mod left_out;
mod leftover;
mod loss;
mod lost;
pub mod migrate_flow;
mod operation;
mod orphans;
mod pace;
mod pause;
mod pending_shoots;
mod progress;
mod project;
pub mod reconcile_flow;
mod record;
mod right;
pub mod sleep_flow;
mod sleep_steps;
pub mod status;
mod take_down;
mod watched;
mod zone_budget;
mod zone_changes;
mod zone_deadline;
mod zone_judgement;
mod zone_look;
mod zone_plan;
mod zone_recheck;
mod zone_record;
mod zone_report;
mod zone_steps;
mod zone_story;
mod zone_volumes;
mod zone_watch;

pub use operation::build;
pub use zone_steps::Zones;

use std::sync::Arc;

use crate::Context;

/// Runs the controllers of shoots, and of the leftovers of deleted shoots, until shutdown.
pub async fn run(context: Arc<Context>) {
    futures::join!(controller::run(context.clone()), orphans::run(context));
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;
