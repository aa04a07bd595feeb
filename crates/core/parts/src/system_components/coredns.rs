//! CoreDNS: resolves names of Services for the pods of the shoot.

use std::net::IpAddr;

use runtime::{
    Result,
    workload::{NON_ROOT, pod_security, rollout::checksum},
};
use serde_json::{Value, json};

use super::{NAMESPACE, hardened, labels};
use crate::{
    Facts,
    nodes::cluster_dns,
    task::{ExternalSystems, NONE},
    verbs::{Deploy, Tasks},
};

/// Name of the objects in the shoot.
const NAME: &str = "coredns";
/// Conventional name of the Service, and label value of the pods.
const SERVICE: &str = "kube-dns";
/// Name of the ManagedResource.
const MANAGED_RESOURCE: &str = "shoot-core-coredns";
/// Name of the ClusterRole and the binding.
const ROLE: &str = "system:coredns";
/// Cluster domain: the suffix of all names of the shoot, as configured in kubelets.
const DOMAIN: &str = "cluster.local";
/// Port of the container. A port below 1024 would need a privilege; the Service uses the standard port.
const PORT: u16 = 8053;

/// The shoot's DNS.
#[derive(Debug)]
pub struct CoreDns;

impl Deploy for CoreDns {
    const TASKS: Tasks = [
        "Deploying CoreDNS system component",
        "Waiting until CoreDNS system component is applied",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn deploy(f: &Facts) -> Result<()> {
        super::deploy(&f.residency, MANAGED_RESOURCE, wanted(f)?.as_deref()).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        super::ready(&f.residency, MANAGED_RESOURCE, wanted(f)?.as_deref()).await
    }
}

fn wanted(f: &Facts) -> Result<Option<Vec<Value>>> {
    if !f.has_workers() {
        return Ok(None);
    }
    let settings = &f.residency.settings;
    let image = settings.image_of(&settings.coredns_image, &settings.coredns_tag);
    Ok(Some(objects(&image, f.api_for_nodes()?, cluster_dns(&f.names)?)))
}

/// All objects. `address`: cluster IP of the Service.
pub(super) fn objects(image: &str, api: &str, address: IpAddr) -> Vec<Value> {
    let corefile = corefile();
    let sum = checksum([("Corefile", &corefile)]);
    let meta = |name: &str| json!({"name": name, "namespace": NAMESPACE, "labels": labels(SERVICE)});
    let spread = json!([{"weight": 100, "podAffinityTerm": {
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"k8s-app": SERVICE}},
    }}]);
    vec![
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE},
            "automountServiceAccountToken": false,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": ROLE},
            "rules": [
                {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": ROLE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
        }),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(NAME), "data": {"Corefile": corefile}}),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": meta(SERVICE),
            "spec": {
                "clusterIP": address.to_string(), "selector": {"k8s-app": SERVICE},
                "ports": [
                    {"name": "dns", "port": 53, "targetPort": PORT, "protocol": "UDP"},
                    {"name": "dns-tcp", "port": 53, "targetPort": PORT, "protocol": "TCP"},
                    {"name": "metrics", "port": 9153, "targetPort": 9153, "protocol": "TCP"},
                ],
            },
        }),
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta(NAME),
            "spec": {
                "maxUnavailable": 1, "selector": {"matchLabels": {"k8s-app": SERVICE}},
                // A broken pod must not block a drain.
                "unhealthyPodEvictionPolicy": "AlwaysAllow",
            },
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(NAME),
            "spec": {
                "replicas": 2,
                "revisionHistoryLimit": 1,
                "selector": {"matchLabels": {"k8s-app": SERVICE}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                "template": {
                    "metadata": {"labels": labels(SERVICE), "annotations": {"checksum/corefile": sum}},
                    "spec": {
                        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": spread}},
                        // Otherwise CoreDNS would resolve through CoreDNS.
                        "dnsPolicy": "Default",
                        "priorityClassName": "system-cluster-critical",
                        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
                        "serviceAccountName": NAME,
                        "automountServiceAccountToken": true,
                        "enableServiceLinks": false,
                        "securityContext": pod_security(NON_ROOT),
                        "containers": [container(image, api)],
                        "volumes": [{"name": "files", "configMap": {"name": NAME, "defaultMode": 0o440}}],
                    },
                },
            },
        }),
    ]
}

/// Names outside the shoot are forwarded to the resolvers of the node.
fn corefile() -> String {
    format!(
        ".:{PORT} {{
    errors
    health {{
        lameduck 15s
    }}
    ready
    kubernetes {DOMAIN} in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance round_robin
}}
"
    )
}

fn container(image: &str, api: &str) -> Value {
    let mut may = hardened();
    // The image gives this file capability to the program, which cannot start without the capability. The
    // program does not use the capability.
    may["capabilities"]["add"] = json!(["NET_BIND_SERVICE"]);
    let look = |path: &str, port: u16| json!({"httpGet": {"path": path, "port": port}});
    let mut live = look("/health", 8080);
    live["initialDelaySeconds"] = json!(60);
    live["failureThreshold"] = json!(5);
    live["timeoutSeconds"] = json!(5);
    let mut ready = look("/ready", 8181);
    ready["periodSeconds"] = json!(5);
    json!({
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "env": [
            // Not the address of the Service `kubernetes`: that path needs kube-proxy and api-proxy. CoreDNS
            // thus has fewer dependencies.
            {"name": "KUBERNETES_SERVICE_HOST", "value": api},
            {"name": "KUBERNETES_SERVICE_PORT", "value": "443"},
        ],
        "ports": [
            {"name": "dns", "containerPort": PORT, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
        ],
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": may,
        "livenessProbe": live,
        "readinessProbe": ready,
        "volumeMounts": [{"name": "files", "mountPath": "/etc/coredns", "readOnly": true}],
    })
}
