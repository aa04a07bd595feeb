//! `BackupBucket`: the bucket with the backups of a seed's shoots.

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, Serialize, skip_serializing_none},
    meta::SecretReference,
};

/// The wanted bucket. The bucket has the name of the object.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "BackupBucket",
    status = "BackupBucketStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "bb",
    doc = "The bucket in which a seed's shoots keep their backups.",
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
        name = "State",
        type_ = "string",
        json_path = ".status.lastOperation.state",
        description = "How the last operation stands."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BackupBucketSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// Where the bucket is wanted.
    pub region: String,
    /// Credentials of the account.
    pub secret_ref: SecretReference,
}

/// Observed state of the bucket.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupBucketStatus {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultStatus,
    /// Credentials for this bucket only, if the provider made some.
    pub generated_secret_ref: Option<SecretReference>,
}

extension_object!(
    BackupBucket,
    flat_status,
    fn secret_ref(&self) -> Option<&SecretReference> {
        Some(&self.spec.secret_ref)
    }
);
