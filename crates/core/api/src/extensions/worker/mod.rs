//! `Worker`: the machines of a shoot's pools.

mod pool;

pub use pool::*;

use k8s_openapi::ByteString;

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{
        BTreeMap, CustomResource, Deserialize, JsonSchema, RawExtension, Serialize, Time,
        skip_serializing_none,
    },
    meta::SecretReference,
};

/// The wanted worker pools of a shoot.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "Worker",
    namespaced,
    status = "WorkerStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The machines of a shoot's pools.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "The provider."
    ),
    printcolumn(
        name = "Region",
        type_ = "string",
        json_path = ".spec.region",
        description = "The region."
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.lastOperation.state",
        description = "How the last operation stands."
    ),
    printcolumn(
        name = "Isolated Zone",
        type_ = "string",
        json_path = ".status.isolatedZoneCode",
        description = "The zone that is cut off.",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct WorkerSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// Provider status of the Infrastructure.
    pub infrastructure_provider_status: Option<RawExtension>,
    /// Region of the machines, as the provider calls the region.
    pub region: String,
    /// Credentials of the account.
    pub secret_ref: SecretReference,
    /// Public SSH key that may log in to the machines.
    #[serde(default)]
    #[schemars(schema_with = "crate::meta::bytes_schema")]
    pub ssh_public_key: Option<ByteString>,
    /// Worker pools of the shoot.
    pub pools: Vec<WorkerPool>,
    /// The isolated zone, as the provider's physical ID: the zone gets no machines (RZ-20).
    #[serde(rename = "isolatedZoneID")]
    pub isolated_zone_id: Option<String>,
}

/// Observed state of the machines.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStatus {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultStatus,
    /// MachineDeployments of the pools, by zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_deployments: Vec<WorkerMachineDeployment>,
    /// Time at which `machineDeployments` last changed.
    pub machine_deployments_last_update_time: Option<Time>,
    /// State of updates in place. Has no effect: machines are replaced.
    pub in_place_updates: Option<WorkerInPlaceUpdates>,
    /// The account's name of the isolated zone (RZ-20).
    pub isolated_zone_code: Option<String>,
}

/// A machine deployment of a pool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerMachineDeployment {
    /// Name of the MachineDeployment.
    pub name: String,
    /// Lowest number of machines of the MachineDeployment.
    pub minimum: i32,
    /// Highest number of machines of the MachineDeployment.
    pub maximum: i32,
    /// Priority of the pool in scaling; a higher value is scaled first.
    pub priority: Option<i32>,
    /// Highest number of failed machines that are preserved for an inspection. Has no effect.
    pub auto_preserve_failed_machine_max: Option<i32>,
}

/// Updates in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerInPlaceUpdates {
    /// Hash of the last update of each worker pool, by pool. Has no effect: machines are replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub worker_pool_to_hash_map: BTreeMap<String, String>,
}

extension_object!(
    Worker,
    flat_status,
    fn secret_ref(&self) -> Option<&SecretReference> {
        Some(&self.spec.secret_ref)
    }
);
