//! `OperatingSystemConfig`: files and units of machines, and the format of the operating system for both.

mod containerd;
mod files;

pub use containerd::*;
pub use files::*;

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, KubeSchema, Serialize, Time, skip_serializing_none},
    meta::SecretReference,
};

/// The wanted configuration of machines.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "OperatingSystemConfig",
    namespaced,
    status = "OperatingSystemConfigStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "osc",
    doc = "Files and units of machines, and how their system takes them.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "The system."
    ),
    printcolumn(
        name = "Purpose",
        type_ = "string",
        json_path = ".spec.purpose",
        description = "The purpose."
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.lastOperation.state",
        description = "How the last operation stands."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// The container runtime of the machines.
    pub cri_config: Option<CRIConfig>,
    /// Purpose: `provision` (user data for the first boot) or `reconcile` (running machines).
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub purpose: OperatingSystemConfigPurpose,
    /// Systemd units that the machine gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<Unit>,
    /// Files that the machine gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// Versions and credentials for an update in place. Has no effect: machines are replaced.
    pub in_place_updates: Option<OSCInPlaceUpdates>,
}

/// The purpose of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OperatingSystemConfigPurpose {
    /// For a machine's first start.
    #[default]
    Provision,
    /// For running machines.
    Reconcile,
}

impl OperatingSystemConfigPurpose {
    /// The word in manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provision => "provision",
            Self::Reconcile => "reconcile",
        }
    }
}

/// Versions and credentials for an update in place.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OSCInPlaceUpdates {
    /// Version of the operating system after the update. Has no effect: machines are replaced.
    pub operating_system_version: String,
    /// Version of the kubelet after the update. Has no effect: machines are replaced.
    pub kubelet: String,
    /// Rotation of credentials in the update. Has no effect: machines are replaced.
    pub credentials_rotation: Option<OSCCredentialsRotation>,
}

/// Credentials of machines after an update.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OSCCredentialsRotation {
    /// Rotation of certificate authorities in the update. Has no effect: machines are replaced.
    pub certificate_authorities: Option<OSCRotation>,
    /// Rotation of the key of service accounts in the update. Has no effect: machines are replaced.
    pub service_account_key: Option<OSCRotation>,
}

/// Since when credentials are renewed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OSCRotation {
    /// Time at which the last rotation began. Has no effect: machines are replaced.
    pub last_initiation_time: Option<Time>,
}

/// Observed state of the configuration.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatingSystemConfigStatus {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultStatus,
    /// Units the provider adds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_units: Vec<Unit>,
    /// Files the provider adds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_files: Vec<File>,
    /// User data, which machines run at the first boot.
    pub cloud_config: Option<CloudConfig>,
    /// Command for an update in place, from the provider. Has no effect: machines are replaced.
    pub in_place_updates: Option<OSCInPlaceUpdatesStatus>,
}

/// User data, which machines run at the first boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudConfig {
    /// Secret with the user data of the machine.
    pub secret_ref: SecretReference,
}

/// How the system is updated in place.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OSCInPlaceUpdatesStatus {
    /// Command that updates the operating system in place. Has no effect: machines are replaced.
    pub os_update: Option<OSUpdate>,
}

/// The command that updates the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OSUpdate {
    /// Path of the program that updates the operating system. Has no effect: machines are replaced.
    pub command: String,
    /// Arguments of the program. Has no effect: machines are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}

extension_object!(
    OperatingSystemConfig,
    flat_status,
    fn purpose(&self) -> Option<&str> {
        Some(self.spec.purpose.as_str())
    }
);
