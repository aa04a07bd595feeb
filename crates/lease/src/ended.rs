//! How the holding of a lock ends.

use std::time::Duration;

/// How `with_lease` ended well. The lock was given back, unless a write of the work stayed without an answer:
/// then it runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<T> {
    /// The work ended by itself.
    Done(T),
    /// Shutdown was asked for; the work was dropped, or had not begun.
    Shutdown,
}

/// How a lock was lost; the work was dropped. The process should exit (RK-33): what it knows may be out of
/// date. The lock is not given back: requests that were under way may still be carried out, and the time that
/// others wait is theirs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The API server could not be reached, or the process did not run.
    #[error("the lock {lock} could not be renewed for {deadline:?}: {why}")]
    NotRenewed {
        /// `namespace/name` of the lock.
        lock: String,
        /// The renew deadline.
        deadline: Duration,
        /// What the last try said.
        why: String,
    },
    /// The Lease names another holder although our time was not over: somebody wrote into it by hand.
    #[error("the lock {lock} is held by {holder}")]
    Taken {
        /// `namespace/name` of the lock.
        lock: String,
        /// The other holder.
        holder: String,
    },
    /// The lock was never got: another one holds it on other terms. Whoever configured the two has to mend
    /// that.
    #[error(
        "the lock {lock} is held by {holder} on other terms ({theirs}): give all that share this lock the same controllers"
    )]
    Disagrees {
        /// `namespace/name` of the lock.
        lock: String,
        /// Its holder.
        holder: String,
        /// The holder's terms.
        theirs: String,
    },
}
