//! What the graphs of all flows have in common: which errors are tried again, how often and for how long.

use std::time::Duration;

use flow::{Graph, Retry};
use runtime::Error;

/// Pause between two attempts of a task. Shorter than what a person notices as a stall.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Time for the attempts of a task of a flow that is simply run again (create, reconcile, restore, leave, delete). Longer than
/// the longest wait that a botanist task does by itself: the copy of backups, 15 minutes.
pub(super) const RETRY_LIMIT: Duration = Duration::from_secs(16 * 60);

/// An empty graph whose tasks are tried again for errors that may pass, every two seconds and not longer than `limit`.
pub(super) fn graph<'a>(name: &'static str, limit: Duration) -> Graph<'a, Error> {
    Graph::new(name)
        .retry(Retry::until_timeout(RETRY_INTERVAL, limit))
        .retry_only_if(Error::is_retryable)
}
