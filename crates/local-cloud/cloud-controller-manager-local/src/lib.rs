//! The cloud controllers of a shoot whose nodes live in the local cloud. The process runs beside the shoot's
//! control plane, reconciles Nodes and Services of the shoot, and queries the cloud.
//!
//! - [`cloud_node`] (former name `cloud-node`): describes a new Node with data of the cloud, and removes the
//!   taint that keeps pods away.
//! - [`cloud_node_lifecycle`] (former name `cloud-node-lifecycle`): removes a Node whose instance is gone,
//!   and marks a Node whose instance is stopped.
//! - [`service`] (former name `service`): gives Services of type LoadBalancer an address, and releases the
//!   address.
//! - [`node_ipam`] (former name `nodeipam`): gives each Node a range of pod addresses, once.
//!
//! Names, taints, labels, Events and the order of steps equal Kubernetes' own cloud controllers. So a
//! controller can be handed over between this process and a different controller manager. Each controller
//! reads, decides with a pure function (`decide.rs`, `book.rs`) and writes. The module [`controllers`] starts
//! any set of controllers, so that a set can run under a lock.
//!
//! Required rights (`tests/process.rs` runs the process with exactly these rights):
//!
//! | where | resources | verbs |
//! |---|---|---|
//! | shoot | nodes | get, list, watch, patch, delete |
//! | shoot | services | get, list, watch, patch |
//! | shoot | nodes/status, services/status | patch |
//! | shoot | events of events.k8s.io | create, patch |
//! | shoot, `kube-system` | leases | get, watch, create, update |
//! | cloud, the account | configmaps | get, create, patch |
//!
//! [`cloud_local`] describes the layout of the cloud. An unreadable or inconsistent cloud changes nothing
//! (I4).

pub mod cloud_node;
pub mod cloud_node_lifecycle;
pub mod controllers;
pub mod flags;
pub mod names;
pub mod node_ipam;
mod nodes;
pub mod service;

use runtime::client::apply::FieldManager;

/// The field manager; also the name of the process and of the main lock.
pub const MANAGER: FieldManager = FieldManager("cloud-controller-manager-local");
