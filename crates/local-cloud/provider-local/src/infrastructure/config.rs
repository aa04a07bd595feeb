//! This provider's part of an Infrastructure. Unknown fields stay unchanged.

use serde::{Deserialize, Serialize};

/// `spec.providerConfig`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InfrastructureConfig {
    /// Range from which a network is taken without an explicit request.
    pub pool: String,
    /// The requested networks.
    pub networks: NetworksConfig,
}

/// The requested networks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworksConfig {
    /// Range of the nodes.
    pub workers: Option<String>,
}

impl Default for InfrastructureConfig {
    fn default() -> Self {
        // 1,024 networks of the assigned size.
        Self {
            pool: "10.180.0.0/14".into(),
            networks: NetworksConfig::default(),
        }
    }
}

/// `status.providerStatus`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InfrastructureStatus {
    /// Group and version.
    pub api_version: String,
    /// `InfrastructureStatus`.
    pub kind: String,
    /// The network.
    #[serde(rename = "networkID")]
    pub network_id: String,
    /// The zones of the worker pools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
}

/// A zone of the shoot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Zone {
    /// The name that worker pools use.
    pub name: String,
    /// The ID that annotation `shoot.gardener.cloud/isolated-zone` uses.
    pub id: String,
}

impl Zone {
    /// The zone with this name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            id: cloud_local::zones::id_of(name),
        }
    }
}

/// `status.state`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The network.
    #[serde(rename = "networkID")]
    pub network_id: String,
    /// The range of the network.
    #[serde(rename = "nodesCIDR")]
    pub nodes_cidr: String,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::InfrastructureConfig;

    #[test]
    fn all_is_optional_and_unknown_fields_are_no_error() {
        let config: InfrastructureConfig =
            serde_json::from_value(json!({"kind": "InfrastructureConfig", "more": {"a": 1}})).unwrap();
        assert_eq!(config, InfrastructureConfig::default());
        let config: InfrastructureConfig =
            serde_json::from_value(json!({"networks": {"workers": "10.1.0.0/24"}})).unwrap();
        assert_eq!(config.networks.workers.as_deref(), Some("10.1.0.0/24"));
        assert_eq!(config.pool, "10.180.0.0/14");
    }
}
