//! Provider for extension objects of type `aws`: a file and an actuator for each extension kind. The
//! [`extension`] crate defines the order of annotations, finalizers and status.
//!
//! | kind | objects outside of the seed | state |
//! |---|---|---|
//! | [`infrastructure`] | a VPC; for each zone subnets, a NAT gateway and a route table | ids of all parts |
//! | [`control_plane`] | none: the cloud-controller-manager only reads EC2 | none |
//! | [`worker`] | instances, by the machine-controller-manager of the shoot | the machine objects |
//! | [`subnet_isolation`] | a network ACL that denies all packets of a zone's subnets | former ACLs |
//!
//! docs/operate/provider-aws.md lists planned features, and the rights that an account needs.

pub mod account;
pub mod control_plane;
pub mod controllers;
mod identity;
pub mod infrastructure;
mod problem;
pub mod subnet_isolation;
pub mod worker;
pub mod zone;

use runtime::client::apply::FieldManager;

/// `spec.type` of the objects that this provider looks after.
pub const TYPE: &str = "aws";
/// Group and version of this provider's own configuration, status and state.
pub const API_VERSION: &str = "aws.provider.extensions.gardener.cloud/v1alpha1";
/// The field manager of this provider.
pub const MANAGER: FieldManager = FieldManager("provider-aws");
