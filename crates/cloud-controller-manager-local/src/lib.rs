//! The cloud controllers of a shoot whose nodes live in the local cloud. The process runs beside the shoot's
//! control plane, works on Nodes and Services of the shoot, and asks the cloud.
//!
//! | controller | former name | what it does |
//! |---|---|---|
//! | [`cloud_node`] | `cloud-node` | tells a new Node what the cloud knows of it, and lets pods onto it |
//! | [`cloud_node_lifecycle`] | `cloud-node-lifecycle` | removes a Node whose instance is gone, marks one that is stopped |
//! | [`service`] | `service` | gives Services of type LoadBalancer an address, and takes it back |
//! | [`node_ipam`] | `nodeipam` | gives each Node its range of pod addresses, once |
//!
//! Names, taints, labels, Events and order of steps are those of Kubernetes' own cloud controllers, so that
//! this process and another controller manager can hand a controller over to each other. Each controller
//! reads, decides with a pure function (`decide.rs`, `book.rs`) and writes; [`controllers`] starts any set of
//! them, so that a set can run under a lock.
//!
//! Rights that it needs (`tests/process.rs` runs it with exactly these):
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
//! [`cloud_local`] says how the cloud is laid out. A cloud that cannot be read, or does not make sense,
//! changes nothing (I4).

pub mod cloud_node;
pub mod cloud_node_lifecycle;
pub mod controllers;
pub mod flags;
pub mod names;
pub mod node_ipam;
mod nodes;
pub mod service;

use runtime::apply::FieldManager;

/// Who writes; also the name of the process and of its main lock.
pub const MANAGER: FieldManager = FieldManager("cloud-controller-manager-local");
