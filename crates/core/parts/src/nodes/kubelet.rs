//! The kubelet's configuration on machines: settings of the shoot, overridden by settings of the user.

use std::net::IpAddr;

use api::gardencore::shoot::{KubeletConfig, Worker};
use placement::Names;
use runtime::Result;
use serde_json::{Map, Value, json};

use crate::{configuration_problem, from_json};

/// Directory of the kubelet's files.
pub(super) const DIRECTORY: &str = "/var/lib/kubelet";
/// Index of the address of the shoot's DNS in the services' network.
const DNS: u32 = 10;

/// Settings whose keys have different names in the kubelet's configuration.
const THRESHOLDS: [&str; 4] = [
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMinimumReclaim",
];

/// The user's kubelet settings for a pool: the settings of the pool, or the settings of the shoot.
pub(super) fn wanted(all: Option<&KubeletConfig>, pool: &Worker) -> Option<KubeletConfig> {
    let own = pool
        .kubernetes
        .as_ref()
        .and_then(|kubernetes| kubernetes.kubelet.as_ref());
    own.or(all).cloned()
}

pub(super) fn configuration(names: &Names, user: Option<&KubeletConfig>) -> Result<Value> {
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": format!("{DIRECTORY}/ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "cgroupRoot": "/kubelet",
        "clusterDNS": [dns(names)?.to_string()],
        "clusterDomain": "cluster.local",
        "failSwapOn": false,
        "rotateCertificates": true,
        // The kubelet reports the node four times within the grace period of the node lifecycle controller.
        "nodeStatusUpdateFrequency": "10s",
        "registerNode": true,
    });
    for (name, value) in of_user(user)? {
        config[name] = value;
    }
    Ok(config)
}

/// The user's settings, with the names of the kubelet's configuration.
fn of_user(user: Option<&KubeletConfig>) -> Result<Map<String, Value>> {
    let Some(user) = user else { return Ok(Map::new()) };
    let mut settings: Map<String, Value> = from_json(json!(user))?;
    for name in THRESHOLDS {
        if let Some(Value::Object(thresholds)) = settings.remove(name) {
            let renamed = thresholds
                .into_iter()
                .map(|(signal, value)| (signal_of(&signal), value));
            settings.insert(name.to_owned(), Value::Object(renamed.collect()));
        }
    }
    for name in ["kubeReserved", "systemReserved"] {
        if let Some(Value::Object(reserved)) = settings.get_mut(name)
            && let Some(value) = reserved.remove("ephemeralStorage")
        {
            reserved.insert("ephemeral-storage".to_owned(), value);
        }
    }
    Ok(settings)
}

/// Maps `nodeFSInodesFree` to the kubelet's signal `nodefs.inodesFree`.
fn signal_of(field: &str) -> String {
    match field {
        "memoryAvailable" => "memory.available",
        "imageFSAvailable" => "imagefs.available",
        "imageFSInodesFree" => "imagefs.inodesFree",
        "nodeFSAvailable" => "nodefs.available",
        "nodeFSInodesFree" => "nodefs.inodesFree",
        other => other,
    }
    .to_owned()
}

/// The address of the shoot's DNS.
pub(crate) fn dns(names: &Names) -> Result<IpAddr> {
    let IpAddr::V4(first) = names.first_service_ip else {
        return Err(configuration_problem("the services' network must be of IPv4"));
    };
    // The first address is the address of the Service `kubernetes`: index 1 of the network.
    Ok(IpAddr::V4((u32::from(first) - 1 + DNS).into()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::names_in_tests;

    #[test]
    fn a_user_s_settings_are_called_as_kubelets_call_them() {
        let user: KubeletConfig = serde_json::from_value(json!({
            "maxPods": 50,
            "evictionHard": {"memoryAvailable": "100Mi", "nodeFSInodesFree": "5%"},
            "kubeReserved": {"cpu": "80m", "ephemeralStorage": "1Gi"},
        }))
        .unwrap();
        let config = configuration(&names_in_tests("100.96.0.0/11"), Some(&user)).unwrap();
        assert_eq!(config["maxPods"], 50);
        assert_eq!(
            config["evictionHard"],
            json!({"memory.available": "100Mi", "nodefs.inodesFree": "5%"})
        );
        assert_eq!(
            config["kubeReserved"],
            json!({"cpu": "80m", "ephemeral-storage": "1Gi"})
        );
        assert_eq!(config["clusterDNS"], json!(["100.64.0.10"]));
    }
}
