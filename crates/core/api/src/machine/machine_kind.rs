//! `Machine`: a machine and the node of the machine.

use k8s_openapi::{
    api::core::v1::{NodeAddress, NodeCondition},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::{ClassSpec, MachineLastOperation, NodeTemplateSpec};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, Serialize, Time, skip_serializing_none},
    meta::Duration,
};

/// The wanted state of the machine.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "machine.sapcloud.io",
    version = "v1alpha1",
    kind = "Machine",
    namespaced,
    status = "MachineStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "mc",
    doc = "One machine and its node.",
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.currentStatus.phase",
        description = "How it is."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Node",
        type_ = "string",
        json_path = ".metadata.labels.node",
        description = "Its node."
    ),
    printcolumn(
        name = "ProviderID",
        type_ = "string",
        json_path = ".spec.providerID",
        priority = "1",
        description = "Its id at the provider."
    )
)]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// Reference to the MachineClass of the machine.
    pub class: Option<ClassSpec>,
    /// Id of the machine at the provider.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// Labels, annotations and taints that the node gets.
    pub node_template: Option<NodeTemplateSpec>,
    /// Longest time for pods to leave the node. Default: 2h.
    pub drain_timeout: Option<Duration>,
    /// Longest time for which the machine may be unhealthy.
    pub health_timeout: Option<Duration>,
    /// Longest time until the machine has joined the cluster.
    pub creation_timeout: Option<Duration>,
    /// Longest duration of an update in place. Has no effect: updates in place are refused.
    pub in_place_update_timeout: Option<Duration>,
    /// Time for which a failed machine is preserved for an inspection. Has no effect.
    pub machine_preserve_timeout: Option<Duration>,
    /// Whether the machine is kept although unhealthy.
    pub disable_health_timeout: Option<bool>,
    /// Highest number of evictions of a pod. Has no effect: `drainTimeout` bounds the drain.
    pub max_evict_retries: Option<i32>,
    /// Conditions of the node that make the machine unhealthy, separated by commas.
    pub node_conditions: Option<String>,
}

/// Observed state of the machine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// Addresses of the machine's node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// Conditions of the machine's node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<NodeCondition>,
    /// Last operation on the machine.
    pub last_operation: Option<MachineLastOperation>,
    /// Phase of the machine, and since when.
    pub current_status: Option<CurrentStatus>,
    /// State that the provider needs to find the machine again.
    pub last_known_state: Option<String>,
}

/// How a machine is now.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CurrentStatus {
    /// Phase of the machine, such as `Pending`, `Running`, `Terminating`, `Unknown` or `Failed`.
    pub phase: Option<String>,
    /// Whether a timeout of the phase is active.
    pub timeout_active: Option<bool>,
    /// When the phase changed for the last time.
    pub last_update_time: Option<Time>,
    /// Time until which a failed machine is preserved for an inspection. Never set.
    pub preserve_expiry_time: Option<Time>,
}

/// Template of machines.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineTemplateSpec {
    /// Labels and annotations of the machines.
    #[serde(default)]
    #[schemars(schema_with = "crate::meta::object_schema")]
    pub metadata: Option<ObjectMeta>,
    /// Wanted state of the machines.
    pub spec: Option<MachineSpec>,
}
