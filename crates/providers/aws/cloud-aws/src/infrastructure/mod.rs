//! The network of a shoot: a dedicated VPC with two subnets in each zone of the shoot. A zone has a subnet
//! for machines, a subnet for the NAT gateway, and a route table. So the outgoing traffic of a zone never
//! passes a different zone.
//!
//! Each part has the cluster's tag and a name from the creating call on. A part is looked up by tag and name
//! first. So no part is made twice, and a seed without a record finds all parts. Unchanged parts are neither
//! written nor awaited. A new part that EC2 does not list yet is awaited for a bounded time.

mod config;
mod found;
mod make;
mod plan_checks;
mod recorded;
mod remove;
mod state;
mod vpc;

pub use config::{GroupStatus, InfrastructureConfig, InfrastructureStatus, Plan, SubnetStatus, VpcStatus};
pub use found::{Names, NetworkParts};
pub use make::{Made, make};
pub use remove::{confirm_removal, remove};
pub use state::{Failure, Journal, State};
