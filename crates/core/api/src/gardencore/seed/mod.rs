//! `Seed`: a cluster that hosts control planes of shoots. The gardenlet registers the Seed and writes the
//! status.

mod owner_checks;
mod settings;

pub use owner_checks::*;
pub use settings::*;

use std::net::SocketAddr;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::{
    constants::SEED_CORDONED,
    derive::{
        BTreeMap, CustomResource, Deserialize, JsonSchema, KubeSchema, PackedExtension, Serialize, Time,
        skip_serializing_none,
    },
    gardencore::shoot::{AccessRestriction, Extension, IPFamily},
    meta::{Condition, GardenerInfo, LastOperation, NamedResourceReference, ObjectReference},
};

/// Properties and settings of the seed.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "Seed",
    status = "SeedStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A cluster that hosts control planes of shoots.",
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"GardenletReady\")].status",
        description = "Whether its gardenlet is alive."
    ),
    printcolumn(
        name = "Last Operation",
        type_ = "string",
        json_path = ".status.lastOperation.type"
    ),
    printcolumn(
        name = "Operation State",
        type_ = "string",
        json_path = ".status.lastOperation.state"
    ),
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.provider.type"),
    printcolumn(name = "Region", type_ = "string", json_path = ".spec.provider.region"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.gardener.version"),
    printcolumn(
        name = "K8S Version",
        type_ = "string",
        json_path = ".status.kubernetesVersion"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!has(oldSelf.backup) || has(self.backup)", "backup cannot be removed"))]
pub struct SeedSpec {
    /// Location of the backups of the seed's shoots. Without this field there are no backups, and a shoot
    /// cannot be moved to or from the seed.
    #[x_kube(validation = (
        "self.provider == oldSelf.provider && has(self.region) == has(oldSelf.region) && (!has(self.region) || self.region == oldSelf.region)",
        "provider and region of backup are immutable"
    ))]
    pub backup: Option<SeedBackup>,
    /// Domains for the names of the seed's shoots. While Shoots are on the seed, existing domains keep their
    /// provider type and order, and a domain can only be added to `defaults` at the end. Domain and zone of
    /// `internal` do not change once set: processes of shoots ask for owner records there.
    #[x_kube(validation = (
        "!has(oldSelf.internal) || has(self.internal) && self.internal.domain == oldSelf.internal.domain && (!has(oldSelf.internal.zone) || has(self.internal.zone) && self.internal.zone == oldSelf.internal.zone)",
        "domain and zone of dns.internal are immutable, since processes of shoots ask for owner records there; register a Seed with the other domain instead"
    ))]
    pub dns: SeedDNS,
    /// Ranges of addresses of the seed's nodes, pods and services.
    pub networks: SeedNetworks,
    /// The provider on which the seed runs.
    pub provider: SeedProvider,
    /// Taints that keep shoots away. A Shoot is created on the seed, or moves to the seed, only if the
    /// Shoot's `spec.tolerations` tolerate all taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<SeedTaint>,
    /// Settings for volumes of control planes. Has no effect.
    pub volume: Option<SeedVolume>,
    /// Settings of the seed, such as owner checks and scheduling.
    pub settings: Option<SeedSettings>,
    /// Ingress domain of the seed. Has no effect.
    pub ingress: Option<Ingress>,
    /// Access restrictions of the seed. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_restrictions: Vec<AccessRestriction>,
    /// Extensions for the seed. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
    /// Objects that extensions' configurations refer to by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<NamedResourceReference>,
}

impl SeedSpec {
    /// Whether the seed is closed to new shoots and to moves to the seed.
    #[must_use]
    pub fn is_cordoned(&self) -> bool {
        self.taints.iter().any(|taint| taint.key == SEED_CORDONED)
    }

    /// The settings of owner checks, on or off.
    #[must_use]
    pub fn owner_checks(&self) -> Option<&OwnerChecks> {
        self.settings.as_ref()?.owner_checks.as_ref()
    }

    /// Whether the seed publishes in DNS the shoots that the seed owns.
    #[must_use]
    pub fn checks_owners(&self) -> bool {
        self.owner_checks().is_some_and(|checks| checks.enabled)
    }

    /// The DNS servers with the owner records. Empty where the NS records of the zone name the servers.
    ///
    /// # Errors
    /// The field and the value that is no address with a port.
    pub fn owner_authorities(&self) -> Result<Vec<SocketAddr>, String> {
        self.owner_checks().map_or(Ok(Vec::new()), OwnerChecks::addresses)
    }
}

/// Where backups go.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedBackup {
    /// Type of the provider of the bucket, such as `aws`.
    #[schemars(length(min = 1, max = 253))]
    pub provider: String,
    /// The provider's own configuration.
    pub provider_config: Option<PackedExtension>,
    /// Region of the bucket. Default: `spec.provider.region` of the Seed.
    #[schemars(length(max = 253))]
    pub region: Option<String>,
    /// Secret with the credentials of the account, in namespace `seed-<name of the Seed>` of the garden.
    pub credentials_ref: Option<ObjectReference>,
}

