//! The agent in the shoot: the ServiceAccount, the right to read Nodes, and a pod on each machine.

use std::str::FromStr;

use ipnet::Ipv4Net;
use runtime::workload::container_security;
use serde_json::{Value, json};

/// Name of all objects.
const NAME: &str = "network-local";
/// Namespace of the objects.
const NAMESPACE: &str = "kube-system";
/// Name of the ClusterRole and of the binding.
const ROLE: &str = "gardener.cloud:extension-network-local";
/// Port of the health endpoints. The agent listens on the machine's loopback address.
const HEALTH_PORT: u16 = 10290;
/// Folder in which containerd looks for the configuration of the network.
const CONFIGURATION: &str = "/etc/cni/net.d";

/// The address of the shoot's API.
#[derive(Debug, PartialEq, Eq)]
pub struct Api {
    host: String,
    port: u16,
}

/// Parses a URL.
impl FromStr for Api {
    type Err = ();

    fn from_str(url: &str) -> Result<Self, ()> {
        let place = url.strip_prefix("https://").ok_or(())?;
        let place = place.split('/').next().unwrap_or_default();
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| ())?),
            None => (place, 443),
        };
        if host.is_empty() {
            return Err(());
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

/// All objects.
pub fn objects(image: &str, pods: Ipv4Net, api: &Api) -> Vec<Value> {
    let account = json!({"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE});
    vec![
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "automountServiceAccountToken": false,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": ROLE},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": ROLE},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
            "subjects": [account],
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels()},
            "spec": {
                "selector": {"matchLabels": labels()},
                // Pods do not notice that an agent is away for a moment.
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
                "template": {"metadata": {"labels": labels()}, "spec": pod(image, pods, api)},
            },
        }),
    ]
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "gardener.cloud/role": "system-component"})
}

fn pod(image: &str, pods: Ipv4Net, api: &Api) -> Value {
    json!({
        // The agent sets up the machine's own network.
        "hostNetwork": true,
        // The API has an outside DNS name, and the shoot may have no DNS yet.
        "dnsPolicy": "Default",
        "priorityClassName": "system-node-critical",
        // Without the agent no machine becomes ready, so every taint is tolerated.
        "tolerations": [{"operator": "Exists"}],
        "serviceAccountName": NAME,
        "automountServiceAccountToken": true,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 15,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container(image, pods, api)],
        "volumes": [{"name": "configuration", "hostPath": {"path": CONFIGURATION, "type": "DirectoryOrCreate"}}],
    })
}

fn container(image: &str, pods: Ipv4Net, api: &Api) -> Value {
    let mut may = json!(container_security());
    // The machine's folder for the configuration of networks is root's.
    may["runAsNonRoot"] = json!(false);
    may["runAsUser"] = json!(0);
    // For links, routes and masquerading of the machine; no further capability of root.
    may["capabilities"]["add"] = json!(["NET_ADMIN"]);
    let look = |path: &str| json!({"host": "127.0.0.1", "path": path, "port": HEALTH_PORT});
    json!({
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/network-local"],
        "args": [
            format!("--pods={pods}"),
            format!("--configuration-folder={CONFIGURATION}"),
            format!("--health-address=127.0.0.1:{HEALTH_PORT}"),
        ],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            // The address of the Service `kubernetes` needs kube-proxy and api-proxy, and both use this
            // address.
            {"name": "KUBERNETES_SERVICE_HOST", "value": api.host},
            {"name": "KUBERNETES_SERVICE_PORT", "value": api.port.to_string()},
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": may,
        "readinessProbe": {"httpGet": look("/readyz"), "periodSeconds": 5},
        "livenessProbe": {"httpGet": look("/healthz"), "periodSeconds": 10, "failureThreshold": 6},
        "volumeMounts": [{"name": "configuration", "mountPath": CONFIGURATION}],
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_api_is_named_by_a_url() {
        let api: Api = "https://api.web.example.test".parse().unwrap();
        assert_eq!((api.host.as_str(), api.port), ("api.web.example.test", 443));
        let api: Api = "https://api.web.example.test:8443/".parse().unwrap();
        assert_eq!((api.host.as_str(), api.port), ("api.web.example.test", 8443));
        for wrong in ["", "https://", "http://api", "https://api:x", "https://:443"] {
            assert!(wrong.parse::<Api>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_agent_gets_on_every_machine_and_may_do_one_thing_there() {
        let api = "https://api.web.example.test".parse().unwrap();
        let all = objects("network-local:test", "100.96.0.0/11".parse().unwrap(), &api);
        let pod = &all[3]["spec"]["template"]["spec"];
        assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
        let container = &pod["containers"][0];
        assert_eq!(container["args"][0], "--pods=100.96.0.0/11");
        let environment = container["env"].as_array().unwrap();
        assert!(
            environment
                .contains(&json!({"name": "KUBERNETES_SERVICE_HOST", "value": "api.web.example.test"}))
        );
        let may = &container["securityContext"];
        assert_eq!(
            may["capabilities"],
            json!({"drop": ["ALL"], "add": ["NET_ADMIN"]})
        );
        assert_eq!(
            (&may["privileged"], &may["readOnlyRootFilesystem"]),
            (&json!(false), &json!(true))
        );
        assert_eq!(all[1]["rules"].as_array().unwrap().len(), 1);
    }
}
