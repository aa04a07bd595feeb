//! kube-proxy: makes Services lead to pods, on each node.

use api::gardencore::shoot::{KubeProxyConfig, ProxyMode};
use runtime::{Result, rollout::checksum};
use serde_json::{Value, json};

use super::{NAMESPACE, hardened, labels};
use crate::{
    Facts,
    component::program,
    verbs::{Deploy, Tasks},
};

/// Name of its objects.
const NAME: &str = "kube-proxy";
/// Of its ManagedResource.
const MANAGED_RESOURCE: &str = "shoot-core-kube-proxy";
/// Where its files are mounted.
const FILES: &str = "/var/lib/kube-proxy";
/// Where its account is mounted.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The proxy on nodes.
#[derive(Debug)]
pub struct KubeProxy;

impl Deploy for KubeProxy {
    const TASKS: Tasks = [
        "Deploying kube-proxy system component",
        "Waiting until kube-proxy system component is applied",
    ];

    async fn deploy(f: &Facts) -> Result<()> {
        super::deploy(f, MANAGED_RESOURCE, wanted(f)?.as_deref()).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        super::ready(f, MANAGED_RESOURCE, wanted(f)?.as_deref()).await
    }
}

fn wanted(f: &Facts) -> Result<Option<Vec<Value>>> {
    let config = f.shoot.spec.kubernetes.kube_proxy.clone().unwrap_or_default();
    if !f.has_workers() || config.enabled == Some(false) {
        return Ok(None);
    }
    let image = f
        .settings
        .image(&f.settings.kube_proxy_image, &f.kubernetes_version);
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
    // Another content has another name, so that a pod has the files that it was made for.
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
                // What it has told the kernel stays while it is away.
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
        // Nobody but the machine itself reads them. The health endpoint (10256) is open: load balancers ask
        // it.
        "metricsBindAddress": "127.0.0.1:10249",
        // These would be written below /proc/sys, which a container without privileges cannot: the machine
        // sets them.
        "conntrack": {
            "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
        },
        // So would be what node ports on 127.0.0.1 need.
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
        // It tells the machine's own kernel.
        "hostNetwork": true,
        // The API is asked by a name of the outside; names of the shoot need this very proxy.
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
    // Rules of the machine's kernel are root's, and the lock beside them.
    may["runAsUser"] = json!(0);
    may["runAsNonRoot"] = json!(false);
    may["capabilities"]["add"] = json!(["NET_ADMIN", "NET_RAW"]);
    // On its first call the image's iptables notes in a link of its own file system which kind the machine
    // uses.
    may["readOnlyRootFilesystem"] = json!(false);
    if config.mode == Some(ProxyMode::IPVS) {
        // The kernel's virtual server is set up below /proc/sys, which only a privileged container may write.
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
