//! The shoot controller: decides which of the flows a Shoot needs, runs it, and tells the story in its
//! status.
//!
//! Where to look: the order of a move is `migrate_flow.rs` (source seed) followed by `reconcile_flow.rs` with
//! `restoring` (destination seed), and what the source cleans up afterwards is `leave_flow.rs`. A shoot that
//! sleeps is kept by `sleep_flow.rs`. Who acts is the crate
//! `placement`, and when is `dispatch.rs`. What a step does is the crate `parts`.

mod backup_steps;
mod base_steps;
mod confirmation;
mod controller;
pub mod delete_flow;
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
mod progress;
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
mod zone_judgement;
mod zone_look;
mod zone_plan;
mod zone_recheck;
mod zone_record;
mod zone_steps;
mod zone_story;
mod zone_volumes;
mod zone_watch;

pub use operation::build;
pub use zone_steps::Zones;

use std::sync::Arc;

use crate::Context;

/// Runs the controllers of shoots, and of what shoots that are gone have left, until shutdown.
pub async fn run(context: Arc<Context>) {
    futures::join!(controller::run(context.clone()), orphans::run(context));
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;
