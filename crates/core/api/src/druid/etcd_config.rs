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
    /// Largest size of the database, in bytes. Default: 8Gi.
    pub quota: Option<Quantity>,
    /// Number of entries after which etcd writes an internal snapshot.
    pub snapshot_count: Option<i64>,
    /// Schedule of the defragmentation of the database, as a cron expression.
    #[schemars(length(max = 128))]
    pub defragmentation_schedule: Option<String>,
    /// Port of a member for the peers. Default: 2380.
    pub server_port: Option<i32>,
    /// Port for clients. Default: 2379.
    pub client_port: Option<i32>,
    /// Port of the process that starts etcd.
    pub wrapper_port: Option<i32>,
    /// Image of etcd. Absent for the default of etcd-druid.
    pub image: Option<String>,
    /// Secret with a user and a password for etcd.
    pub auth_secret_ref: Option<SecretReference>,
    /// Detail of the metrics of etcd: `basic` or `extensive`. Default: `basic`.
    pub metrics: Option<MetricsLevel>,
    /// Resources of the container of etcd.
    pub resources: Option<ResourceRequirements>,
    /// TLS settings for connections of clients.
    pub client_url_tls: Option<TLSConfig>,
    /// TLS settings for connections between members.
    pub peer_url_tls: Option<PeerTLSConfig>,
    /// Longest duration of a defragmentation.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub etcd_defrag_timeout: Option<String>,
    /// Time between two heartbeats of the members.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub heartbeat_duration: Option<String>,
    /// Settings of the Service at which clients connect.
    pub client_service: Option<ClientService>,
    /// Whether etcd also serves the API as JSON. Default: false.
    #[serde(rename = "enableGRPCGateway")]
    pub enable_grpc_gateway: Option<bool>,
    /// Data structure for free pages of the database: `array` or `map`.
    pub backend_bbolt_freelist_type: Option<FreelistType>,
    /// Additional URLs of members for peers.
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

/// Detail of the metrics of etcd: `basic` or `extensive`. Default: `basic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricsLevel {
    /// The usual.
    Basic,
    /// Histograms of requests too.
    Extensive,
}

/// Data structure for free pages of the database: `array` or `map`.
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
    /// Secret with the certificate and the key of the server.
    #[serde(rename = "serverTLSSecretRef")]
    pub server_tls_secret_ref: SecretReference,
    /// Secret with the certificate and the key of the clients.
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
    /// Secret with the certificate and the key of a member.
    #[serde(rename = "serverTLSSecretRef")]
    pub server_tls_secret_ref: SecretReference,
    /// Secret with the certificate and the key of a member as a client.
    #[serde(rename = "clientTLSSecretRef")]
    pub client_tls_secret_ref: Option<SecretReference>,
    /// Whether the names in the certificates of members are not checked.
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
    /// Namespace of the Secret: the namespace of the referring object.
    pub namespace: Option<String>,
    /// Key of the certificates in the Secret. Default: `ca.crt`.
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
    /// URLs of the existing cluster for clients.
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
    /// URLs of the existing member for peers.
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "set"), inner(length(max = 2048)))]
    pub peer_urls: Vec<String>,
}
