//! `ControllerDeployment` (`core.gardener.cloud/v1`): the chart of a provider. Has no `spec`.

use k8s_openapi::ByteString;

use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none},
    meta::{LocalObjectReference, NamedResourceReference},
};

/// The fields at the top level of the object.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1",
    kind = "ControllerDeployment",
    no_spec,
    derive = "Default",
    derive = "PartialEq",
    shortname = "ctrldeploy",
    doc = "The chart of a provider.",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ControllerDeploymentFields {
    /// Helm chart that installs the extension.
    pub helm: Option<HelmControllerDeployment>,
    /// Whether the pods of the extension get access to the garden.
    pub inject_garden_kubeconfig: Option<bool>,
    /// Objects that the chart's values refer to by name. Has no effect: the chart gets no such object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<NamedResourceReference>,
}

/// A chart.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmControllerDeployment {
    /// The chart, as a compressed archive.
    #[serde(default)]
    #[schemars(schema_with = "crate::meta::bytes_schema")]
    pub raw_chart: Option<ByteString>,
    /// Values for the chart, in the format of Helm.
    pub values: Option<RawExtension>,
    /// OCI repository with the chart, if `rawChart` is absent.
    pub oci_repository: Option<OCIRepository>,
}

/// A chart in a registry.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepository {
    /// The full reference of the chart. Replaces the other fields of the reference.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// Address of the repository, without tag and digest.
    pub repository: Option<String>,
    /// Tag of the chart. `digest` comes first.
    pub tag: Option<String>,
    /// The digest; the tag does not matter then.
    pub digest: Option<String>,
    /// Secret with the credentials for the registry. Has no effect: charts of registries are refused.
    pub pull_secret_ref: Option<LocalObjectReference>,
    /// Secret with CA certificates for the registry. Has no effect: charts of registries are refused.
    #[serde(rename = "caBundleSecretRef")]
    pub ca_bundle_secret_ref: Option<LocalObjectReference>,
}
