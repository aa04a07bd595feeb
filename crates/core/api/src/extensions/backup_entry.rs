//! `BackupEntry`: the backups of a shoot in a bucket.

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none},
    meta::SecretReference,
};

/// The bucket. The backups lie below a prefix with the name of the object.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "BackupEntry",
    plural = "backupentries",
    status = "DefaultStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "be",
    doc = "The place of one shoot's backups in a bucket.",
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
        name = "Bucket",
        type_ = "string",
        json_path = ".spec.bucketName",
        description = "The bucket."
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.lastOperation.state",
        description = "How the last operation stands."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BackupEntrySpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// Provider status of the BackupBucket.
    pub backup_bucket_provider_status: Option<RawExtension>,
    /// Region of the bucket, as the provider calls the region.
    pub region: String,
    /// Name of the BackupBucket with the backups of the shoot.
    pub bucket_name: String,
    /// Credentials of the account.
    pub secret_ref: SecretReference,
}

extension_object!(
    BackupEntry,
    default_status,
    fn secret_ref(&self) -> Option<&SecretReference> {
        Some(&self.spec.secret_ref)
    }
);
