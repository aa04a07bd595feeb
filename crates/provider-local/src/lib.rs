//! Looks after extension objects of type `local`: one file an extension kind, one actuator each. The order of
//! annotations, finalizers and status is the [`extension`] crate's.
//!
//! | kind | what it is outside of the seed | state |
//! |---|---|---|
//! | [`infrastructure`] | a node network and its list of instances, in a cloud that is a namespace of some cluster | network id and range |
//! | [`control_plane`] | nothing; the cloud-controller-manager and its files beside the control plane | none |
//! | [`dns_record`] | a name in a DNS server that takes signed updates (RFC 2136) | none |
//! | [`network`] | nothing; an agent on each machine of the shoot | none |
//! | [`operating_system_config`] | nothing; a script beside the control plane | none |
//! | [`worker`] | instances, which the machine-controller-manager makes | the machine objects |
//! | [`subnet_isolation`] | a zone of that network that is closed | the zone, since when, and what it was |
//! | [`backup_bucket`] | a bucket in an S3 object store | none |
//! | [`backup_entry`] | objects in that bucket; a Secret beside the control plane | none |
//!
//! Besides, it can run controllers of the gardenlet as [`guests`], which act on objects of the garden.

mod account;
pub mod backup_bucket;
pub mod backup_entry;
pub mod context;
pub mod control_plane;
pub mod controllers;
pub mod dns_record;
pub mod guests;
pub mod infrastructure;
pub mod network;
mod object_store;
pub mod operating_system_config;
mod ownership;
pub mod subnet_isolation;
mod takeover;
mod unread;
pub mod worker;

use runtime::apply::FieldManager;

/// `spec.type` of the objects that this provider looks after.
pub const TYPE: &str = "local";
/// Group and version of this provider's own configuration, status and state.
pub const API_VERSION: &str = "local.provider.extensions.gardener.cloud/v1alpha1";
/// Who writes.
pub const MANAGER: FieldManager = FieldManager("provider-local");
