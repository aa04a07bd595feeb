//! EgressSelector configuration of kube-apiserver: the address for HTTP CONNECT and the certificates.

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

/// Name of the ConfigMap.
pub(crate) const NAME: &str = "kube-apiserver-egress";
/// Key of the file in the ConfigMap.
const FILE: &str = "egress-selector-configuration.yaml";
/// Files that kube-apiserver mounts for the configuration.
pub(crate) const FILES: [Files; 3] = [
    Files::Secret(TUNNEL_CLIENT),
    Files::Authority(CA_VPN),
    Files::ConfigMap(NAME),
];

/// The flag of kube-apiserver.
pub(crate) fn flag() -> String {
    format!("--egress-selector-config-file={}", mounted(NAME, FILE))
}

/// Only targets in the shoot use the tunnel. kube-apiserver reaches etcd, and URLs that users configure,
/// directly.
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
    let text =
        serde_yaml_ng::to_string(&config).map_err(|e| Error::bug(runtime::ErrorMessage::from_source(e)))?;
    from_json(json!({
        "metadata": {"name": NAME, "namespace": namespace},
        "data": {FILE: text},
    }))
}
