//! A zone's subnets behind an ACL that denies all packets, and the record of the former ACLs.
//!
//! Before the first swap the former ACL of each subnet is written to the tags of our ACL. So a seed without a
//! record can give the former ACLs back. The record names the ACL and not the association with the subnet,
//! because the id of the association changes with each swap. The association is looked up right before the
//! swap.

mod plan;
mod zone_acl;

pub use plan::{Before, ChangedByHand};
pub use zone_acl::{ClosedZone, ZoneAcl, ZoneObservation};
