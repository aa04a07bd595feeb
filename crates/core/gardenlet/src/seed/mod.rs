//! The gardenlet's own Seed: registration, Lease, conditions, bucket.
//!
//! | file | purpose |
//! |---|---|
//! | `registration` | creates or updates the Seed from the configuration |
//! | `controller` | the reconcile loop: bucket, conditions, the finalizer `gardener` of the Seed |
//! | `conditions` | the conditions that a Seed reports, as pure decisions |
//! | `without_shoots` | the constraint `WithoutShoots`, by which a policy protects networks and names |
//! | `lease` | the Lease that shows that the gardenlet lives |
//! | `fence_report` | the longest fence that the Seed has configured, for the status of the Seed |
//! | `leftovers` | control planes of Shoots that run in a different seed and do not name this seed |

mod conditions;
mod controller;
mod fence_report;
mod lease;
pub(crate) mod leftovers;
mod registration;
pub(crate) mod without_shoots;

pub use controller::run;
pub use lease::{LEASE_DURATION, RENEW_INTERVAL, renew as renew_lease};
pub use registration::{check_cluster, parse, register};
