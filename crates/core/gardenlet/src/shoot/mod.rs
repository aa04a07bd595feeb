//! The shoot controller: decides which flow a Shoot needs, runs the flow, and reports the progress in the
//! status of the Shoot.
//!
//! A move runs `flows/migrate_flow.rs` (source seed) and then `flows/reconcile_flow.rs` with `restoring`
//! (destination seed). The clean-up in the source is `flows/leave_flow.rs`. A hibernated shoot is reconciled
//! by `flows/sleep_flow.rs`. A seed with a grant prepares by `flows/prepare_flow.rs`. The crate `placement`
//! decides which seed acts, and `dispatch.rs` decides when. The crate `parts` implements the steps. A second
//! concern about the same Shoots takes part through `operation_hooks.rs`; only this file names the
//! implementation.
//!
//! | file | content |
//! |---|---|
//! | `dispatch` | the next action for a Shoot: a pure function |
//! | `controller` | watches Shoots, and runs that action |
//! | `watched` | the changes of a Shoot that wake a controller |
//! | `operation` | an operation: run, progress, report in the status |
//! | `flows` | the order of each operation |
//! | `ownership` | the permit of an operation, the writer of the status, losses |
//! | `leaving` | the clean-up in a seed that the shoot has left, and of deleted Shoots |
//! | `preparing` | the preparation for a shoot of a different seed |
//! | `pause` | holds back new reconciliations on request |
//! | `move_obstacle` | the report of an obstacle to a move |
//! | `state_left_out` | the Event about state that a move has not carried |
//! | `operation_hooks` | the interface of a second concern about the same Shoots |
//! | `project` | the Project of a Shoot |

mod controller;
pub mod dispatch;
pub mod flows;
pub(crate) mod leaving;
mod move_obstacle;
pub mod operation;
pub mod operation_hooks;
pub(crate) mod ownership;
pub(crate) mod pause;
mod preparing;
mod project;
mod state_left_out;
mod watched;

use std::sync::Arc;

use flow::Flow;
use parts::{Facts, MoveFindings};
use runtime::{Error, Result};

use crate::{Context, zone_isolation::interface};

/// Runs the controllers of shoots, and of the leftovers of deleted shoots, until shutdown.
pub async fn run(context: Arc<Context>) {
    let hooks = interface::hooks(Arc::clone(&context));
    futures::join!(
        controller::run(Arc::clone(&context), hooks),
        preparing::run(Arc::clone(&context)),
        leaving::orphans::run(context)
    );
}

/// Reads the present state in the seed, and builds the flow of the operation.
///
/// # Errors
/// The seed does not answer, or the facts allow no flow.
pub async fn build<'a>(facts: &'a Facts, findings: &'a MoveFindings) -> Result<Flow<'a, Error>> {
    let flow = operation::execution::build(facts, findings, &interface::StepPlanner).await?;
    Ok(flow.into_flow())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
pub(crate) mod tests;
