//! `MachineClass`: the properties of a pool's machines. Has no `spec`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use crate::{
    derive::{
        BTreeMap, CustomResource, Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none,
    },
    meta::SecretReference,
};

/// The fields at the top level of the object.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "machine.sapcloud.io",
    version = "v1alpha1",
    kind = "MachineClass",
    plural = "machineclasses",
    namespaced,
    no_spec,
    derive = "Default",
    derive = "PartialEq",
    shortname = "mcc",
    doc = "What machines of a pool are like."
)]
#[serde(rename_all = "camelCase")]
pub struct MachineClassFields {
    /// Resources of a node of this class, for scaling from zero machines.
    pub node_template: Option<MachineClassNodeTemplate>,
    /// The Secret with the provider's credentials.
    pub credentials_secret_ref: Option<SecretReference>,
    /// Name of the provider that makes the machines.
    pub provider: Option<String>,
    /// The provider's own configuration of the machines.
    pub provider_spec: RawExtension,
    /// The Secret with the user data of the machines.
    pub secret_ref: Option<SecretReference>,
}

/// Properties of a node.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineClassNodeTemplate {
    /// Resources of a node of this class, by name.
    pub capacity: BTreeMap<String, Quantity>,
    /// Further resources of a node, unknown to the machine type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub virtual_capacity: BTreeMap<String, Quantity>,
    /// Machine type, as the provider calls the type.
    pub instance_type: String,
    /// Region of the machines, as the provider calls the region.
    pub region: String,
    /// Zone of the machines, as the account calls the zone.
    pub zone: String,
    /// CPU architecture of the machines.
    pub architecture: Option<String>,
    /// All further fields.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}
