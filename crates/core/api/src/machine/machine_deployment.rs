//! `MachineDeployment`: machines of a pool in a zone, replaced set by set.

use k8s_openapi::apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString};

use super::{FailedMachine, MachineTemplateSpec};
use crate::derive::{CustomResource, Deserialize, JsonSchema, Serialize, Time, skip_serializing_none};

/// Number and template of machines, and the strategy of the replacement.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "machine.sapcloud.io",
    version = "v1alpha1",
    kind = "MachineDeployment",
    namespaced,
    status = "MachineDeploymentStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "mcd",
    doc = "Machines of a pool in a zone, replaced set by set.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "How many are ready."
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "How many are wanted."
    ),
    printcolumn(
        name = "Up-to-date",
        type_ = "integer",
        json_path = ".status.updatedReplicas",
        description = "How many are from the newest template."
    ),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableReplicas",
        description = "How many are ready long enough."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentSpec {
    /// Number of machines that the deployment should have.
    pub replicas: Option<i32>,
    /// Selector of the sets of the deployment.
    pub selector: Option<LabelSelector>,
    /// Template of the machines. A change replaces the machines.
    pub template: MachineTemplateSpec,
    /// Strategy of the replacement of machines.
    pub strategy: Option<MachineDeploymentStrategy>,
    /// Time in seconds for which a machine must be ready to count as available. Default: 0.
    pub min_ready_seconds: Option<i32>,
    /// Number of old MachineSets that are kept. Default: 10.
    pub revision_history_limit: Option<i32>,
    /// Whether the replacement of machines is paused.
    pub paused: Option<bool>,
    /// Revision to which the deployment is rolled back. Has no effect.
    pub rollback_to: Option<RollbackConfig>,
    /// Time in seconds without progress after which an update counts as failed. Default: 600.
    pub progress_deadline_seconds: Option<i32>,
    /// Highest number of failed machines that are preserved for an inspection. Has no effect.
    pub auto_preserve_failed_machine_max: Option<i32>,
}

/// How machines are replaced.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentStrategy {
    /// Type of the strategy: `RollingUpdate` or `Recreate`. `InPlaceUpdate` is refused. Default:
    /// `RollingUpdate`.
    pub type_: Option<String>,
    /// Bounds of a rolling update.
    pub rolling_update: Option<RollingUpdateMachineDeployment>,
    /// Bounds of an update in place. Has no effect: updates in place are refused.
    pub in_place_update: Option<InPlaceUpdateMachineDeployment>,
}

/// Bounds of a rolling update.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollingUpdateMachineDeployment {
    /// Number or percentage of machines that may be missing during an update.
    pub max_unavailable: Option<IntOrString>,
    /// Number or percentage of additional machines during an update.
    pub max_surge: Option<IntOrString>,
}

/// Bounds of an update in place.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdateMachineDeployment {
    /// Number or percentage of machines that may be missing. Has no effect: updates in place are refused.
    pub max_unavailable: Option<IntOrString>,
    /// Number or percentage of additional machines. Has no effect: updates in place are refused.
    pub max_surge: Option<IntOrString>,
    /// Initiator of the update: `Auto` or `Manual`. Has no effect: updates in place are refused.
    pub orchestration_type: Option<String>,
}

/// The target of a rollback.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RollbackConfig {
    /// The revision of the rollback. Default: the revision before the present revision. Has no effect.
    pub revision: Option<i64>,
}

/// Observed state of the machines.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentStatus {
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// Number of machines that the deployment has.
    pub replicas: Option<i32>,
    /// Number of machines of the newest template.
    pub updated_replicas: Option<i32>,
    /// Number of machines with a ready node.
    pub ready_replicas: Option<i32>,
    /// Number of machines that have been ready for `minReadySeconds`.
    pub available_replicas: Option<i32>,
    /// Number of machines that are missing or not available.
    pub unavailable_replicas: Option<i32>,
    /// Conditions of the deployment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<MachineDeploymentCondition>,
    /// Number of times that the name of a new MachineSet was in use.
    pub collision_count: Option<i32>,
    /// Machines of the deployment that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_machines: Vec<FailedMachine>,
    /// Number of failed machines that are preserved for an inspection.
    pub preserved_failed_replicas: Option<i32>,
}

/// An aspect of a deployment's state.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentCondition {
    /// Type of the condition, such as `Available`.
    pub type_: String,
    /// Status of the condition: `True`, `False` or `Unknown`.
    pub status: String,
    /// When the condition was last written.
    pub last_update_time: Option<Time>,
    /// When `status` last changed.
    pub last_transition_time: Option<Time>,
    /// Reason of the status, as a single CamelCase word.
    pub reason: Option<String>,
    /// Explanation of the status, for people.
    pub message: Option<String>,
}
