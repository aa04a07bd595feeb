//! `Shoot`: a cluster whose control plane is hosted on a seed. An edit of `spec.seedName` moves the control
//! plane.

mod control_plane;
mod credentials_status;
pub mod effects;
mod kubernetes;
mod maintenance;
mod migration;
mod networking;
mod owner_checks;
mod ownership;
mod provider;
mod references;
mod status;
mod system_components;
mod workers;
mod zone_isolation;

pub use control_plane::*;
pub use credentials_status::*;
pub use kubernetes::*;
pub use maintenance::*;
pub use migration::*;
pub use networking::*;
pub use owner_checks::*;
pub use ownership::*;
pub use provider::*;
pub use references::*;
pub use status::*;
pub use system_components::*;
pub use workers::*;
pub use zone_isolation::*;

use crate::{
    derive::{
        CustomResource, Deserialize, JsonSchema, KubeSchema, PRINTABLE, Serialize, skip_serializing_none,
    },
    gardencore::project::Toleration,
    meta::NamedResourceReference,
};

/// The wanted state of the cluster.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "Shoot",
    namespaced,
    status = "ShootStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A cluster whose control plane is hosted on a seed.",
    selectable = ".spec.seedName",
    selectable = ".status.seedName",
    selectable = ".spec.cloudProfileName",
    selectable = ".spec.cloudProfile.name",
    selectable = ".spec.cloudProfile.kind",
    printcolumn(name = "CloudProfile", type_ = "string", json_path = ".spec.cloudProfile.name"),
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.provider.type"),
    printcolumn(name = "Region", type_ = "string", json_path = ".spec.region"),
    printcolumn(name = "Seed", type_ = "string", json_path = ".status.seedName"),
    printcolumn(name = "K8S Version", type_ = "string", json_path = ".spec.kubernetes.version"),
    printcolumn(name = "Hibernated", type_ = "boolean", json_path = ".status.hibernated", priority = "1"),
    printcolumn(name = "Last Operation", type_ = "string", json_path = ".status.lastOperation.type"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.lastOperation.state"),
    printcolumn(name = "Progress", type_ = "integer", json_path = ".status.lastOperation.progress"),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r".metadata.labels.shoot\.gardener\.cloud/status",
        description = "How its conditions look, taken together."
    ),
    printcolumn(name = "Target Seed", type_ = "string", json_path = ".spec.seedName", priority = "1"),
    printcolumn(name = "Purpose", type_ = "string", json_path = ".spec.purpose", priority = "1"),
    printcolumn(
        name = "Gardener Version",
        type_ = "string",
        json_path = ".status.gardener.version",
        priority = "1"
    ),
    printcolumn(
        name = "APIServer",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"APIServerAvailable\")].status",
        priority = "1"
    ),
    printcolumn(
        name = "Control",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ControlPlaneHealthy\")].status",
        priority = "1"
    ),
    printcolumn(
        name = "Observability",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ObservabilityComponentsHealthy\")].status",
        priority = "1"
    ),
    printcolumn(
        name = "Nodes",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"EveryNodeReady\")].status",
        priority = "1"
    ),
    printcolumn(
        name = "System",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"SystemComponentsHealthy\")].status",
        priority = "1"
    ),
    printcolumn(
        name = "Isolated Zone",
        type_ = "string",
        json_path = ".status.zoneIsolation.isolatedZoneID",
        priority = "1"
    ),
    printcolumn(
        name = "Isolation",
        type_ = "string",
        json_path = ".status.zoneIsolation.phase",
        priority = "1"
    ),
    printcolumn(
        name = "Isolation Status",
        type_ = "string",
        json_path = ".status.zoneIsolation.status",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = (
        "self.metadata.name.size() <= 20",
        "the name of a shoot may have 20 characters at most (21 together with the name of its project)"
    ),
    validation = (
        "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && !self.metadata.name.contains('--')",
        "the name of a shoot must consist of small letters, digits and single hyphens"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.cloudProfile) || has(self.cloudProfileName)",
    "a cloudProfile must be given"
))]
#[x_kube(validation = (
    "!has(self.cloudProfile) || !has(self.cloudProfileName) || self.cloudProfile.name == self.cloudProfileName",
    "cloudProfileName is the old way to write cloudProfile.name: give one of them"
))]
#[x_kube(validation = (
    "!has(self.secretBindingName) || !has(self.credentialsBindingName)",
    "only one of secretBindingName and credentialsBindingName may be given"
))]
#[x_kube(validation = (
    "!has(self.provider.workers) || self.provider.workers.size() == 0 || has(self.secretBindingName) || has(self.credentialsBindingName)",
    "a shoot with workers needs a credentialsBindingName (or a secretBindingName)"
))]
#[x_kube(validation = (
    "!has(self.kubernetes) || !has(self.kubernetes.controllerLeaders) || !has(self.networking) || !has(self.networking.pods) || !self.networking.pods.contains(':') || self.kubernetes.controllerLeaders.all(leader, leader.component != 'cloud-controller-manager')",
    "the cloud-controller-manager gives ranges of IPv4 addresses only: leave node-ipam-controller to the kube-controller-manager"
))]
#[x_kube(validation = ("!has(oldSelf.seedName) || has(self.seedName)", "seedName cannot be removed once set"))]
#[x_kube(validation = (
    "!has(oldSelf.kubernetes) || !has(oldSelf.kubernetes.version) || (has(self.kubernetes) && has(self.kubernetes.version) && (!oldSelf.kubernetes.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+') || self.kubernetes.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+')))",
    "kubernetes.version cannot be removed or shortened once it is given in full"
))]
#[x_kube(validation = (
    "!has(oldSelf.kubernetes) || !has(oldSelf.kubernetes.version) || !has(self.kubernetes) || !has(self.kubernetes.version) || !oldSelf.kubernetes.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+') || !self.kubernetes.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+') || (int(self.kubernetes.version.split('.')[0].replace('v', '')) == int(oldSelf.kubernetes.version.split('.')[0].replace('v', '')) && int(self.kubernetes.version.split('.')[1].replace('v', '')) - int(oldSelf.kubernetes.version.split('.')[1].replace('v', '')) in [0, 1])",
    "kubernetes.version may go up by one minor version at a time, and not down: the data of a newer version may not be read by an older one"
))]
#[x_kube(validation = (
    "!has(oldSelf.kubernetes) || !has(oldSelf.kubernetes.version) || !has(self.kubernetes) || !has(self.kubernetes.version) || !oldSelf.kubernetes.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+') || !self.kubernetes.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+') || int(self.kubernetes.version.split('.')[1].replace('v', '')) != int(oldSelf.kubernetes.version.split('.')[1].replace('v', '')) || int(self.kubernetes.version.split('.')[2].split('-')[0].split('+')[0]) >= int(oldSelf.kubernetes.version.split('.')[2].split('-')[0].split('+')[0])",
    "kubernetes.version may not go down"
))]
// The pattern of both versions ensures that the first two parts are numbers.
#[x_kube(validation = (
    "!has(self.kubernetes) || !has(self.kubernetes.version) || !has(self.provider.workers) || self.provider.workers.all(pool, !has(pool.kubernetes) || !has(pool.kubernetes.version) || int(pool.kubernetes.version.split('.')[0].replace('v', '')) < int(self.kubernetes.version.split('.')[0].replace('v', '')) || (int(pool.kubernetes.version.split('.')[0].replace('v', '')) == int(self.kubernetes.version.split('.')[0].replace('v', '')) && int(pool.kubernetes.version.split('.')[1].split('-')[0].split('+')[0]) <= int(self.kubernetes.version.split('.')[1].split('-')[0].split('+')[0])))",
    "kubernetes.version of a worker pool must not be of a newer minor version than kubernetes.version of the shoot"
))]
#[x_kube(validation = (
    "has(oldSelf.exposureClassName) == has(self.exposureClassName)",
    "exposureClassName cannot be added or removed later"
))]
pub struct ShootSpec {
    /// Programs that a user may switch on.
    pub addons: Option<Addons>,
    /// Name of the CloudProfile. The former spelling of `cloudProfile`.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub cloud_profile_name: Option<String>,
    /// Domain of the shoot and the DNS providers for the domain.
    pub dns: Option<DNS>,
    /// Further extensions of the shoot, each of a type that a ControllerRegistration offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
    /// Whether and when the shoot is hibernated.
    pub hibernation: Option<Hibernation>,
    /// Settings of the control plane's processes. By default, without a version, the shoot gets the newest
    /// version that the CloudProfile offers.
    #[serde(default)]
    pub kubernetes: Kubernetes,
    /// Network plugin of the shoot, and ranges of addresses.
    pub networking: Option<Networking>,
    /// Time window and settings of automatic maintenance. Has no effect.
    pub maintenance: Option<Maintenance>,
    /// Monitoring of the shoot, and receivers of alerts. Has no effect.
    pub monitoring: Option<Monitoring>,
    /// Type and settings of the provider, and worker pools.
    pub provider: Provider,
    /// Purpose of the shoot, such as `production`.
    pub purpose: Option<ShootPurpose>,
    /// Region of the shoot's machines, as the provider calls the region.
    #[schemars(length(min = 1, max = 253), regex(pattern = PRINTABLE))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub region: String,
    /// The SecretBinding with the credentials.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub secret_binding_name: Option<String>,
    /// The seed that hosts the shoot, or is to host the shoot. An edit moves the control plane.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub seed_name: Option<String>,
    /// Seeds on which the shoot may be created, and to which the shoot may move, by label and provider type.
    /// Without a selector every seed is allowed.
    pub seed_selector: Option<SeedSelector>,
    /// Objects that extensions' configurations refer to by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<NamedResourceReference>,
    /// Taints of seeds that the shoot tolerates. A taint without value is tolerated by key, a taint with a
    /// value by key and value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Class of the exposure of the API server. Has no effect.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub exposure_class_name: Option<String>,
    /// Settings of the system components in the shoot. Has no effect.
    pub system_components: Option<SystemComponents>,
    /// Spread of the control plane over nodes or zones. Has no effect.
    pub control_plane: Option<ControlPlane>,
    /// Name of the scheduler that chooses the seed. Has no effect.
    #[schemars(length(min = 1, max = 253))]
    pub scheduler_name: Option<String>,
    /// Reference to the CloudProfile with the machine types, images and versions for the shoot.
    pub cloud_profile: Option<CloudProfileReference>,
    /// The CredentialsBinding with the credentials.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub credentials_binding_name: Option<String>,
    /// Access restrictions of the shoot. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_restrictions: Vec<AccessRestrictionWithOptions>,
}

/// Purpose of the shoot, such as `production`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShootPurpose {
    /// For a look.
    Evaluation,
    /// For tests.
    Testing,
    /// For work on software.
    Development,
    /// For users.
    Production,
    /// For the landscape.
    Infrastructure,
}

impl ShootSpec {
    /// The name of the CloudProfile, in either spelling.
    #[must_use]
    pub fn cloud_profile_name(&self) -> Option<&str> {
        self.cloud_profile
            .as_ref()
            .map(|profile| profile.name.as_str())
            .or(self.cloud_profile_name.as_deref())
    }
}
