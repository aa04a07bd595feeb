//! What a flow may ask of a part of the control plane: to be there, to sleep, to be gone, to be let go of.
//!
//! Each verb is a pair: the work, and the wait until it has had its effect. A flow names the part and gets
//! both tasks. What a verb takes says what it needs to know: all [`Facts`] of the shoot, or only the [`Stay`]
//! in this seed, which is there also when the Shoot is not.
//!
//! Promises of every method: it may be run again at any time (I5), it ends within a bound, and it waits by
//! watching.

use std::future::Future;

use runtime::Result;

use crate::{Facts, Stay};

/// What operators see: the name of the task that does the work, and of the one that waits.
pub type Tasks = [&'static str; 2];

/// A part that can be brought up.
pub trait Deploy: 'static {
    /// See [`Tasks`].
    const TASKS: Tasks;
    /// Writes the part as it should be.
    fn deploy(f: &Facts) -> impl Future<Output = Result<()>> + Send;
    /// Waits until it is as it should be.
    fn ready(f: &Facts) -> impl Future<Output = Result<()>> + Send;
}

/// A part that keeps all that it has while nothing of it runs (hibernation).
pub trait Sleep: 'static {
    /// See [`Tasks`].
    const TASKS: Tasks;
    /// Stops it. One that was never there is made without running.
    fn sleep(f: &Facts) -> impl Future<Output = Result<()>> + Send;
    /// Waits until nothing of it runs any more.
    fn asleep(f: &Facts) -> impl Future<Output = Result<()>> + Send;
}

/// A part that can be taken away.
pub trait Destroy: 'static {
    /// See [`Tasks`].
    const TASKS: Tasks;
    /// Asks for the part to go. That it is gone already is success.
    fn destroy(stay: &Stay) -> impl Future<Output = Result<()>> + Send;
    /// Waits until nothing of it is left.
    fn gone(stay: &Stay) -> impl Future<Output = Result<()>> + Send;
}

/// A part that somebody else looks after, who can be told that another seed does from now on.
pub trait Migrate: 'static {
    /// See [`Tasks`].
    const TASKS: Tasks;
    /// Tells the provider to let go without touching anything outside (I9).
    fn migrate(stay: &Stay) -> impl Future<Output = Result<()>> + Send;
    /// Waits until it has let go.
    fn migrated(stay: &Stay) -> impl Future<Output = Result<()>> + Send;
}
