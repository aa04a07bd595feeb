//! The tunnel server: a separate server for each shoot, in the shoot's namespace, so that agents of different
//! tenants never meet.

use k8s_openapi::api::core::v1::Service;
use runtime::{
    Result,
    workload::{Files, Health, Workload, labels, mounted},
};
use serde_json::json;

use crate::{
    Facts, Settings, from_json,
    secrets::config::{CA_VPN, TUNNEL_AGENT_NAME, TUNNEL_CLIENT_NAME, TUNNEL_SERVER, TUNNEL_SERVICE},
};

/// Name of the Deployment, and label value of the pods.
pub(super) const NAME: &str = "tunnel-server";
/// Port for kube-apiserver.
pub(super) const CLIENTS: u16 = 8132;
/// Port for agents; the configuration of the seed's SNI proxy contains this port.
const AGENTS: u16 = 8133;
/// Port of the health endpoint.
const HEALTH: u16 = 8134;

/// The name that both sides verify in the server's certificate.
pub(super) fn name(namespace: &str) -> String {
    format!("{TUNNEL_SERVICE}.{namespace}.svc")
}

/// Image of the server and the agents.
pub(super) fn image(settings: &Settings) -> String {
    settings.image_of(&settings.tunnel_image, &settings.tunnel_tag)
}

pub(super) fn service(namespace: &str) -> Result<Service> {
    let port =
        |name: &str, port: u16| json!({"name": name, "port": port, "targetPort": port, "protocol": "TCP"});
    from_json(json!({
        "metadata": {"name": TUNNEL_SERVICE, "namespace": namespace, "labels": labels(NAME)},
        "spec": {
            "type": "ClusterIP",
            "selector": labels(NAME),
            "ports": [port("clients", CLIENTS), port("agents", AGENTS)],
        },
    }))
}

pub(super) fn workload(f: &Facts) -> Workload {
    Workload {
        name: NAME,
        image: image(&f.residency.settings),
        program: "/tunnel".into(),
        args: vec![
            "server".into(),
            format!("--ca={}", mounted(CA_VPN, "ca.crt")),
            format!("--certificate={}", mounted(TUNNEL_SERVER, "tls.crt")),
            format!("--key={}", mounted(TUNNEL_SERVER, "tls.key")),
            format!("--client-name={TUNNEL_CLIENT_NAME}"),
            format!("--agent-name={TUNNEL_AGENT_NAME}"),
            format!("--client-address=0.0.0.0:{CLIENTS}"),
            format!("--agent-address=0.0.0.0:{AGENTS}"),
            format!("--health-address=0.0.0.0:{HEALTH}"),
        ],
        health: Health {
            scheme: "HTTP",
            port: HEALTH,
            readiness: "/readyz",
            liveness: "/healthz",
        },
        files: vec![Files::Secret(TUNNEL_SERVER), Files::Authority(CA_VPN)],
        scratch: false,
        grace_seconds: 5,
        // Agents are connected to a single server: a second server at the same time would answer without
        // agents.
        overlaps: false,
        requests: ["16Mi", "5m"],
    }
}
