//! What kube-apiserver is told: where CONNECT is taken, and by which certificates.

use k8s_openapi::api::core::v1::ConfigMap;
use runtime::{
    Error, Result,
    workload::{Files, mounted},
};
use serde_json::json;

use super::server::{CLIENTS, name};
use crate::{
    from_json,
    secrets::config::{CA_VPN, TUNNEL_CLIENT},
};

/// Of the ConfigMap.
pub(crate) const NAME: &str = "kube-apiserver-egress";
/// Its file.
const FILE: &str = "egress-selector-configuration.yaml";
/// What kube-apiserver mounts for it.
pub(crate) const FILES: [Files; 3] = [
    Files::Secret(TUNNEL_CLIENT),
    Files::Authority(CA_VPN),
    Files::ConfigMap(NAME),
];

/// The flag of kube-apiserver.
pub(crate) fn flag() -> String {
    format!("--egress-selector-config-file={}", mounted(NAME, FILE))
}

/// Only what is in the shoot is reached through the tunnel; etcd and what users name by a URL is reached as
/// it was.
pub(super) fn config_map(namespace: &str) -> Result<ConfigMap> {
    let tls = json!({
        "caBundle": mounted(CA_VPN, "ca.crt"),
        "clientCert": mounted(TUNNEL_CLIENT, "tls.crt"),
        "clientKey": mounted(TUNNEL_CLIENT, "tls.key"),
    });
    let url = format!("https://{}:{CLIENTS}", name(namespace));
    let config = json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{
            "name": "cluster",
            "connection": {
                "proxyProtocol": "HTTPConnect",
                "transport": {"tcp": {"url": url, "tlsConfig": tls}},
            },
        }],
    });
    let text = serde_yaml_ng::to_string(&config).map_err(|e| Error::bug(e.to_string()))?;
    from_json(json!({
        "metadata": {"name": NAME, "namespace": namespace},
        "data": {FILE: text},
    }))
}
