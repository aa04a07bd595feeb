//! The network of one shoot: a VPC of its own, and in each zone of the shoot a subnet for machines and one
//! for its NAT gateway, with a route table, so that no zone needs another one for its way out.
//!
//! Everything carries the cluster's tag and a name from the call on that makes it, and is looked for by them
//! first: nothing is made twice, and a seed that knows nothing finds all of it. What is there without changes
//! is neither written nor waited for. What was just made and is not listed yet is waited for, in bounds.

mod config;
mod found;
mod make;
mod plan_checks;
mod recorded;
mod remove;
mod state;
mod vpc;

pub use config::{GroupStatus, InfrastructureConfig, InfrastructureStatus, Plan, SubnetStatus, VpcStatus};
pub use found::{Found, Names};
pub use make::{Made, make};
pub use remove::{confirm_removal, remove};
pub use state::{Failure, Journal, State};