/// Domains for names of shoots.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedDNS {
    /// DNS provider for the ingress domain of the seed.
    pub provider: Option<SeedDNSProvider>,
    /// Domain for internal names, which survive any change of a shoot's own domain.
    pub internal: Option<SeedDNSProviderConfig>,
    /// Domains for shoots without a domain of their own; the first that fits is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<SeedDNSProviderConfig>,
}

/// A domain and the DNS provider of the domain.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedDNSProviderConfig {
    /// Type of the DNS provider of the names.
    #[schemars(length(min = 1, max = 253))]
    pub type_: String,
    /// Domain below which names of shoots are created.
    #[schemars(length(min = 1, max = 253))]
    pub domain: String,
    /// DNS zone of the names, as the provider identifies the zone.
    #[schemars(length(max = 253))]
    pub zone: Option<String>,
    /// Secret with the credentials of the DNS account, in namespace `seed-<name of the Seed>` of the garden.
    pub credentials_ref: ObjectReference,
}

impl SeedDNSProviderConfig {
    /// The name of the zone: the configured zone, if the zone is a name around the domain and not an id; else
    /// the domain.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        let domain = self.domain.trim_end_matches('.');
        let is_around = |zone: &&str| {
            let zone = zone.trim_end_matches('.');
            let rest = domain.strip_suffix(zone);
            !zone.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.zone.as_deref().filter(is_around).unwrap_or(&self.domain)
    }
}

/// DNS provider of the seed's own domain.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedDNSProvider {
    /// Type of the DNS provider of the ingress domain.
    pub type_: String,
    /// Credentials of the DNS account.
    pub credentials_ref: Option<ObjectReference>,
}

/// Networks of a seed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedNetworks {
    /// Range of addresses of the seed's nodes, in CIDR notation. Only charts of extensions use the range.
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub nodes: Option<String>,
    /// Range of addresses of the seed's pods, in CIDR notation. Only charts of extensions use the range.
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub pods: String,
    /// Range of addresses of the seed's services, in CIDR notation. Only charts of extensions use the range.
    #[schemars(length(max = 64))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub services: String,
    /// Networks for shoots that name none. The networks do not change while Shoots are on the seed.
    pub shoot_defaults: Option<ShootNetworks>,
    /// Networks that control planes may not talk to.
    #[serde(rename = "blockCIDRs", default, skip_serializing_if = "Vec::is_empty")]
    pub block_cidrs: Vec<String>,
    /// IP families of the seed: `IPv4` or `IPv6`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_families: Vec<IPFamily>,
}

/// Networks for shoots that name none.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShootNetworks {
    /// Default range for pods of shoots, in CIDR notation.
    pub pods: Option<String>,
    /// Default range for services of shoots, in CIDR notation.
    pub services: Option<String>,
}

impl ShootNetworks {
    /// Default for services, where neither the shoot nor the seed has a range.
    pub const SERVICES: &str = "100.64.0.0/13";
    /// Default for pods, where neither the shoot nor the seed has a range.
    pub const PODS: &str = "100.96.0.0/11";
}

/// The provider a seed runs on.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedProvider {
    /// Type of the provider of the seed, such as `local`.
    #[schemars(length(min = 1, max = 253))]
    pub type_: String,
    /// The provider's own configuration.
    pub provider_config: Option<PackedExtension>,
    /// Region in which the seed runs, as the provider calls the region.
    #[schemars(length(min = 1, max = 253))]
    pub region: String,
    /// Zones of the seed's nodes. Has no effect: control planes are not spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
}

/// Observed state of the seed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedStatus {
    /// The gardenlet that is responsible for the seed.
    pub gardener: Option<GardenerInfo>,
    /// Kubernetes version of the seed.
    pub kubernetes_version: Option<String>,
    /// Conditions of the seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// Unique identity of the cluster.
    pub cluster_identity: Option<String>,
    /// Resources for control planes, by name. Resource `shoots` is the number of control planes that the seed
    /// could host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
    /// The part of `capacity` that may be used. A planned move begins only while fewer control planes are on
    /// the seed, or on the way to the seed, than resource `shoots` says. Without this resource the number has
    /// no bound.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// When the client certificate expires with which the gardenlet signs in to the garden. Absent where the
    /// gardenlet uses a token. `kubectl repot check` fails for an expired certificate.
    pub client_certificate_expiration_timestamp: Option<Time>,
    /// Aspects that forbid or allow operations, e.g. `WithoutShoots`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Condition>,
    /// Type, state and progress of the last operation on the seed.
    pub last_operation: Option<LastOperation>,
    /// The longest fence of the Seed since the Seed had no shoot, in seconds, rounded up. A destination waits
    /// at least for this time, whatever the Seed says later, because processes may still use this fence. The
    /// gardenlet of the seed reports the value.
    #[schemars(range(min = 0))]
    pub owner_check_fence_seconds: Option<i64>,
}
