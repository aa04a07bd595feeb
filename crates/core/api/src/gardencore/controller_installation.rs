//! `ControllerInstallation`: a provider in a seed.

use crate::{
    derive::{
        CustomResource, Deserialize, JsonSchema, KubeSchema, RawExtension, Serialize, skip_serializing_none,
    },
    meta::{Condition, ObjectReference},
};

/// The ControllerRegistration and the Seed of the installation.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "ControllerInstallation",
    status = "ControllerInstallationStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "ctrlinst",
    doc = "A provider in a seed.",
    selectable = ".spec.registrationRef.name",
    selectable = ".spec.seedRef.name",
    selectable = ".spec.shootRef.name",
    selectable = ".spec.shootRef.namespace",
    printcolumn(
        name = "Registration",
        type_ = "string",
        json_path = ".spec.registrationRef.name"
    ),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.seedRef.name"),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].status"
    ),
    printcolumn(
        name = "Installed",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Installed\")].status"
    ),
    printcolumn(
        name = "Healthy",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Healthy\")].status"
    ),
    printcolumn(
        name = "Progressing",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Progressing\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.seedRef) != has(self.shootRef)",
    "exactly one of seedRef and shootRef must be given"
))]
#[x_kube(validation = (
    "!has(oldSelf.seedRef) || (has(self.seedRef) && self.seedRef.name == oldSelf.seedRef.name)",
    "seedRef.name is immutable"
))]
pub struct ControllerInstallationSpec {
    /// Reference to the ControllerRegistration that is installed.
    #[x_kube(validation = ("self.name == oldSelf.name", "name is immutable"))]
    pub registration_ref: ObjectReference,
    /// Reference to the Seed on which the extension is installed.
    pub seed_ref: Option<ObjectReference>,
    /// The self-hosted shoot with the extension. Has no effect: extensions run in seeds.
    pub shoot_ref: Option<ObjectReference>,
    /// Reference to the ControllerDeployment with the chart.
    pub deployment_ref: Option<ObjectReference>,
    /// Objects the deployment refers to. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_refs: Vec<ObjectReference>,
}

/// Observed state of the installation.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerInstallationStatus {
    /// Conditions of the installation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Status that the deployment reports.
    pub provider_status: Option<RawExtension>,
}
