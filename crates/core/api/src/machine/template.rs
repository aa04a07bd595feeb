//! Common types of the machine kinds.

use k8s_openapi::{api::core::v1::NodeSpec, apimachinery::pkg::apis::meta::v1::ObjectMeta};

use crate::derive::{Deserialize, JsonSchema, Serialize, Time, skip_serializing_none};

/// Labels, annotations and taints for the nodes of machines.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeTemplateSpec {
    /// Labels and annotations of the Node.
    #[serde(default)]
    #[schemars(schema_with = "crate::meta::object_schema")]
    pub metadata: Option<ObjectMeta>,
    /// Properties of the Node. Only `taints` has an effect.
    pub spec: Option<NodeSpec>,
}

/// A MachineClass.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassSpec {
    /// API group of the class.
    pub api_group: Option<String>,
    /// Kind of the class: `MachineClass`.
    pub kind: Option<String>,
    /// Name of the class, in the namespace of the machine.
    pub name: Option<String>,
}

/// The last operation on a machine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineLastOperation {
    /// Description of the operation for people.
    pub description: Option<String>,
    /// The provider's code of the error.
    pub error_code: Option<String>,
    /// When the operation changed for the last time.
    pub last_update_time: Option<Time>,
    /// State of the operation: `Processing`, `Failed` or `Successful`.
    pub state: Option<String>,
    /// Type of the operation: `Create`, `Update`, `HealthCheck` or `Delete`.
    pub type_: Option<String>,
}

/// A machine that failed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedMachine {
    /// Name of the failed Machine.
    pub name: Option<String>,
    /// Id of the machine at the provider.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// Last operation on the machine.
    pub last_operation: Option<MachineLastOperation>,
    /// Name of the MachineSet of the machine.
    pub owner_ref: Option<String>,
}
