//! `extensions.gardener.cloud/v1alpha1`: the contract between the gardenlet and providers, served by seeds.
//!
//! A gardenlet writes the `spec`, a provider the `status`; there is no other connection between both. All
//! kinds share [`DefaultSpec`] and [`DefaultStatus`], and [`ExtensionObject`] lets the same reconciler and
//! the same deploy/migrate/restore/wait serve all kinds.

mod backup_bucket;
mod backup_entry;
mod bastion;
mod cluster;
mod container_runtime;
mod control_plane;
mod dns_record;
mod extension;
mod infrastructure;
mod network;
mod object;
pub mod operating_system_config;
mod self_hosted_shoot_exposure;
mod subnet_isolation;
pub mod worker;

pub use backup_bucket::{BackupBucket, BackupBucketSpec, BackupBucketStatus};
pub use backup_entry::{BackupEntry, BackupEntrySpec};
pub use bastion::{Bastion, BastionIngressPolicy, BastionSpec, BastionStatus};
pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use container_runtime::{ContainerRuntime, ContainerRuntimeSpec, ContainerRuntimeWorkerPool};
pub use control_plane::{CloudControllerManager, ControlPlane, ControlPlaneSpec, NodeIPAM};
pub use dns_record::{DNSRecord, DNSRecordSpec, DNSRecordStatus, OWNER_RECORD_TTL_SECONDS, RecordType};
pub use extension::{Extension, ExtensionSpec};
pub use infrastructure::{
    Infrastructure, InfrastructureSpec, InfrastructureStatus, InfrastructureStatusNetworking,
};
pub use network::{Network, NetworkSpec, NetworkStatus};
pub use object::{DefaultSpec, DefaultStatus, ExtensionClass, ExtensionObject};
pub use operating_system_config::{
    OperatingSystemConfig, OperatingSystemConfigPurpose, OperatingSystemConfigSpec,
    OperatingSystemConfigStatus,
};
pub use self_hosted_shoot_exposure::{
    ControlPlaneEndpoint, SelfHostedShootExposure, SelfHostedShootExposureSpec, SelfHostedShootExposureStatus,
};
pub use subnet_isolation::{NETWORK_CLOSED, SubnetIsolation, SubnetIsolationSpec};
pub use worker::{Worker, WorkerPool, WorkerSpec, WorkerStatus};
