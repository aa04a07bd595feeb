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
    /// Settings of CoreDNS. Has no effect.
    #[serde(rename = "coreDNS")]
    pub core_dns: Option<CoreDNS>,
    /// Cache of the cluster's DNS on each node. Has no effect.
    #[serde(rename = "nodeLocalDNS")]
    pub node_local_dns: Option<NodeLocalDNS>,
}

/// The cluster's DNS.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreDNS {
    /// Scaling of CoreDNS. Has no effect.
    pub autoscaling: Option<CoreDNSAutoscaling>,
    /// Rewriting of names by CoreDNS. Has no effect.
    pub rewriting: Option<CoreDNSRewriting>,
}

/// Scaling of the cluster's DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoreDNSAutoscaling {
    /// Mode of the scaling: horizontal or proportional to the cluster. Has no effect.
    pub mode: CoreDNSAutoscalingMode,
}

/// Input for the scaling of the cluster's DNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoreDNSAutoscalingMode {
    /// By the load of CoreDNS.
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
    /// Whether the cache runs on each node. Has no effect.
    pub enabled: bool,
    /// Whether the cache asks the cluster's DNS by TCP. Has no effect.
    #[serde(rename = "forceTCPToClusterDNS")]
    pub force_tcp_to_cluster_dns: Option<bool>,
    /// Whether the cache asks upstream DNS servers by TCP. Has no effect.
    #[serde(rename = "forceTCPToUpstreamDNS")]
    pub force_tcp_to_upstream_dns: Option<bool>,
    /// Whether the cache asks no upstream DNS servers. Has no effect.
    #[serde(rename = "disableForwardToUpstreamDNS")]
    pub disable_forward_to_upstream_dns: Option<bool>,
}

/// Programs that a user may switch on.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Addons {
    /// Settings of the dashboard. Has no effect.
    pub kubernetes_dashboard: Option<KubernetesDashboard>,
    /// Settings of an nginx ingress. Has no effect.
    pub nginx_ingress: Option<NginxIngress>,
}

/// The dashboard.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubernetesDashboard {
    /// Whether the dashboard is installed. Has no effect.
    pub enabled: bool,
    /// How users log in to the dashboard. Has no effect.
    pub authentication_mode: Option<String>,
}

/// An ingress.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NginxIngress {
    /// Whether the ingress is installed. Has no effect.
    pub enabled: bool,
    /// Ranges of addresses that may use the ingress, in CIDR notation. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancer_source_ranges: Vec<String>,
    /// Configuration of the ingress. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Policy of nodes for traffic to the ingress. Has no effect.
    pub external_traffic_policy: Option<ExternalTrafficPolicy>,
}
