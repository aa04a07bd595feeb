//! `DNSRecord`: a name in the provider's DNS. An owner record is an ordinary DNSRecord of type `TXT`.

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, KubeSchema, Serialize, skip_serializing_none},
    meta::SecretReference,
};

/// TTL of an owner record in seconds, for caches of resolvers. Owner checks bypass these caches
/// (docs/understand/ownership.md).
pub const OWNER_RECORD_TTL_SECONDS: u32 = 10;

/// The name and the values of the record.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "DNSRecord",
    namespaced,
    status = "DNSRecordStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "dns",
    doc = "One name in the provider's DNS.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "The provider."
    ),
    printcolumn(
        name = "Domain Name",
        type_ = "string",
        json_path = ".spec.name",
        description = "The name."
    ),
    printcolumn(
        name = "Record Type",
        type_ = "string",
        json_path = ".spec.recordType",
        description = "The record's type."
    ),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.lastOperation.state"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct DNSRecordSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// Credentials of the DNS account.
    pub secret_ref: SecretReference,
    /// Where the DNS account is, for providers that ask.
    pub region: Option<String>,
    /// The zone of the name. Absent if the provider finds the zone.
    pub zone: Option<String>,
    /// Fully qualified name of the record.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable: delete the record and create another"))]
    pub name: String,
    /// Type of the record: A, AAAA, CNAME or TXT.
    #[x_kube(validation = ("self == oldSelf", "Value is immutable: delete the record and create another"))]
    pub record_type: RecordType,
    /// Values of the name: addresses, a single name, or texts.
    #[schemars(length(min = 1, max = 64))]
    pub values: Vec<String>,
    /// Time in seconds for which resolvers may cache the record.
    #[schemars(range(min = 0))]
    pub ttl: Option<i64>,
}

/// Types of records that can be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RecordType {
    /// IPv4 addresses.
    #[default]
    A,
    /// IPv6 addresses.
    AAAA,
    /// An alias for another name.
    CNAME,
    /// Texts.
    TXT,
}

/// Observed state of the record.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DNSRecordStatus {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultStatus,
    /// The zone of the name at the provider.
    pub zone: Option<String>,
}

extension_object!(
    DNSRecord,
    flat_status,
    fn secret_ref(&self) -> Option<&SecretReference> {
        Some(&self.spec.secret_ref)
    }
);
