//! Networks and names of a Shoot.

use crate::{
    derive::{
        Deserialize, JsonSchema, KubeSchema, PRINTABLE, PackedExtension, Serialize, skip_serializing_none,
    },
    meta::CrossVersionObjectReference,
};

/// Networks.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!has(oldSelf.pods) || has(self.pods)", "pods cannot be removed once set"))]
#[x_kube(validation = ("!has(oldSelf.services) || has(self.services)", "services cannot be removed once set"))]
#[x_kube(validation = ("!has(oldSelf.nodes) || has(self.nodes)", "nodes cannot be removed once set"))]
pub struct Networking {
    /// Type of the network plugin, as offered by a ControllerRegistration.
    #[schemars(length(min = 1, max = 253), regex(pattern = PRINTABLE))]
    pub type_: Option<String>,
    /// The plugin's own configuration.
    pub provider_config: Option<PackedExtension>,
    /// Range of addresses of pods, in CIDR notation.
    #[schemars(length(max = 128))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    #[x_kube(validation = ("isCIDR(self)", "must be a range of addresses such as 100.96.0.0/11"))]
    #[x_kube(validation = ("!isCIDR(self) || !cidr(self).containsIP('240.0.0.1')", "must not contain 240.0.0.1, by which pods reach the API"))]
    pub pods: Option<String>,
    /// Range of addresses of nodes, in CIDR notation. May grow later, unlike the ranges of pods and services.
    #[schemars(length(max = 128))]
    #[x_kube(validation = ("isCIDR(self)", "must be a range of addresses such as 100.96.0.0/11"))]
    #[x_kube(validation = ("!isCIDR(self) || !cidr(self).containsIP('240.0.0.1')", "must not contain 240.0.0.1, by which pods reach the API"))]
    pub nodes: Option<String>,
    /// Range of addresses of services, in CIDR notation.
    #[schemars(length(max = 128))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    #[x_kube(validation = ("isCIDR(self)", "must be a range of addresses such as 100.96.0.0/11"))]
    #[x_kube(validation = ("!isCIDR(self) || !cidr(self).containsIP('240.0.0.1')", "must not contain 240.0.0.1, by which pods reach the API"))]
    pub services: Option<String>,
    /// IP families of the shoot: `IPv4` or `IPv6`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_families: Vec<IPFamily>,
}

/// Versions of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IPFamily {
    /// Version 4.
    IPv4,
    /// Version 6.
    IPv6,
}

/// Names.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!has(oldSelf.domain) || has(self.domain)", "domain cannot be removed once set"))]
pub struct DNS {
    /// Domain of the cluster. The name of the API server is `api.` followed by this domain.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub domain: Option<String>,
    /// DNS providers for the domain. The primary provider hosts the domain of the API server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<DNSProvider>,
}

/// A DNS provider of a domain.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DNSProvider {
    /// Domains that the provider hosts.
    pub domains: Option<DNSIncludeExclude>,
    /// Whether the provider hosts the domain of the cluster.
    pub primary: Option<bool>,
    /// Name of the Secret with the credentials, in the Shoot's namespace. Has no effect beside the newer
    /// `credentialsRef`.
    #[schemars(regex(pattern = PRINTABLE))]
    pub secret_name: Option<String>,
    /// The object with the credentials, in the Shoot's namespace. Only a Secret is supported (`apiVersion`
    /// v1, `kind` Secret).
    pub credentials_ref: Option<CrossVersionObjectReference>,
    /// Type of the provider, as offered by a ControllerRegistration for DNSRecords.
    #[schemars(regex(pattern = PRINTABLE))]
    pub type_: Option<String>,
    /// Zones that the provider hosts.
    pub zones: Option<DNSIncludeExclude>,
}

/// Included and excluded names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DNSIncludeExclude {
    /// Domains or zones that the provider manages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Domains or zones that the provider does not manage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}
