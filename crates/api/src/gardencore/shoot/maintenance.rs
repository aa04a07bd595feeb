//! When a Shoot is looked after without being asked, and who is told.

use crate::{
    derive::{Deserialize, JsonSchema, Serialize, skip_serializing_none},
    meta::Duration,
};

/// When it is looked after, and how.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Maintenance {
    /// What is brought up to date.
    pub auto_update: Option<MaintenanceAutoUpdate>,
    /// Time of the day for maintenance. Has no effect.
    pub time_window: Option<MaintenanceTimeWindow>,
    /// Whether changes of the specification wait for that time.
    pub confine_spec_update_rollout: Option<bool>,
    /// Automatic rotation of credentials. Has no effect.
    pub auto_rotation: Option<MaintenanceAutoRotation>,
}

/// What is brought up to date.
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
    /// Its begin.
    #[schemars(
        length(max = 16),
        regex(pattern = r"([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-][0-1][0-4][0-5]0")
    )]
    pub begin: String,
    /// Its end.
    #[schemars(
        length(max = 16),
        regex(pattern = r"([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-][0-1][0-4][0-5]0")
    )]
    pub end: String,
}

/// What is renewed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MaintenanceAutoRotation {
    /// Credentials that are rotated automatically. Has no effect.
    pub credentials: Option<MaintenanceCredentialsAutoRotation>,
}

/// Which credentials are renewed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaintenanceCredentialsAutoRotation {
    /// Of what watches the shoot.
    pub observability: Option<MaintenanceRotationConfig>,
    /// Automatic rotation of the nodes' SSH key. Has no effect.
    pub ssh_keypair: Option<MaintenanceRotationConfig>,
    /// Of etcd's encryption.
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

/// What is watched.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Monitoring {
    /// Receivers of alerts. Has no effect.
    pub alerting: Option<Alerting>,
}

/// Who is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alerting {
    /// Email addresses that receive alerts. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub email_receivers: Vec<String>,
}
