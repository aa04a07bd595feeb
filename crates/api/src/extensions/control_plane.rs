//! `ControlPlane`: the provider's own parts beside a shoot's control plane.

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none},
    meta::SecretReference,
};

/// What the provider adds to a control plane.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "ControlPlane",
    namespaced,
    status = "DefaultStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "cp",
    doc = "The provider's own parts beside a shoot's control plane.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "The provider."
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.lastOperation.state",
        description = "How the last operation stands."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneSpec {
    /// What every extension has.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// What the provider said of the infrastructure.
    pub infrastructure_provider_status: Option<RawExtension>,
    /// Where the shoot is.
    pub region: String,
    /// Credentials of the account.
    pub secret_ref: SecretReference,
}

extension_object!(
    ControlPlane,
    default_status,
    fn secret_ref(&self) -> Option<&SecretReference> {
        Some(&self.spec.secret_ref)
    }
);
