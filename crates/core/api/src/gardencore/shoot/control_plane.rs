//! Settings of a Shoot's control plane as a whole.

use crate::derive::{Deserialize, JsonSchema, KubeSchema, Serialize, skip_serializing_none};

/// How the control plane is spread.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlane {
    /// Failures that the control plane survives. Has no effect.
    pub high_availability: Option<HighAvailability>,
    /// Zones of the seed for the control plane. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
}

/// How much a control plane survives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HighAvailability {
    /// Failures that the control plane survives. Has no effect.
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub failure_tolerance: FailureTolerance,
}

/// Failures a control plane survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureTolerance {
    /// Failure that the control plane tolerates: of a node or of a zone. Has no effect.
    #[serde(rename = "type")]
    pub type_: FailureToleranceType,
}

/// Reach of failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailureToleranceType {
    /// Failure of a node.
    #[default]
    Node,
    /// Failure of a zone.
    Zone,
}

/// Whether and when a cluster sleeps.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hibernation {
    /// Whether the shoot is to be hibernated now. Default: false.
    pub enabled: Option<bool>,
    /// Schedules for hibernation and wake-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<HibernationSchedule>,
}

/// When a cluster falls asleep and wakes up, as cron expressions.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HibernationSchedule {
    /// Time at which the shoot is hibernated, as a cron expression. Absent if the schedule does not hibernate
    /// the shoot.
    pub start: Option<String>,
    /// Time at which the shoot wakes up, as a cron expression. Absent if the schedule does not wake the
    /// shoot.
    pub end: Option<String>,
    /// Time zone of `start` and `end`, such as `Europe/Berlin`. Default: UTC.
    pub location: Option<String>,
}
