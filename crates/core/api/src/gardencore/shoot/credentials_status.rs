//! How far the renewal of a Shoot's credentials goes.

use crate::derive::{Deserialize, JsonSchema, Serialize, Time, skip_serializing_none};

/// A shoot's credentials.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShootCredentials {
    /// Progress of the rotation of the shoot's credentials.
    pub rotation: Option<ShootCredentialsRotation>,
    /// Encryption of the data in etcd.
    pub encryption_at_rest: Option<EncryptionAtRest>,
}

/// Encryption in etcd.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EncryptionAtRest {
    /// Resources that are encrypted besides Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Provider and algorithm of the encryption.
    pub provider: Option<super::EncryptionProvider>,
}

/// Renewal of credentials.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShootCredentialsRotation {
    /// Rotation of the certificate authorities. Never set.
    pub certificate_authorities: Option<PhasedRotation>,
    /// Rotation of the static kubeconfig.
    pub kubeconfig: Option<SimpleRotation>,
    /// Rotation of the SSH key of the nodes.
    pub ssh_keypair: Option<SimpleRotation>,
    /// Rotation of the credentials for monitoring.
    pub observability: Option<SimpleRotation>,
    /// Rotation of the key that signs the tokens of service accounts. Never set.
    pub service_account_key: Option<PhasedRotation>,
    /// Rotation of the key that encrypts resources in etcd. Never set.
    pub etcd_encryption_key: Option<PhasedRotation>,
}

/// Rotation in a single step.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimpleRotation {
    /// When the last rotation began.
    pub last_initiation_time: Option<Time>,
    /// When the last rotation ended.
    pub last_completion_time: Option<Time>,
}

/// Rotation in two steps. Between both steps, old and new credentials are valid.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhasedRotation {
    /// Phase of the rotation, such as `Preparing` or `Completed`.
    pub phase: CredentialsRotationPhase,
    /// When the last rotation ended.
    pub last_completion_time: Option<Time>,
    /// When the last rotation began.
    pub last_initiation_time: Option<Time>,
    /// When the first step of the last rotation ended.
    pub last_initiation_finished_time: Option<Time>,
    /// When the second step of the last rotation began.
    pub last_completion_triggered_time: Option<Time>,
    /// Worker pools whose machines know only the old credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending_workers_rollouts: Vec<PendingWorkersRollout>,
}

/// How far a renewal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CredentialsRotationPhase {
    /// The first step runs.
    Preparing,
    /// The first step runs, and machines are left alone.
    PreparingWithoutWorkersRollout,
    /// Machines are still to be replaced.
    WaitingForWorkersRollout,
    /// The first step is done.
    Prepared,
    /// The second step runs.
    Completing,
    /// The rotation is done.
    Completed,
}

/// A worker pool with machines that are still to be replaced.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingWorkersRollout {
    /// Name of the worker pool with nodes that are still to be replaced.
    pub name: String,
    /// When the rotation began that needs new nodes.
    pub last_initiation_time: Option<Time>,
}
