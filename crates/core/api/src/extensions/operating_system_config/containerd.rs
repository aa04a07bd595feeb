//! How machines run containers.

use serde_json::Value;

use crate::derive::{Deserialize, JsonSchema, KubeSchema, Serialize, skip_serializing_none};

/// The container runtime of a machine.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CRIConfig {
    /// Name of the container runtime: `containerd`.
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub name: CRIConfigName,
    /// Manager of the control groups: `cgroupfs` or `systemd`.
    pub cgroup_driver: Option<String>,
    /// Settings of containerd: registries, plugins and the sandbox image.
    pub containerd: Option<ContainerdConfig>,
}

/// Container runtimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CRIConfigName {
    /// The only supported container runtime.
    #[default]
    Containerd,
}

/// Settings of containerd.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerdConfig {
    /// Mirrors and settings of image registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registries: Vec<RegistryConfig>,
    /// Image of the sandbox container that holds the network of a pod.
    pub sandbox_image: String,
    /// Settings of plugins of containerd.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<PluginConfig>,
}

/// A registry.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryConfig {
    /// Registry as in the names of images, such as `registry.example.com`.
    pub upstream: String,
    /// URL of the registry, for images that no mirror has.
    pub server: Option<String>,
    /// Mirrors of the registry, in the order of the tries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<RegistryHost>,
    /// Whether a mirror is probed before the first use.
    pub readiness_probe: Option<bool>,
}

/// A mirror of a registry.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryHost {
    /// URL of the mirror of the registry.
    pub url: String,
    /// Capabilities of the mirror: `pull`, `resolve`, `push`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Paths of files with CA certificates that are trusted for the mirror.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ca_certs: Vec<String>,
    /// Whether `url` contains the whole path of the API of the mirror.
    pub override_path: Option<bool>,
}

/// Settings of a plugin.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PluginConfig {
    /// Operation on the setting: `add` or `remove`.
    pub op: Option<String>,
    /// Path of the setting in the configuration of containerd.
    pub path: Vec<String>,
    /// Values that are set below the path.
    #[serde(default)]
    #[schemars(schema_with = "crate::meta::any_schema")]
    pub values: Option<Value>,
}
