//! Settings of a Seed about the use of the seed, not its properties.

use k8s_openapi::{api::core::v1::Toleration, apimachinery::pkg::api::resource::Quantity};

use super::owner_checks::OwnerChecks;
use crate::derive::{
    BTreeMap, Deserialize, JsonSchema, KubeSchema, PackedExtension, Serialize, skip_serializing_none,
};

/// Further settings.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedSettings {
    /// Reservation of free capacity for control planes.
    pub excess_capacity_reservation: Option<ExcessCapacityReservation>,
    /// Selection of the seed for new shoots.
    pub scheduling: Option<SeedScheduling>,
    /// Settings of the Services of type LoadBalancer in the seed.
    pub load_balancer_services: Option<LoadBalancerServices>,
    /// Vertical scaling of control planes.
    pub vertical_pod_autoscaler: Option<SeedVerticalPodAutoscaler>,
    /// Restarts and scale-downs when dependencies fail.
    pub dependency_watchdog: Option<DependencyWatchdog>,
    /// Routing that keeps traffic within a zone.
    pub topology_aware_routing: Option<Enabled>,
    /// Choice of zones for control planes.
    pub zone_selection: Option<ZoneSelection>,
    /// Automatic growth of volumes. Has no effect.
    pub persistent_volume_claim_autoscaler: Option<Enabled>,
    /// Whether the seed publishes ownership of shoots in DNS, so that other processes can check the owner
    /// (R17-10). Default: off.
    pub owner_checks: Option<OwnerChecks>,
}

/// A switch that must be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enabled {
    /// Whether the setting is on.
    pub enabled: bool,
}

/// A switch with a default.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OptionallyEnabled {
    /// Whether the setting is on. Absent counts as off.
    pub enabled: Option<bool>,
}

/// Room kept free for control planes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExcessCapacityReservation {
    /// Whether capacity is reserved. Default: true.
    pub enabled: Option<bool>,
    /// Resources to reserve, with the nodes that hold the reservation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<ExcessCapacityReservationConfig>,
}

/// How much room is kept free, and where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExcessCapacityReservationConfig {
    /// Resources that are reserved, such as `cpu` and `memory`. Has no effect.
    pub resources: BTreeMap<String, Quantity>,
    /// Labels of the nodes on which resources are reserved. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of the reservation for taints of nodes. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

/// Whether new shoots come here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeedScheduling {
    /// Whether the scheduler sees the seed.
    pub visible: bool,
}

/// How load balancers are made.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerServices {
    /// Annotations of load balancers. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// How nodes pass traffic on.
    pub external_traffic_policy: Option<ExternalTrafficPolicy>,
    /// Settings for Services of single zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<LoadBalancerServicesZone>,
    /// Settings of the PROXY protocol for the addresses of clients.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Whether each zone gets a load balancer for ingress. Has no effect.
    pub zonal_ingress: Option<OptionallyEnabled>,
    /// Class of load balancers. Has no effect.
    pub class: Option<String>,
}

/// Settings of load balancers of a zone.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerServicesZone {
    /// Name of the zone. Has no effect.
    pub name: String,
    /// Annotations of load balancers in the zone. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// How nodes pass traffic on.
    pub external_traffic_policy: Option<ExternalTrafficPolicy>,
    /// Settings of the PROXY protocol for the addresses of clients.
    pub proxy_protocol: Option<ProxyProtocol>,
}

/// Policy of the load balancer Services for traffic from outside the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExternalTrafficPolicy {
    /// To any node.
    Cluster,
    /// To pods of the same node only.
    Local,
}

/// Whether clients' addresses come by the PROXY protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProxyProtocol {
    /// Whether headers of the PROXY protocol are accepted.
    pub allowed: bool,
}

/// Vertical scaling of control planes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedVerticalPodAutoscaler {
    /// Whether control planes are scaled vertically. Has no effect.
    pub enabled: bool,
    /// Feature gates of the autoscaler. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: BTreeMap<String, bool>,
    /// Highest resources that the autoscaler recommends. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_allowed: BTreeMap<String, Quantity>,
}

/// Restarts and scale-downs when dependencies fail.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DependencyWatchdog {
    /// Restarts pods that wait in back-off once the dependency is back. Has no effect.
    pub weeder: Option<Enabled>,
    /// Scales controllers down when the shoot's API cannot be reached.
    pub prober: Option<Enabled>,
}

/// Choice of zones for control planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZoneSelection {
    /// Whether a control plane only prefers the zones of the shoot, or has to be in these zones.
    pub mode: ZoneSelectionMode,
}

/// How strictly a shoot's zones are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ZoneSelectionMode {
    /// Where possible.
    Prefer,
    /// Always.
    Enforce,
}

/// Keeps shoots without a matching toleration off the seed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeedTaint {
    /// Key of the taint, for a toleration of a Shoot.
    pub key: String,
    /// Value of the taint. Absent for a taint with a key only.
    pub value: Option<String>,
}

/// Volumes in a seed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedVolume {
    /// Smallest size of a PersistentVolumeClaim in the seed.
    pub minimum_size: Option<Quantity>,
    /// Provisioners of volumes, by purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<SeedVolumeProvider>,
}

/// A provisioner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeedVolumeProvider {
    /// Purpose of volumes of this provider. Has no effect.
    pub purpose: String,
    /// Name of the provider of volumes. Has no effect.
    pub name: String,
}

/// The seed's ingress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct Ingress {
    /// Domain of names for parts of control planes.
    #[schemars(
        length(max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub domain: String,
    /// Ingress controller of the seed. Has no effect.
    pub controller: IngressController,
}

/// Ingress controller of a seed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressController {
    /// Kind of the ingress controller. Has no effect.
    pub kind: IngressControllerKind,
    /// Configuration of the ingress controller. Has no effect.
    pub provider_config: Option<PackedExtension>,
}

/// Kinds of ingress controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IngressControllerKind {
    /// The only supported ingress controller.
    #[default]
    Nginx,
}
