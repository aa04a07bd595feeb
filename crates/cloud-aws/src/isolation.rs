//! A zone's subnets behind an ACL that lets nothing pass, and what they had before.
//!
//! Which ACL each subnet had stands in the tags of ours before anything is swapped, so that a seed that knows
//! nothing can give it back. The ACL is remembered and not its association with the subnet, whose id is
//! another after each swap; it is looked up right before.

mod plan;
mod swap;

pub use plan::{Before, ChangedByHand};
pub use swap::{ClosedZone, ZoneAcl, ZoneObservation};
