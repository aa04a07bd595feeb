//! Settings of the etcd process.

use k8s_openapi::{api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity};

use crate::{
    derive::{BTreeMap, Deserialize, JsonSchema, KubeSchema, Serialize, skip_serializing_none},
    meta::SecretReference,
};

/// Go's notation of a duration, as `5m` or `1h30m`.
pub(super) const DURATION: &str = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";

/// How etcd runs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.additionalAdvertisePeerURLs) || self.additionalAdvertisePeerURLs.all(m, m.urls.all(u, u.startsWith(has(self.peerUrlTls) ? 'https://' : 'http://')))",
    "additionalAdvertisePeerURLs must use https exactly if peerUrlTls is given"
))]
#[x_kube(validation = (
    "!has(self.bootstrapWithExistingCluster) || self.bootstrapWithExistingCluster.members.all(m, m.peerUrls.all(u, u.startsWith(has(self.peerUrlTls) ? 'https://' : 'http://')))",
    "bootstrapWithExistingCluster.members.peerUrls must use https exactly if peerUrlTls is given"
))]
#[x_kube(validation = (
    "!has(self.bootstrapWithExistingCluster) || self.bootstrapWithExistingCluster.clientEndpoints.all(u, u.startsWith(has(self.clientUrlTls) ? 'https://' : 'http://'))",
    "bootstrapWithExistingCluster.clientEndpoints must use https exactly if clientUrlTls is given"
))]
#[x_kube(validation = (
    "!has(self.bootstrapWithExistingCluster) || has(oldSelf.bootstrapWithExistingCluster)",
    "bootstrapWithExistingCluster cannot be added later"
))]
pub struct EtcdConfig {
    /// Largest size of the database.
    pub quota: Option<Quantity>,
    /// Number of entries after which etcd writes an internal snapshot.
    pub snapshot_count: Option<i64>,
    /// When the database is defragmented, as a cron expression.
    #[schemars(length(max = 128))]
    pub defragmentation_schedule: Option<String>,
    /// Port of the member's server.
    pub server_port: Option<i32>,
    /// Port for clients. Default: 2379.
    pub client_port: Option<i32>,
    /// Port of the program around etcd.
    pub wrapper_port: Option<i32>,
    /// Image of etcd. Absent for the default of etcd-druid.
    pub image: Option<String>,
    /// Secret with user and password.
    pub auth_secret_ref: Option<SecretReference>,
    /// How much is measured.
    pub metrics: Option<MetricsLevel>,
    /// Resources of the container.
    pub resources: Option<ResourceRequirements>,
    /// TLS settings for connections of clients.
    pub client_url_tls: Option<TLSConfig>,
    /// TLS between members.
    pub peer_url_tls: Option<PeerTLSConfig>,
    /// Bound of a defragmentation.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub etcd_defrag_timeout: Option<String>,
    /// Time between heartbeats of members.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub heartbeat_duration: Option<String>,
    /// The Service for clients.
    pub client_service: Option<ClientService>,
    /// Whether etcd speaks JSON too.
    #[serde(rename = "enableGRPCGateway")]
    pub enable_grpc_gateway: Option<bool>,
    /// Data structure for free pages of the database: `array` or `map`.
    pub backend_bbolt_freelist_type: Option<FreelistType>,
    /// Further addresses of members.
    #[serde(
        rename = "additionalAdvertisePeerURLs",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = 9))]
    pub additional_advertise_peer_urls: Vec<MemberUrls>,
    /// An existing etcd cluster that this cluster joins. Has no effect.
    pub bootstrap_with_existing_cluster: Option<ExistingCluster>,
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricsLevel {
    /// The usual.
    Basic,
    /// Histograms of requests too.
    Extensive,
}

/// Data structure for free pages of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FreelistType {
    /// In an array.
    Array,
    /// In a map.
    Map,
}

/// TLS of a server and the clients.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TLSConfig {
    /// Secret with the CA certificates that etcd trusts.
    #[serde(rename = "tlsCASecretRef")]
    pub tls_ca_secret_ref: SecretKeyReference,
    /// The server's certificate.
    #[serde(rename = "serverTLSSecretRef")]
    pub server_tls_secret_ref: SecretReference,
    /// The clients' certificate.
    #[serde(rename = "clientTLSSecretRef")]
    pub client_tls_secret_ref: Option<SecretReference>,
}

/// TLS between members.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeerTLSConfig {
    /// Secret with the CA certificates that members trust.
    #[serde(rename = "tlsCASecretRef")]
    pub tls_ca_secret_ref: SecretKeyReference,
    /// The server's certificate.
    #[serde(rename = "serverTLSSecretRef")]
    pub server_tls_secret_ref: SecretReference,
    /// The clients' certificate.
    #[serde(rename = "clientTLSSecretRef")]
    pub client_tls_secret_ref: Option<SecretReference>,
    /// Whether names in members' certificates do not matter.
    #[serde(rename = "skipClientSANVerification")]
    pub skip_client_san_verification: Option<bool>,
}

/// A Secret and a key of the Secret.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretKeyReference {
    /// Name of the Secret, in the namespace of the referring object.
    pub name: Option<String>,
    /// The Secret's namespace.
    pub namespace: Option<String>,
    /// The key; `ca.crt` unless given.
    pub data_key: Option<String>,
}

/// The Service for clients.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientService {
    /// Annotations of the client Service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of the client Service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Preference for the member that serves a client.
    pub traffic_distribution: Option<TrafficDistribution>,
}

/// Preference for the member that serves a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TrafficDistribution {
    /// A member in the same zone.
    PreferSameZone,
    /// A member on the same node.
    PreferSameNode,
    /// A member in the same zone: the former name of `PreferSameZone`.
    PreferClose,
}

/// Further addresses of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberUrls {
    /// Name of the member, such as `etcd-main-0`.
    #[schemars(length(max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?-[0-9]+$"))]
    pub member_name: String,
    /// Advertised URLs of the member.
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "set"), inner(length(max = 2048)))]
    pub urls: Vec<String>,
}

/// An etcd cluster elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExistingCluster {
    /// Members of the existing cluster.
    #[schemars(length(max = 9), extend("x-kubernetes-list-type" = "atomic"))]
    pub members: Vec<ExistingMember>,
    /// Addresses of the existing cluster for clients.
    #[schemars(length(max = 9), extend("x-kubernetes-list-type" = "set"), inner(length(max = 2048)))]
    pub client_endpoints: Vec<String>,
}

/// A member elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExistingMember {
    /// Name of the existing member.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// Addresses of the existing member for peers.
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "set"), inner(length(max = 2048)))]
    pub peer_urls: Vec<String>,
}
