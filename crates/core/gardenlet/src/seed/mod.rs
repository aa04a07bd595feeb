//! The gardenlet's own Seed: registration, Lease, conditions, bucket.

mod conditions;
mod controller;
mod fence;
pub(crate) mod in_use;
mod lease;
pub(crate) mod leftovers;
mod registration;

pub use controller::run;
pub use lease::{LEASE_DURATION, RENEW_INTERVAL, renew as renew_lease};
pub use registration::{parse, register};
