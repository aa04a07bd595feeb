//! The end of holding a lock.

use std::time::Duration;

/// A clean end of `with_lease`. The lock was released, unless a write of the work stayed without an answer:
/// then the lock expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<T> {
    /// The work ended.
    Done(T),
    /// Shutdown was requested; the work was dropped, or had not begun.
    Shutdown,
}

/// The loss of a lock; the work was dropped. The process should exit (RK-33), because its state may be out of
/// date. The lock is not released: requests under way may still be carried out, and the candidates' wait
/// covers that time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The API server could not be reached, or the process did not run.
    #[error("the lock {lock} could not be renewed for {deadline:?}: {why}")]
    NotRenewed {
        /// `namespace/name` of the lock.
        lock: String,
        /// The renew deadline.
        deadline: Duration,
        /// The error of the last try.
        why: String,
    },
    /// The Lease names another holder before the end of this holder's time: a client has written the Lease by
    /// hand.
    #[error("the lock {lock} is held by {holder}")]
    Taken {
        /// `namespace/name` of the lock.
        lock: String,
        /// The holder in the Lease.
        holder: String,
    },
    /// The lock was never won: another process holds the lock on different terms. An administrator has to fix
    /// the configuration of either process.
    #[error(
        "the lock {lock} is held by {holder} on other terms ({theirs}): give all that share this lock the same controllers"
    )]
    Disagrees {
        /// `namespace/name` of the lock.
        lock: String,
        /// The holder.
        holder: String,
        /// The holder's terms.
        theirs: String,
    },
}
