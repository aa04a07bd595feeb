//! `ControllerRegistration`: a provider and its responsibilities.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, KubeSchema, Serialize, skip_serializing_none},
    meta::Duration,
};

/// Responsibilities of the provider, and the installation in seeds.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "ControllerRegistration",
    derive = "Default",
    derive = "PartialEq",
    shortname = "ctrlreg",
    doc = "A provider and what it is responsible for.",
    printcolumn(name = "Resources", type_ = "string", json_path = ".spec.resources[*].kind"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ControllerRegistrationSpec {
    /// Kinds and types of extension objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub resources: Vec<ControllerResource>,
    /// Installation of the provider in seeds.
    pub deployment: Option<ControllerRegistrationDeployment>,
}

/// A kind and type of extension objects.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "self.kind == 'Extension' || !(has(self.lifecycle) || has(self.workerlessSupported) || has(self.autoEnable) || has(self.clusterCompatibility) || has(self.reconcileTimeout))",
    "lifecycle, workerlessSupported, autoEnable, clusterCompatibility and reconcileTimeout are for kind Extension only"
))]
pub struct ControllerResource {
    /// The kind, e.g. `Infrastructure`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Type of the extension or provider, such as `local`.
    #[schemars(length(min = 1, max = 253))]
    pub type_: String,
    /// Whether every shoot gets the extension by default. The former spelling of `autoEnable`.
    pub globally_enabled: Option<bool>,
    /// Longest time of a reconciliation of the extension.
    pub reconcile_timeout: Option<Duration>,
    /// Whether this provider is responsible for the objects, among several providers of the type.
    pub primary: Option<bool>,
    /// Step of a flow at which the extension is handled.
    pub lifecycle: Option<ControllerResourceLifecycle>,
    /// Whether shoots without workers can have the extension.
    pub workerless_supported: Option<bool>,
    /// Kinds of clusters that get the extension by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_enable: Vec<ClusterType>,
    /// Kinds of clusters that can have the extension.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_compatibility: Vec<ClusterType>,
    /// Whether the extension is informed of changes of the control plane's address between reconciliations.
    /// Has no effect.
    pub continuous_endpoint_update: Option<bool>,
}

/// Kinds of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClusterType {
    /// Shoots.
    Shoot,
    /// Seeds.
    Seed,
    /// The garden.
    Garden,
}

/// When in a flow an extension is handled.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControllerResourceLifecycle {
    /// Step at which the extension object is reconciled.
    pub reconcile: Option<LifecycleStrategy>,
    /// Whether the extension object is deleted before or after kube-apiserver.
    pub delete: Option<LifecycleStrategy>,
    /// Step at which the extension object is handed over.
    pub migrate: Option<LifecycleStrategy>,
}

/// Order of the step: before or after kube-apiserver, or after the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LifecycleStrategy {
    /// Before the API server.
    BeforeKubeAPIServer,
    /// After the API server.
    AfterKubeAPIServer,
    /// After the workers; in reconciliation only.
    AfterWorker,
}

/// How a provider gets into seeds.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerRegistrationDeployment {
    /// Seeds on which the extension is installed: where an object needs the extension, everywhere, or
    /// everywhere except for seeds without shoots.
    pub policy: Option<ControllerDeploymentPolicy>,
    /// Labels of the seeds on which the extension may be installed. Absent for all seeds.
    pub seed_selector: Option<LabelSelector>,
    /// References to the ControllerDeployment with the chart. One at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1))]
    pub deployment_refs: Vec<DeploymentRef>,
}

/// Seeds on which the extension is installed: where an object needs the extension, everywhere, or everywhere
/// except for seeds without shoots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ControllerDeploymentPolicy {
    /// When an object needs the provider.
    OnDemand,
    /// In any case.
    Always,
    /// In any case, once there is a shoot.
    AlwaysExceptNoShoots,
}

/// A ControllerDeployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeploymentRef {
    /// Name of the ControllerDeployment.
    pub name: String,
}
