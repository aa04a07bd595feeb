//! The work of each step of a shoot flow: one struct per part of the control plane.
//!
//! A flow defines the order of the steps, this crate the work. A part has verbs ([`Deploy`], [`Destroy`],
//! [`Migrate`]), each with the work and the wait, and the operations that only this part has. A part stores
//! no state: each verb receives its inputs, the [`Facts`] of the shoot or only the [`Stay`] in this seed.
//! Every method may run again at any time (I5), ends within a bound and waits by watching. Outside the seed
//! and the garden, a method changes objects only through extension resources (I9). Pure functions decide what
//! to write; the tests cover these functions.

mod applied_terms;
mod backup_entry;
mod backups;
mod begun;
mod claim;
mod close_deadline;
mod cluster;
mod cluster_identity;
mod component;
mod conflicts;
mod control_plane;
pub mod controller_leaders;
mod copied;
mod departure;
mod dns_records;
mod dynamic;
mod etcd;
mod etcd_copy;
mod etcd_ended;
mod etcd_owner;
mod etcd_ready;
mod exposure;
mod extension_kinds;
pub mod extension_resource;
mod facts;
mod fence;
mod fence_clock;
mod fence_servers;
mod forced_machines;
mod further_extensions;
mod infrastructure;
mod kube_apiserver;
mod kube_controller_manager;
mod kube_scheduler;
mod kubeconfig;
mod lost;
mod machine;
mod managed_resources;
mod namespace;
mod nodes;
mod owner_claim;
mod owner_record;
mod owner_terms;
mod planned_copy;
mod rbac;
pub mod secrets;
mod settings;
mod shoot_api;
mod shoot_cleanup;
pub mod shoot_state;
mod source_bucket;
mod stay;
mod subnet_isolation;
mod system_components;
mod tunnel;
mod unrestored_machines;
mod user_kubeconfig;
mod verbs;
mod writers;

pub use applied_terms::AppliedTerms;
pub use backup_entry::{BackupEntry, SourceBackupEntry};
pub use backups::Backups;
pub use claim::{ClaimPlan, ClaimSteps};
pub use close_deadline::CloseDeadline;
pub use cluster::{CloudProviderSecret, Cluster};
pub use cluster_identity::ClusterIdentity;
pub use conflicts::ConflictLimit;
pub use control_plane::ControlPlane;
pub use controller_leaders::ControllerLeaders;
pub use copied::{Copied, ProvenEnd};
pub use departure::Departure;
pub use dns_records::DnsRecords;
pub use etcd::Etcds;
pub use etcd_copy::EtcdCopy;
pub use etcd_ended::EndedEtcd;
pub use exposure::Exposure;
pub use extension_kinds::{
    AllExtensions, AnyExtension, ForcedExtensions, GenericExtensions, Kinds, OtherExtensions,
};
pub use extension_resource::ExtensionResource;
pub use facts::{Facts, tenant};
pub use fence::Fence;
pub use fence_clock::{FenceClock, Fences};
pub use forced_machines::{ForcedMachines, keep_left_behind, named_left_behind, with_left_behind};
pub use further_extensions::FurtherExtensions;
pub use infrastructure::Infrastructure;
pub use kube_apiserver::{KubeApiserver, KubeApiserverService};
pub use kube_controller_manager::KubeControllerManager;
pub use kube_scheduler::KubeScheduler;
pub use machine::MachineResources;
pub use managed_resources::{ForcedManagedResources, ManagedResources};
pub use namespace::Namespace;
pub use nodes::{ContainerRuntimes, Network, NodeExtensions, NodeRights, OperatingSystemConfigs, Workers};
pub use owner_record::{OwnerRecord, OwnerRecordPlan};
pub use placement::Operation;
pub use secrets::{ExtensionSecrets, Secrets};
pub use settings::{COREDNS_TAG, Settings, Timeouts, UrlOf, Wait};
pub use shoot_api::ShootApi;
pub use shoot_cleanup::ShootObjects;
pub use shoot_state::ShootState;
pub use stay::{NamespaceState, Stay, Tenant, left_in};
pub use subnet_isolation::SubnetIsolation;
pub use system_components::{ApiProxy, CoreDns, KubeProxy};
pub use tunnel::{TunnelAgents, TunnelServer};
pub use unrestored_machines::unrestored_machines;
pub use user_kubeconfig::Kubeconfig;
pub use verbs::{Deploy, Destroy, Migrate, Sleep, Tasks};
pub use writers::Writers;

use api::meta::ErrorCode;
use runtime::{Error, apply::FieldManager};

/// The gardenlet writes the objects that this crate decides on.
pub const FIELD_MANAGER: FieldManager = FieldManager("gardenlet");

/// An error that ends only when a user or an operator changes a specification.
pub(crate) fn configuration_problem(message: impl Into<String>) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, message)
}

/// Reads a typed object out of JSON that this crate wrote.
pub(crate) fn from_json<K: serde::de::DeserializeOwned>(value: serde_json::Value) -> runtime::Result<K> {
    serde_json::from_value(value)
        .map_err(|e| Error::bug(format!("an object that was built here is none: {e}")))
}

/// Names of a shoot in tests, with this pods network.
#[cfg(test)]
fn names_in_tests(pods: &str) -> placement::Names {
    placement::Names {
        technical_id: "shoot--dev--web".into(),
        internal_api: Some("api.web.dev.internal.example.test".into()),
        external_api: Some("api.web.example.test".into()),
        first_service_ip: std::net::IpAddr::from([100, 64, 0, 1]),
        services: "100.64.0.0/13".into(),
        pods: pods.into(),
    }
}
