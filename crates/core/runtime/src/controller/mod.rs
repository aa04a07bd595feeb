//! The controller runner, and the parts of an object that controllers write: finalizers, conditions and
//! Events.

pub mod conditions;
pub mod events;
pub mod finalizer;
pub mod runner;

pub use events::Events;
pub use runner::{Next, Reconciler};
