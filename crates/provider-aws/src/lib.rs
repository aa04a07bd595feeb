//! Looks after extension objects of type `aws`: one file an extension kind, one actuator each. The order of
//! annotations, finalizers and status is the [`extension`] crate's.
//!
//! | kind | what it is outside of the seed | state |
//! |---|---|---|
//! | [`infrastructure`] | a VPC with subnets, a NAT gateway and a route table for each zone | ids of all of it |
//! | [`control_plane`] | nothing: its cloud-controller-manager only reads EC2 | none |
//! | [`worker`] | instances, by the machine-controller-manager of the shoot | its machine objects are that |
//! | [`subnet_isolation`] | a network ACL that lets nothing pass, in front of a zone's subnets | which ACL each subnet had |
//!
//! What comes later is told in docs/operate/provider-aws.md, with the rights that an account needs.

pub mod account;
pub mod control_plane;
pub mod controllers;
mod identity;
pub mod infrastructure;
mod problem;
pub mod subnet_isolation;
pub mod worker;
pub mod zone;

use runtime::apply::FieldManager;

/// `spec.type` of the objects that this provider looks after.
pub const TYPE: &str = "aws";
/// Group and version of this provider's own configuration, status and state.
pub const API_VERSION: &str = "aws.provider.extensions.gardener.cloud/v1alpha1";
/// Who writes.
pub const MANAGER: FieldManager = FieldManager("provider-aws");
