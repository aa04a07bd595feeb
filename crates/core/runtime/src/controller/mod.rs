//! The controller runner, the watch that several controllers share, and the parts of an object that
//! controllers write: finalizers, conditions and Events.
//!
//! | file | content |
//! |---|---|
//! | `runner` | the controller runner: finalizer, span, back-off, metrics, Events, shutdown |
//! | `failure_counts` | consecutive failures of an object, for the back-off |
//! | `shared_watch` | a watch for several controllers; `pending_objects`: the queue of a subscriber |
//! | `store_changes` | reports a change after the store shows the change |
//! | `finalizer` | sets and removes a finalizer |
//! | `conditions` | changes the own entries of a list of conditions |
//! | `events` | Events for `kubectl describe` |

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
