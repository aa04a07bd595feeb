//! `Cluster`: copies of the garden's objects for providers, with the name of the shoot's namespace.

use crate::derive::{
    CustomResource, Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none,
};

/// Copies of the garden's objects.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "Cluster",
    status = "ClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What providers may know of the garden's objects for a shoot.",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// The CloudProfile of the shoot, as stored in the garden.
    pub cloud_profile: RawExtension,
    /// The Seed of the shoot, as stored in the garden.
    pub seed: Option<RawExtension>,
    /// The Shoot, as stored in the garden.
    pub shoot: RawExtension,
}

/// Empty; the subresource is part of the known API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterStatus {}
