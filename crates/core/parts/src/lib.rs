//! The work of each step of a shoot flow: one struct per part of the control plane.
//!
//! A flow defines the order of the steps, this crate the work. A part has verbs ([`Deploy`], [`Destroy`],
//! [`Migrate`]), each with the work and the wait, and the operations that only this part has. A part declares
//! the external systems that each task may change ([`PartTask`]). A part stores no state: each verb receives
//! its inputs, the [`Facts`] of the shoot or only the [`Residency`] in this seed. A task that records or
//! reads a finding of a move receives the finding, too ([`MoveFindings`]). Every method may run again at any
//! time (I5), ends within a bound and waits by watching. Beside the seed, the garden and the API of the
//! shoot, a method changes objects only through extension resources (I9). Pure functions decide the content
//! of each write; the tests cover these functions.
//!
//! | file | content |
//! |---|---|
//! | `verbs` | the verbs of a part: deploy, sleep, destroy, migrate |
//! | `task` | a task of a flow, with the external systems that the task may change |
//! | `facts` | the facts of the shoot; `residency`: the part of the seed; `settings`: of the operator |
//! | `findings` | results that tasks of a move exchange |
//! | `ownership` | claims, the owner record, the fence, the departure, losses |
//! | `etcd` | etcds, backups, the start of an epoch from a copy, the end of an epoch |
//! | `shoot_state` | the ShootState: collects, writes, reads |
//! | `secrets` | keys and certificates of a control plane |
//! | `api_server` | kube-apiserver: process, address, credentials of users |
//! | `controllers` | kube-controller-manager and kube-scheduler, and the manager of node IPAM |
//! | `extensions` | extension objects, DNS records included |
//! | `nodes` | pod network, machines, the first configuration of machines |
//! | `system_components` | kube-proxy, CoreDNS and api-proxy on the nodes |
//! | `tunnel` | the path from kube-apiserver to nodes |
//! | `namespace` | the namespace of the shoot in the seed; `cluster`: the Cluster object there |
//! | `component` | shared shapes of processes that run as Deployments; `hex`: bytes as text |
//! | `managed_resources` | objects that resource-manager applies; `rbac`: roles and bindings among them |
//! | `shoot_cleanup` | empties a shoot that is deleted, through the API of the shoot |
//! | `preparation` | the inputs of a preparation for a shoot of a different seed |
//! | `preparation_state` | the keys of a preparation |

mod api_server;
mod cluster;
mod component;
mod controllers;
mod etcd;
mod extensions;
mod facts;
mod findings;
mod hex;
mod managed_resources;
mod namespace;
mod nodes;
mod ownership;
mod preparation;
mod preparation_state;
mod rbac;
mod residency;
pub mod secrets;
mod settings;
mod shoot_cleanup;
pub mod shoot_state;
mod system_components;
mod task;
mod tunnel;
mod verbs;

pub use api_server::cluster_identity::ClusterIdentity;
pub use api_server::kube_apiserver::{KubeApiserver, KubeApiserverService};
pub use api_server::kube_apiserver_exposure::KubeApiserverExposure;
pub use api_server::shoot_api::ShootApi;
pub use api_server::user_kubeconfig::Kubeconfig;
pub use cluster::{CloudProviderSecret, Cluster};
pub use controllers::controller_leaders;
pub use controllers::controller_leaders::ControllerLeaders;
pub use controllers::kube_controller_manager::KubeControllerManager;
pub use controllers::kube_scheduler::KubeScheduler;
pub use etcd::backup_entry::{BackupEntry, SourceBackupEntry};
pub use etcd::backups::Backups;
pub use etcd::copied::{CopyReport, ProvenEnd};
pub use etcd::copy::EtcdCopy;
pub use etcd::ended::EndedEtcd;
pub use etcd::etcds::Etcds;
pub use etcd::prepared_entry::PreparedBackupEntry;
pub use extensions::control_plane::ControlPlane;
pub use extensions::dns_records::DnsRecords;
pub use extensions::further_extensions::FurtherExtensions;
pub use extensions::infrastructure::Infrastructure;
pub use extensions::kinds::{
    AllExtensions, AnyExtension, ForcedExtensions, GenericExtensions, Kinds, OtherExtensions,
};
pub use extensions::resource as extension_resource;
pub use extensions::resource::ExtensionResource;
pub use extensions::shared_close_deadline::SharedCloseDeadline;
pub use extensions::subnet_isolation::SubnetIsolation;
pub use facts::{Facts, tenant};
pub use findings::{ClaimEvidence, MoveFindings};
pub use managed_resources::{ForcedManagedResources, ManagedResources};
pub use namespace::Namespace;
pub use nodes::forced_machines::ForcedMachines;
pub use nodes::machine::MachineResources;
pub use nodes::machines_lost_by_force::machines_lost_by_force;
pub use nodes::{ContainerRuntimes, Network, NodeExtensions, NodeRights, OperatingSystemConfigs, Workers};
pub use ownership::applied_terms::AppliedTerms;
pub use ownership::claim::{ClaimPlan, ClaimSteps};
pub use ownership::conflicts::ConflictLimit;
pub use ownership::departure::Departure;
pub use ownership::fence::Fence;
pub use ownership::fence_clock::{FenceClock, Fences};
pub use ownership::hand_over::HandOverVerdict;
pub use ownership::opened_epoch::OpenedEpoch;
pub use ownership::owner_record::{OwnerRecord, OwnerRecordPlan};
pub use ownership::writers::Writers;
pub use placement::Operation;
pub use preparation::PreparationFacts;
pub use preparation_state::PreparationState;
pub use residency::{NamespaceState, Residency, Tenant, left_in, prepared_in};
pub use secrets::{ExtensionSecrets, Secrets};
pub use settings::{COREDNS_TAG, MEBIBYTE, SHOOT_STATE_LIMIT_MEBIBYTES, Settings, Timeouts, UrlOf, Wait};
pub use shoot_cleanup::ShootObjects;
pub use shoot_state::ShootState;
pub use system_components::{ApiProxy, CoreDns, KubeProxy};
pub use task::{ExternalSystem, ExternalSystems, PartTask};
pub use tunnel::{TunnelAgents, TunnelServer};
pub use verbs::{Deploy, Destroy, Migrate, Sleep, Tasks};

use api::meta::ErrorCode;
use runtime::{Error, client::apply::FieldManager};

/// The gardenlet writes the objects that this crate decides on.
pub const FIELD_MANAGER: FieldManager = FieldManager("gardenlet");

/// An error that ends only when a user or an operator changes a specification.
pub(crate) fn configuration_problem(message: impl Into<String>) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, message)
}

/// Reads a typed object out of JSON that this crate wrote.
pub(crate) fn from_json<K: serde::de::DeserializeOwned>(value: serde_json::Value) -> runtime::Result<K> {
    serde_json::from_value(value)
        .map_err(|e| Error::bug("an object that was built here is none").caused_by(e))
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
