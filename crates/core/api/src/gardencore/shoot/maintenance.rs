//! Automatic maintenance of a Shoot, and receivers of alerts.

use crate::{
    derive::{Deserialize, JsonSchema, Serialize, skip_serializing_none},
    meta::Duration,
};

/// Time window and settings of the maintenance.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// Versions that are updated automatically. Has no effect.
    pub auto_update: Option<MaintenanceAutoUpdate>,
    /// Time of the day for maintenance. Has no effect.
    pub time_window: Option<MaintenanceTimeWindow>,
    /// Whether changes of the specification wait for that time.
    pub confine_spec_update_rollout: Option<bool>,
    /// Automatic rotation of credentials. Has no effect.
    pub auto_rotation: Option<MaintenanceAutoRotation>,
}

/// Versions that are updated automatically.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceAutoUpdate {
    /// Kubernetes' patch versions.
    pub kubernetes_version: bool,
    /// Whether machine images are updated automatically. Has no effect.
    pub machine_image_version: Option<bool>,
}

/// A time of day, as `220000+0100`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MaintenanceTimeWindow {
    /// Begin of the time window, such as `220000+0100`. Has no effect.
    #[schemars(
        length(max = 16),
        regex(pattern = r"([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-][0-1][0-4][0-5]0")
    )]
    pub begin: String,
    /// End of the time window, such as `230000+0100`. Has no effect.
    #[schemars(
        length(max = 16),
        regex(pattern = r"([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-][0-1][0-4][0-5]0")
    )]
    pub end: String,
}

/// Automatic rotation.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MaintenanceAutoRotation {
    /// Credentials that are rotated automatically. Has no effect.
    pub credentials: Option<MaintenanceCredentialsAutoRotation>,
}

/// Credentials that are rotated automatically.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceCredentialsAutoRotation {
    /// Automatic rotation of the credentials for monitoring. Has no effect.
    pub observability: Option<MaintenanceRotationConfig>,
    /// Automatic rotation of the nodes' SSH key. Has no effect.
    pub ssh_keypair: Option<MaintenanceRotationConfig>,
    /// Automatic rotation of the key that encrypts resources in etcd.
    pub etcd_encryption_key: Option<MaintenanceRotationConfig>,
}

/// How often credentials are renewed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceRotationConfig {
    /// Whether the credentials are rotated automatically. Has no effect.
    pub enabled: Option<bool>,
    /// Time between two rotations. Has no effect.
    pub rotation_period: Option<Duration>,
}

/// Settings of monitoring.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Monitoring {
    /// Receivers of alerts. Has no effect.
    pub alerting: Option<Alerting>,
}

/// Receivers of alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alerting {
    /// Email addresses that receive alerts. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email_receivers: Vec<String>,
}
