//! `BackupEntry` of the garden: the location of a shoot's backups. The entry survives the seed; `seedName`
//! selects the gardenlet that acts (R17-22, R17-23).

use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, KubeSchema, Serialize, Time, skip_serializing_none},
    meta::{LastError, LastOperation, ObjectReference},
};

/// The bucket, and the seed or shoot that is responsible for the entry.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "BackupEntry",
    plural = "backupentries",
    namespaced,
    status = "BackupEntryStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "bec",
    doc = "Where one shoot's backups are.",
    selectable = ".spec.bucketName",
    selectable = ".spec.seedName",
    selectable = ".spec.shootRef.name",
    selectable = ".spec.shootRef.namespace",
    printcolumn(name = "Bucket", type_ = "string", json_path = ".spec.bucketName"),
    printcolumn(name = "Seed", type_ = "string", json_path = ".spec.seedName"),
    printcolumn(
        name = "Operation",
        type_ = "string",
        json_path = ".status.lastOperation.state"
    ),
    printcolumn(
        name = "Progress",
        type_ = "integer",
        json_path = ".status.lastOperation.progress"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.seedName) != has(self.shootRef)",
    "exactly one of seedName and shootRef must be given"
))]
pub struct BackupEntrySpec {
    /// Name of the BackupBucket with the backups of the shoot.
    #[schemars(length(min = 1, max = 253))]
    pub bucket_name: String,
    /// Name of the Seed responsible for the entry.
    #[schemars(length(max = 253))]
    pub seed_name: Option<String>,
    /// The self-hosted shoot responsible for the entry. Has no effect: seeds are responsible.
    pub shoot_ref: Option<ObjectReference>,
}

/// Observed state of the entry.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupEntryStatus {
    /// Type, state and progress of the last operation on the entry.
    pub last_operation: Option<LastOperation>,
    /// Error of the last operation.
    pub last_error: Option<LastError>,
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// The seed that has the entry now.
    pub seed_name: Option<String>,
    /// When a move to another seed began.
    pub migration_start_time: Option<Time>,
}
