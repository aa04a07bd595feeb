//! The tunnel agents: two pods on different nodes in the pod network. The agents dial the seed's SNI proxy
//! and open connections for the API server.

use base64::{Engine, engine::general_purpose::STANDARD};
use runtime::workload::{NON_ROOT, pod_security, rollout::checksum};
use serde_json::{Value, json};

use crate::{
    secrets::issue::Data,
    system_components::{NAMESPACE, hardened, labels},
};

/// Name of the objects in the shoot.
const NAME: &str = "tunnel-agent";
/// Mount path of the keys.
const KEYS: &str = "/etc/tunnel";
/// Port of the health endpoint.
const HEALTH: u16 = 8134;

/// Host names for an agent.
pub(super) struct Names<'a> {
    /// The API's name, which resolves to the SNI proxy of the seed that has the shoot.
    pub front: &'a str,
    /// The name in the server's certificate.
    pub server: &'a str,
}

/// All objects. The objects hold no data of the seed: a move changes no object, and so restarts no pod (I4).
pub(super) fn objects(image: &str, names: &Names<'_>, keys: &Data) -> Vec<Value> {
    let files = ["ca.crt", "tls.crt", "tls.key"];
    let files: serde_json::Map<String, Value> = files
        .iter()
        .filter_map(|file| Some(((*file).to_owned(), json!(STANDARD.encode(keys.get(*file)?)))))
        .collect();
    let sum = checksum(files.iter().map(|(file, text)| (file, text.to_string())));
    let meta = || json!({"name": NAME, "namespace": NAMESPACE, "labels": labels(NAME)});
    let selector = json!({"matchLabels": {"k8s-app": NAME}});
    vec![
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE},
            "automountServiceAccountToken": false,
        }),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta(), "type": "Opaque", "data": files}),
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta(),
            "spec": {
                "maxUnavailable": 1, "selector": selector,
                // A broken pod must not block a drain.
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(),
            "spec": {
                // Two, because a lost node takes an agent away.
                "replicas": 2,
                "revisionHistoryLimit": 1,
                "selector": selector,
                // Old pods stop only after new pods are connected.
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                "template": {
                    "metadata": {"labels": labels(NAME), "annotations": {"checksum/keys": sum}},
                    "spec": pod(image, names),
                },
            },
        }),
    ]
}

fn pod(image: &str, names: &Names<'_>) -> Value {
    let spread = json!([{"weight": 100, "podAffinityTerm": {
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"k8s-app": NAME}},
    }}]);
    json!({
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": spread}},
        // The agent is needed to repair CoreDNS, so the agent does not use CoreDNS.
        "dnsPolicy": "Default",
        "priorityClassName": "system-cluster-critical",
        // The agent has to run on every kind of node, also on unhealthy nodes.
        "tolerations": [{"operator": "Exists"}],
        "serviceAccountName": NAME,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 15,
        "securityContext": pod_security(NON_ROOT),
        "containers": [container(image, names)],
        "volumes": [{"name": "keys", "secret": {"secretName": NAME, "defaultMode": 0o440}}],
    })
}

fn container(image: &str, names: &Names<'_>) -> Value {
    let look = |path: &str| json!({"path": path, "port": HEALTH});
    json!({
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/tunnel"],
        "args": [
            "agent",
            format!("--ca={KEYS}/ca.crt"),
            format!("--certificate={KEYS}/tls.crt"),
            format!("--key={KEYS}/tls.key"),
            format!("--front={}", names.front),
            format!("--server-name={}", names.server),
            format!("--health-address=0.0.0.0:{HEALTH}"),
        ],
        "env": [{"name": "NODE_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        "ports": [{"name": "health", "containerPort": HEALTH, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}, "limits": {"memory": "192Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": hardened(),
        "livenessProbe": {"httpGet": look("/healthz"), "initialDelaySeconds": 30, "failureThreshold": 6},
        // Ready means connected. Readiness is visible through the API while logs are not.
        "readinessProbe": {"httpGet": look("/readyz"), "periodSeconds": 2},
        "volumeMounts": [{"name": "keys", "mountPath": KEYS, "readOnly": true}],
    })
}
