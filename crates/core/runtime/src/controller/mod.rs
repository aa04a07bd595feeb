//! The controller runner, the watch that several controllers share, and the parts of an object that
//! controllers write: finalizers, conditions and Events.

pub mod conditions;
pub mod events;
mod failure_counts;
pub mod finalizer;
mod pending_objects;
pub mod runner;
pub mod shared_watch;
pub mod store_changes;

pub use events::Events;
pub use runner::{Next, Reconciler};
pub use shared_watch::SharedWatch;
pub use store_changes::Change;
