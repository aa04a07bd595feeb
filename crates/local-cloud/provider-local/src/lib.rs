//! Reconciles extension objects of type `local`: a file and an actuator per extension kind. The [`extension`]
//! crate provides the order of annotations, finalizers and status.
//!
//! | kind | resource outside of the seed | state |
//! |---|---|---|
//! | [`infrastructure`] | a node network with a list of instances | network id and range |
//! | [`control_plane`] | none; the cloud-controller-manager in the seed | none |
//! | [`dns_record`] | a name in a DNS server that accepts signed updates (RFC 2136) | none |
//! | [`network`] | none; an agent on each machine of the shoot | none |
//! | [`operating_system_config`] | none; a script in a Secret of the seed | none |
//! | [`worker`] | instances, created by the machine-controller-manager | the machine objects |
//! | [`subnet_isolation`] | a closed zone of the network | the zone, the begin, the former access |
//! | [`backup_bucket`] | a bucket in an S3 object store | none |
//! | [`backup_entry`] | objects in a bucket; a Secret in the seed | none |
//!
//! The local cloud is a namespace of some cluster. In addition, the process can run controllers of the
//! gardenlet as [`guests`]; guests act on objects of the garden.

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

use runtime::client::apply::FieldManager;

/// `spec.type` of this provider's objects.
pub const TYPE: &str = "local";
/// Group and version of this provider's own configuration, status and state.
pub const API_VERSION: &str = "local.provider.extensions.gardener.cloud/v1alpha1";
/// The field manager of writes.
pub const MANAGER: FieldManager = FieldManager("provider-local");
