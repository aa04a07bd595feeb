//! kube-proxy: routes Services to pods, on each node.

use api::gardencore::shoot::{KubeProxyConfig, ProxyMode};
use runtime::{Result, workload::rollout::checksum};
use serde_json::{Value, json};

use super::{NAMESPACE, hardened, labels};
use crate::{
    Facts,
    component::program,
    task::{ExternalSystems, NONE},
    verbs::{Deploy, Tasks},
};

/// Name of the objects in the shoot.
const NAME: &str = "kube-proxy";
/// Name of the ManagedResource.
const MANAGED_RESOURCE: &str = "shoot-core-kube-proxy";
/// Mount path of the configuration files.
const FILES: &str = "/var/lib/kube-proxy";
/// Mount path of the service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The proxy on nodes.
#[derive(Debug)]
pub struct KubeProxy;

impl Deploy for KubeProxy {
    const TASKS: Tasks = [
        "Deploying kube-proxy system component",
        "Waiting until kube-proxy system component is applied",
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
    let config = f.shoot.spec.kubernetes.kube_proxy.clone().unwrap_or_default();
    if !f.has_workers() || config.enabled == Some(false) {
        return Ok(None);
    }
    let image = f
        .residency
        .settings
        .image(&f.residency.settings.kube_proxy_image, &f.kubernetes_version);
    Ok(Some(objects(&image, f.api_for_nodes()?, &f.names.pods, &config)))
}

/// All objects.
pub(super) fn objects(image: &str, api: &str, pods: &str, config: &KubeProxyConfig) -> Vec<Value> {
    let files = json!({
        "config.yaml": format!("{:#}\n", configuration(pods, config)),
        "kubeconfig": format!("{:#}\n", kubeconfig(api)),
    });
    let sum = checksum(
        files
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, text)| (key, text.to_string())),
    );
    // A changed content gets a new name, so a pod keeps the files of the pod's template.
    let config_map = format!("{NAME}-{}", &sum[..8]);
    vec![
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE},
            "automountServiceAccountToken": false,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "gardener.cloud:target:node-proxier"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-proxier"},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": config_map, "namespace": NAMESPACE},
            "immutable": true, "data": files,
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels(NAME)},
            "spec": {
                "selector": {"matchLabels": labels(NAME)},
                // The kernel keeps the rules while a pod of kube-proxy is replaced.
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}},
                "template": {"metadata": {"labels": labels(NAME)}, "spec": pod(image, &config_map, config)},
            },
        }),
    ]
}

fn mode(config: &KubeProxyConfig) -> &'static str {
    match config.mode {
        None | Some(ProxyMode::IPTables) => "iptables",
        Some(ProxyMode::IPVS) => "ipvs",
        Some(ProxyMode::NFTables) => "nftables",
    }
}

fn configuration(pods: &str, config: &KubeProxyConfig) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": mode(config),
        "featureGates": config.feature_gates,
        "clientConnection": {"kubeconfig": format!("{FILES}/kubeconfig")},
        "clusterCIDR": pods,
        "detectLocalMode": "ClusterCIDR",
        // Only the machine itself reads the metrics. The health endpoint (10256) is open for load balancers.
        "metricsBindAddress": "127.0.0.1:10249",
        // kube-proxy would write these below /proc/sys, where a container without privileges cannot write:
        // the machine sets these values.
        "conntrack": {
            "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
        },
        // Node ports on 127.0.0.1 would also need writes below /proc/sys.
        "iptables": {"localhostNodePorts": false},
    })
}

fn kubeconfig(api: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "shoot",
        "contexts": [{"name": "shoot", "context": {"cluster": "shoot", "user": "shoot"}}],
        "clusters": [{"name": "shoot", "cluster": {
            "server": format!("https://{api}"), "certificate-authority": format!("{ACCOUNT}/ca.crt"),
        }}],
        "users": [{"name": "shoot", "user": {"tokenFile": format!("{ACCOUNT}/token")}}],
    })
}

fn pod(image: &str, config_map: &str, config: &KubeProxyConfig) -> Value {
    json!({
        // kube-proxy configures the machine's own kernel.
        "hostNetwork": true,
        // The API's name is resolved outside the shoot; names in the shoot depend on kube-proxy.
        "dnsPolicy": "Default",
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "serviceAccountName": NAME,
        "automountServiceAccountToken": true,
        "enableServiceLinks": false,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container(image, config)],
        "volumes": [
            {"name": "files", "configMap": {"name": config_map, "defaultMode": 0o444}},
            {"name": "lock", "hostPath": {"path": "/run/xtables.lock", "type": "FileOrCreate"}},
            {"name": "modules", "hostPath": {"path": "/lib/modules"}},
        ],
    })
}

fn container(image: &str, config: &KubeProxyConfig) -> Value {
    let mut may = hardened();
    // Only root may write rules of the machine's kernel, and the lock file.
    may["runAsUser"] = json!(0);
    may["runAsNonRoot"] = json!(false);
    may["capabilities"]["add"] = json!(["NET_ADMIN", "NET_RAW"]);
    // On the first call, iptables in the image stores the variant that the machine uses in a link of the
    // image's file system.
    may["readOnlyRootFilesystem"] = json!(false);
    if config.mode == Some(ProxyMode::IPVS) {
        // IPVS is configured below /proc/sys, where only a privileged container may write.
        may["privileged"] = json!(true);
        may["allowPrivilegeEscalation"] = json!(true);
    }
    json!({
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [program(NAME)],
        "args": [format!("--config={FILES}/config.yaml"), "--hostname-override=$(NODE_NAME)"],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": may,
        "volumeMounts": [
            {"name": "files", "mountPath": FILES, "readOnly": true},
            {"name": "lock", "mountPath": "/run/xtables.lock"},
            {"name": "modules", "mountPath": "/lib/modules", "readOnly": true},
        ],
    })
}
