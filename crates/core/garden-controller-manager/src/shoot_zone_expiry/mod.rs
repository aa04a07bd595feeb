//! Ends the isolation of a zone at the time that the Shoot's user has set
//! (`shoot.gardener.cloud/isolated-zone-expires`), by removing both annotations; the gardenlet does the rest.
//!
//! Guarantees: never by default, and never before the time. A time in the past takes effect, also if the time
//! came while this process was down: a user who set a time wants the zone back after that time. An invalid
//! time is reported by an Event, and no annotation is removed. If the isolation ended before its time, the
//! time is removed, so that the next isolation does not use that time.

mod controller;
mod decision;

pub use controller::run;
pub use decision::{Decision, decide};
