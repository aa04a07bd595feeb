//! `MachineSet`: machines that are alike.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{ClassSpec, FailedMachine, MachineLastOperation, MachineTemplateSpec};
use crate::derive::{CustomResource, Deserialize, JsonSchema, Serialize, Time, skip_serializing_none};

/// Number and template of machines.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "machine.sapcloud.io",
    version = "v1alpha1",
    kind = "MachineSet",
    namespaced,
    status = "MachineSetStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "mcs",
    doc = "Machines that are alike.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "How many are wanted."
    ),
    printcolumn(
        name = "Current",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "How many there are."
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "How many are ready."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetSpec {
    /// Number of machines that the set should have.
    pub replicas: Option<i32>,
    /// Selector of the machines of the set.
    pub selector: Option<LabelSelector>,
    /// Reference to the MachineClass of the set's machines.
    pub machine_class: Option<ClassSpec>,
    /// Template of the set's machines.
    pub template: Option<MachineTemplateSpec>,
    /// Time in seconds for which a machine must be ready to count as available. Default: 0.
    pub min_ready_seconds: Option<i32>,
    /// Highest number of failed machines that are preserved for an inspection. Has no effect.
    pub auto_preserve_failed_machine_max: Option<i32>,
}

/// Observed state of the machines.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetStatus {
    /// Number of machines that the set has.
    pub replicas: Option<i32>,
    /// Number of machines with all labels of the template.
    pub fully_labeled_replicas: Option<i32>,
    /// Number of machines with a ready node.
    pub ready_replicas: Option<i32>,
    /// Number of machines that have been ready for `minReadySeconds`.
    pub available_replicas: Option<i32>,
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// Conditions of the MachineSet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_set_condition: Vec<MachineSetCondition>,
    /// Type and state of the last operation on the set.
    pub last_operation: Option<MachineLastOperation>,
    /// Machines of the MachineSet that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_machines: Vec<FailedMachine>,
    /// Number of failed machines that are preserved for an inspection. Never set.
    pub auto_preserve_failed_machine_count: Option<i32>,
    /// Number of failed machines that are preserved for an inspection.
    pub preserved_failed_replicas: Option<i32>,
}

/// An aspect of a set's state.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineSetCondition {
    /// Type of the condition, such as `ReplicaFailure`.
    pub type_: String,
    /// Status of the condition: `True`, `False` or `Unknown`.
    pub status: String,
    /// Time at which `status` last changed.
    pub last_transition_time: Option<Time>,
    /// Reason of the status, as a single CamelCase word.
    pub reason: Option<String>,
    /// Explanation of the status, for people.
    pub message: Option<String>,
}
