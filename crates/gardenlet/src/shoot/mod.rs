//! The shoot controller: decides which of the four flows a Shoot needs, runs it, and tells the story in its status.
//!
//! Where to look: the order of a move is `migrate_flow.rs` (source seed) followed by `reconcile_flow.rs` with
//! `restoring` (destination seed). Who acts is `dispatch.rs`. What a step does is the crate `botanist`.

mod controller;
pub mod delete_flow;
pub mod dispatch;
pub mod force_delete_flow;
pub mod migrate_flow;
mod operation;
pub mod reconcile_flow;
pub mod status;
mod take_down;

pub use controller::run;
pub use operation::build;

use std::time::Duration;

use flow::{Graph, Retry};
use runtime::Error;

/// An empty graph whose tasks are tried again for errors that may pass, every five seconds and not longer than `limit`.
fn graph<'a>(name: &'static str, limit: Duration) -> Graph<'a, Error> {
    Graph::new(name)
        .retry(Retry::until_timeout(RETRY_INTERVAL, limit))
        .retry_only_if(Error::is_retryable)
}

/// Pause between two attempts of a task. Shorter than what a person notices as a stall.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Time for the attempts of a task of a flow that is simply run again (create, reconcile, restore, delete). Longer than
/// the longest wait that a botanist task does by itself (Infrastructure, Worker, BackupEntry: 10 minutes).
const RETRY_LIMIT: Duration = Duration::from_secs(11 * 60);

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests;
