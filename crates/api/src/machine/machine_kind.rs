//! `Machine`: one machine and its node.

use k8s_openapi::{
    api::core::v1::{NodeAddress, NodeCondition},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::{ClassSpec, MachineLastOperation, NodeTemplateSpec};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, Serialize, Time, skip_serializing_none},
    meta::Duration,
};

/// What the machine is to be.
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
    /// Its id at the provider.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// Labels, annotations and taints that the node gets.
    pub node_template: Option<NodeTemplateSpec>,
    /// How long pods may take to leave.
    pub drain_timeout: Option<Duration>,
    /// How long it may be unhealthy.
    pub health_timeout: Option<Duration>,
    /// How long it may take to come.
    pub creation_timeout: Option<Duration>,
    /// How long an update in place may take.
    pub in_place_update_timeout: Option<Duration>,
    /// How long it stays when it is to be looked at.
    pub machine_preserve_timeout: Option<Duration>,
    /// Whether it stays although it is unhealthy.
    pub disable_health_timeout: Option<bool>,
    /// How often a pod is asked to leave.
    pub max_evict_retries: Option<i32>,
    /// Conditions that make it unhealthy, separated by commas.
    pub node_conditions: Option<String>,
}

/// How the machine is.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// Addresses of the machine's node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// Its node's conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<NodeCondition>,
    /// What was last done with it.
    pub last_operation: Option<MachineLastOperation>,
    /// Phase of the machine, and since when.
    pub current_status: Option<CurrentStatus>,
    /// What the provider must be given back to find it again.
    pub last_known_state: Option<String>,
}

/// How a machine is now.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CurrentStatus {
    /// Phase of the machine, such as `Pending`, `Running`, `Terminating`, `Unknown` or `Failed`.
    pub phase: Option<String>,
    /// Whether it has to change within a time.
    pub timeout_active: Option<bool>,
    /// When the phase changed for the last time.
    pub last_update_time: Option<Time>,
    /// Until when it stays to be looked at.
    pub preserve_expiry_time: Option<Time>,
}

/// From what machines are made.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineTemplateSpec {
    /// Their labels and annotations.
    #[serde(default)]
    #[schemars(schema_with = "crate::meta::object_schema")]
    pub metadata: Option<ObjectMeta>,
    /// What they are to be.
    pub spec: Option<MachineSpec>,
}
