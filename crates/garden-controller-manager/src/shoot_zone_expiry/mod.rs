//! Takes a zone back at the time that the Shoot's user has named
//! (`shoot.gardener.cloud/isolated-zone-expires`), by taking both annotations away; the gardenlet does the
//! rest.
//!
//! Promises: never by default, and never before the time. A time that has passed counts as come, also while
//! this process was away: who gave a zone a time wants it back after that. A time that cannot be understood
//! is told by an Event, and nothing is taken away. A time whose zone was taken back before goes, so that it
//! is not the time of the next zone.

mod controller;
mod decision;

pub use controller::run;
pub use decision::{Decision, decide};
