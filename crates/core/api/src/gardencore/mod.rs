//! `core.gardener.cloud/v1beta1`, served by the garden cluster (`ControllerDeployment` in version `v1`).

mod backup_bucket;
mod backup_entry;
pub mod cloud_profile;
mod controller_deployment;
mod controller_installation;
mod controller_registration;
mod internal_secret;
mod project;
mod secret_binding;
pub mod seed;
pub mod shoot;
mod shoot_state;

pub use backup_bucket::{BackupBucket, BackupBucketProvider, BackupBucketSpec, BackupBucketStatus};
pub use backup_entry::{BackupEntry, BackupEntrySpec, BackupEntryStatus};
pub use cloud_profile::{CloudProfile, CloudProfileSpec};
pub use controller_deployment::{
    ControllerDeployment, ControllerDeploymentFields, HelmControllerDeployment, OCIRepository,
};
pub use controller_installation::{
    ControllerInstallation, ControllerInstallationSpec, ControllerInstallationStatus,
};
pub use controller_registration::{
    ClusterType, ControllerDeploymentPolicy, ControllerRegistration, ControllerRegistrationDeployment,
    ControllerRegistrationSpec, ControllerResource, ControllerResourceLifecycle, DeploymentRef,
    LifecycleStrategy,
};
pub use internal_secret::{InternalSecret, InternalSecretFields};
pub use project::{Project, ProjectMember, ProjectPhase, ProjectSpec, ProjectStatus};
pub use secret_binding::{SecretBinding, SecretBindingFields, SecretBindingProvider};
pub use seed::{Seed, SeedSpec, SeedStatus};
pub use shoot::{Shoot, ShootSpec, ShootStatus};
pub use shoot_state::{
    ChunkAttempt, ExtensionResourceState, GardenerResourceData, ShootState, ShootStateSpec, StateChunk,
    StateInChunks,
};
