//! `BackupBucket` of the garden: the bucket of a seed, named after the uid of the Seed.

use crate::{
    derive::{
        CustomResource, Deserialize, JsonSchema, KubeSchema, PackedExtension, RawExtension, Serialize,
        skip_serializing_none,
    },
    meta::{LastError, LastOperation, ObjectReference, SecretReference},
};

/// The wanted bucket for backups of a seed.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "BackupBucket",
    status = "BackupBucketStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "bbc",
    doc = "The bucket of one seed.",
    selectable = ".spec.seedName",
    selectable = ".spec.shootRef.name",
    selectable = ".spec.shootRef.namespace",
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.provider.type"),
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
pub struct BackupBucketSpec {
    /// Provider and region of the bucket.
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub provider: BackupBucketProvider,
    /// The provider's own configuration.
    pub provider_config: Option<PackedExtension>,
    /// Secret with the credentials of the account, in namespace `seed-<spec.seedName>` of the garden.
    pub credentials_ref: Option<ObjectReference>,
    /// Name of the Seed that uses the bucket.
    #[schemars(length(max = 253))]
    pub seed_name: Option<String>,
    /// The self-hosted shoot that uses the bucket. Has no effect: seeds use buckets.
    pub shoot_ref: Option<ObjectReference>,
}

/// Provider and region of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupBucketProvider {
    /// Type of the provider of the bucket, such as `aws`.
    #[schemars(length(max = 253))]
    pub type_: String,
    /// Region of the bucket, as the provider calls the region.
    #[schemars(length(max = 253))]
    pub region: String,
}

/// Observed state of the bucket.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupBucketStatus {
    /// Output of the provider for other extensions.
    pub provider_status: Option<RawExtension>,
    /// Type, state and progress of the last operation on the bucket.
    pub last_operation: Option<LastOperation>,
    /// Error of the last operation.
    pub last_error: Option<LastError>,
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// Credentials for this bucket only, if the provider made some.
    pub generated_secret_ref: Option<SecretReference>,
}
