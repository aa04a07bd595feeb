//! Settings of a shoot's API server. No field has an effect, also where a description does not say so: the
//! table in `crates/core/api/src/gardencore/shoot/effects/mod.rs` lists the whole subtree.

use super::{ControlPlaneAutoscaling, FeatureGates};
use crate::{
    derive::{BTreeMap, Deserialize, JsonSchema, PackedExtension, Serialize, skip_serializing_none},
    meta::{Duration, ObjectReference},
};

/// Settings of the API server.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeAPIServerConfig {
    /// Feature gates of kube-apiserver. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: FeatureGates,
    /// Admission plugins besides those that are on anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub admission_plugins: Vec<AdmissionPlugin>,
    /// Audiences that tokens may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_audiences: Vec<String>,
    /// Settings of the audit log. Has no effect.
    pub audit_config: Option<AuditConfig>,
    /// Authentication by OpenID Connect, in the form of flags of kube-apiserver.
    pub oidc_config: Option<OIDCConfig>,
    /// APIs that kube-apiserver serves or does not serve, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runtime_config: BTreeMap<String, bool>,
    /// Settings of the tokens of service accounts.
    pub service_account_config: Option<ServiceAccountConfig>,
    /// Sizes of the watch caches of kube-apiserver, in objects.
    pub watch_cache_sizes: Option<WatchCacheSizes>,
    /// Highest numbers of concurrent requests.
    pub requests: Option<APIServerRequests>,
    /// Whether anonymous requests are allowed. Has no effect.
    pub enable_anonymous_authentication: Option<bool>,
    /// Time for which Events are kept.
    #[serde(rename = "eventTTL")]
    pub event_ttl: Option<Duration>,
    /// Verbosity of the log. Has no effect.
    pub logging: Option<APIServerLogging>,
    /// Time in seconds for which pods stay on a node that is not ready.
    pub default_not_ready_toleration_seconds: Option<i64>,
    /// Time in seconds for which pods stay on a node that cannot be reached.
    pub default_unreachable_toleration_seconds: Option<i64>,
    /// Resources that are encrypted in etcd. Has no effect.
    pub encryption_config: Option<EncryptionConfig>,
    /// Reference to a ConfigMap with an AuthenticationConfiguration. Has no effect.
    pub structured_authentication: Option<StructuredAuthentication>,
    /// Reference to a ConfigMap with an AuthorizationConfiguration.
    pub structured_authorization: Option<StructuredAuthorization>,
    /// Vertical scaling of kube-apiserver. Has no effect.
    pub autoscaling: Option<ControlPlaneAutoscaling>,
}

/// An admission plugin.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionPlugin {
    /// Name of the admission plugin, such as `PodNodeSelector`.
    pub name: String,
    /// Configuration of the plugin. Has no effect.
    pub config: Option<PackedExtension>,
    /// Whether the plugin is off. Has no effect.
    pub disabled: Option<bool>,
    /// Name of the Secret with the kubeconfig for the plugin. Has no effect.
    pub kubeconfig_secret_name: Option<String>,
}

/// Settings of the audit log.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditConfig {
    /// Reference to the audit policy. Has no effect.
    pub audit_policy: Option<AuditPolicy>,
}

/// Where the audit policy is.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditPolicy {
    /// The ConfigMap beside the Shoot.
    pub config_map_ref: Option<ObjectReference>,
}

/// Log-in by OpenID Connect.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OIDCConfig {
    /// CA certificates that sign the certificate of the issuer. Has no effect.
    #[serde(rename = "caBundle")]
    pub ca_bundle: Option<String>,
    /// Settings for clients that log in by OpenID Connect.
    pub client_authentication: Option<OpenIDConnectClientAuthentication>,
    /// Required audience of the tokens. Has no effect.
    #[serde(rename = "clientID")]
    pub client_id: Option<String>,
    /// Claim with the names of the user's groups. Has no effect.
    pub groups_claim: Option<String>,
    /// Prefix of the names of groups.
    pub groups_prefix: Option<String>,
    /// URL of the issuer of tokens. Has no effect.
    #[serde(rename = "issuerURL")]
    pub issuer_url: Option<String>,
    /// Claims that a token must have, with the values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub required_claims: BTreeMap<String, String>,
    /// Signature algorithms of tokens that are accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signing_algs: Vec<String>,
    /// Claim with the name of the user. Has no effect.
    pub username_claim: Option<String>,
    /// Prefix of the names of users.
    pub username_prefix: Option<String>,
}

/// Settings of OpenID Connect for clients.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenIDConnectClientAuthentication {
    /// Further settings for clients. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_config: BTreeMap<String, String>,
    /// Secret of the client at the issuer.
    pub secret: Option<String>,
}

/// Tokens of service accounts.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccountConfig {
    /// Issuer in the tokens of service accounts. Has no effect.
    pub issuer: Option<String>,
    /// Whether tokens in pods live long for old clients' sake.
    pub extend_token_expiration: Option<bool>,
    /// Longest lifetime of a token.
    pub max_token_expiration: Option<Duration>,
    /// Further issuers of accepted tokens. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted_issuers: Vec<String>,
}

/// Sizes of watch caches.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WatchCacheSizes {
    /// Size of the watch cache of a resource that is not in `resources`.
    pub default: Option<i32>,
    /// Sizes of the watch caches of single resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceWatchCacheSize>,
}

/// Size of a resource's watch cache.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceWatchCacheSize {
    /// API group of the resource.
    pub api_group: Option<String>,
    /// Name of the resource for this size of the watch cache.
    pub resource: String,
    /// Number of events that the watch cache of the resource keeps.
    pub size: i32,
}

/// Requests at the same time.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct APIServerRequests {
    /// Highest number of reading requests at a time. Has no effect.
    pub max_non_mutating_inflight: Option<i32>,
    /// Highest number of writing requests at a time. Has no effect.
    pub max_mutating_inflight: Option<i32>,
}

/// How much is logged.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct APIServerLogging {
    /// Verbosity of the log of kube-apiserver. Has no effect.
    pub verbosity: Option<i32>,
    /// Verbosity of the log of requests. Has no effect.
    pub http_access_verbosity: Option<i32>,
}

/// Resources that are encrypted in etcd.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EncryptionConfig {
    /// Resources that are encrypted besides Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Provider and algorithm of the encryption.
    pub provider: Option<EncryptionProvider>,
}

/// How etcd's content is encrypted.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EncryptionProvider {
    /// Algorithm of the encryption, such as `aescbc`.
    pub type_: Option<String>,
}

/// Log-in, as a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StructuredAuthentication {
    /// The ConfigMap beside the Shoot.
    pub config_map_name: String,
}

/// Permissions, as a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StructuredAuthorization {
    /// The ConfigMap beside the Shoot.
    pub config_map_name: String,
    /// Secrets with the kubeconfigs of webhooks.
    pub kubeconfigs: Vec<AuthorizerKubeconfigReference>,
}

/// The kubeconfig of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizerKubeconfigReference {
    /// Name of the authorization webhook in the configuration.
    pub authorizer_name: String,
    /// Name of the Secret with the kubeconfig for the webhook.
    pub secret_name: String,
}
