//! `Extension`: any further addition of a provider to a shoot.

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::derive::{CustomResource, Deserialize, JsonSchema, Serialize};

/// The wanted extension; the settings are in the provider's own configuration.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "Extension",
    namespaced,
    status = "DefaultStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "ext",
    doc = "Anything else that a provider adds to a shoot.",
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
pub struct ExtensionSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
}

extension_object!(Extension, default_status);
