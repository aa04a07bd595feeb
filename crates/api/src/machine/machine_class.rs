//! `MachineClass`: what machines of a pool are like. Has no `spec`.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use crate::{
    derive::{
        BTreeMap, CustomResource, Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none,
    },
    meta::SecretReference,
};

/// The fields, which stand at the top of the object.
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
    /// What a node of it is like, for scaling from none.
    pub node_template: Option<MachineClassNodeTemplate>,
    /// The Secret with the provider's credentials.
    pub credentials_secret_ref: Option<SecretReference>,
    /// Name of the provider that makes the machines.
    pub provider: Option<String>,
    /// What only the provider understands.
    pub provider_spec: RawExtension,
    /// The Secret with what machines run at first.
    pub secret_ref: Option<SecretReference>,
}

/// What a node is like.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineClassNodeTemplate {
    /// Resources of a node of this class, by name.
    pub capacity: BTreeMap<String, Quantity>,
    /// Resources it will have that no machine tells of.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub virtual_capacity: BTreeMap<String, Quantity>,
    /// Machine type, as the provider calls the type.
    pub instance_type: String,
    /// Region of the machines, as the provider calls the region.
    pub region: String,
    /// Zone of the machines, as the account calls the zone.
    pub zone: String,
    /// Kind of its processors.
    pub architecture: Option<String>,
    /// Whatever else there is.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}
