//! Programs that the landscape runs in a Shoot, and addons.

use crate::{
    derive::{BTreeMap, Deserialize, JsonSchema, Serialize, skip_serializing_none},
    gardencore::seed::ExternalTrafficPolicy,
};

/// Programs that the landscape runs in the cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemComponents {
    /// The cluster's DNS.
    #[serde(rename = "coreDNS")]
    pub core_dns: Option<CoreDNS>,
    /// A cache of it on each node.
    #[serde(rename = "nodeLocalDNS")]
    pub node_local_dns: Option<NodeLocalDNS>,
}

/// The cluster's DNS.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreDNS {
    /// Its scaling.
    pub autoscaling: Option<CoreDNSAutoscaling>,
    /// Names it corrects.
    pub rewriting: Option<CoreDNSRewriting>,
}

/// Scaling of the cluster's DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoreDNSAutoscaling {
    /// By what.
    pub mode: CoreDNSAutoscalingMode,
}

/// By what the cluster's DNS is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoreDNSAutoscalingMode {
    /// By its load.
    Horizontal,
    /// By the cluster's size.
    ClusterProportional,
}

/// Names that the cluster's DNS corrects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreDNSRewriting {
    /// Ends of names that are complete already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub common_suffixes: Vec<String>,
}

/// A cache of the cluster's DNS on each node.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeLocalDNS {
    /// Whether there is one.
    pub enabled: bool,
    /// Whether it asks the cluster's DNS by TCP.
    #[serde(rename = "forceTCPToClusterDNS")]
    pub force_tcp_to_cluster_dns: Option<bool>,
    /// Whether it asks others by TCP.
    #[serde(rename = "forceTCPToUpstreamDNS")]
    pub force_tcp_to_upstream_dns: Option<bool>,
    /// Whether it asks no others.
    #[serde(rename = "disableForwardToUpstreamDNS")]
    pub disable_forward_to_upstream_dns: Option<bool>,
}

/// Programs that a user may switch on.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Addons {
    /// The dashboard.
    pub kubernetes_dashboard: Option<KubernetesDashboard>,
    /// An ingress.
    pub nginx_ingress: Option<NginxIngress>,
}

/// The dashboard.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesDashboard {
    /// Whether there is one.
    pub enabled: bool,
    /// How one logs in.
    pub authentication_mode: Option<String>,
}

/// An ingress.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NginxIngress {
    /// Whether there is one.
    pub enabled: bool,
    /// Who may use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancer_source_ranges: Vec<String>,
    /// Its own configuration.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// How nodes pass traffic on to it.
    pub external_traffic_policy: Option<ExternalTrafficPolicy>,
}
