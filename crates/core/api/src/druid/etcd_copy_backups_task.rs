//! `EtcdCopyBackupsTask`: backups are copied once from a source store to a target store (R17-25..R17-28).

use super::{EtcdCondition, StoreSpec};
use crate::derive::{BTreeMap, CustomResource, Deserialize, JsonSchema, Serialize, skip_serializing_none};

/// Source and target of the copy, and the selection of backups.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "druid.gardener.cloud",
    version = "v1alpha1",
    kind = "EtcdCopyBackupsTask",
    namespaced,
    status = "EtcdCopyBackupsTaskStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A single copy of backups between two stores. No controller of the suite acts on this kind.",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct EtcdCopyBackupsTaskSpec {
    /// Labels of the pod that copies.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_labels: BTreeMap<String, String>,
    /// Object store with the backups to copy.
    pub source_store: StoreSpec,
    /// Object store for the copies.
    pub target_store: StoreSpec,
    /// Highest age of a backup to copy, in days.
    #[schemars(range(min = 0))]
    pub max_backup_age: Option<i32>,
    /// Highest number of backups to copy.
    #[schemars(range(min = 0))]
    pub max_backups: Option<i32>,
    /// Whether and how long the copy waits for the final snapshot of the source.
    pub wait_for_final_snapshot: Option<WaitForFinalSnapshot>,
}

/// Whether and how long a final snapshot is awaited.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitForFinalSnapshot {
    /// Whether the copy waits for a final snapshot of the source.
    pub enabled: bool,
    /// Longest wait, such as `10m`. Afterwards the copy continues without the final snapshot. Default: no
    /// bound, as with 0.
    #[schemars(
        length(max = 64),
        regex(pattern = r"^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$")
    )]
    pub timeout: Option<String>,
}

/// Observed state of the copy.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdCopyBackupsTaskStatus {
    /// Conditions of the copy: `Succeeded` and `Failed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<EtcdCondition>,
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// Error of the last attempt, with the remedy.
    pub last_error: Option<String>,
}
