//! What a Shoot says of its control plane as a whole.

use crate::derive::{Deserialize, JsonSchema, KubeSchema, Serialize, skip_serializing_none};

/// How the control plane is spread.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlane {
    /// How much it survives.
    pub high_availability: Option<HighAvailability>,
    /// Zones of the seed it runs in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
}

/// How much a control plane survives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct HighAvailability {
    /// The failures it survives.
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
    /// One node.
    #[default]
    Node,
    /// One zone.
    Zone,
}

/// Whether and when a cluster sleeps.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hibernation {
    /// Whether it is to sleep now.
    pub enabled: Option<bool>,
    /// When it falls asleep and wakes up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<HibernationSchedule>,
}

/// When a cluster falls asleep and wakes up, as cron expressions.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HibernationSchedule {
    /// When it falls asleep.
    pub start: Option<String>,
    /// Time at which the shoot wakes up, as a cron expression. Absent if the schedule does not wake the
    /// shoot.
    pub end: Option<String>,
    /// The time zone of both.
    pub location: Option<String>,
}
