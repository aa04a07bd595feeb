//! The path from pods to the shoot's API at the address of the Service `kubernetes`. Clients in pods find
//! this address in their environment.
//!
//! kube-apiserver runs outside the shoot, so kube-apiserver publishes no endpoint for that Service. The
//! endpoint is a fixed address that every machine assigns to itself, and a proxy on the machine listens there
//! (docs/understand/decisions/0021). So there is a single endpoint that never changes when nodes or seeds
//! change.

use runtime::{
    Result,
    workload::{NON_ROOT, pod_security},
};
use serde_json::{Value, json};

use super::{NAMESPACE, hardened, labels};
use crate::{
    Facts,
    task::{ExternalSystems, NONE},
    verbs::{Deploy, Tasks},
};

/// Name of the objects in the shoot.
const NAME: &str = "api-proxy";
/// Name of the ManagedResource.
const MANAGED_RESOURCE: &str = "shoot-core-api-proxy";
/// The Service that kube-apiserver creates, and the name of the Service's port.
const SERVICE: &str = "kubernetes";
const SERVICE_PORT: &str = "https";
/// Address of the endpoint, from the reserved range 240.0.0.0/4. No network of a shoot may contain the
/// address (`spec.networking`). The address is a constant, because a move between seeds with different
/// settings would change objects in the shoot (I4).
const ADDRESS: &str = "240.0.0.1";
/// Port of the proxy on the address. Above 1024, so no privilege is needed, and below the ranges of node
/// ports and outgoing connections.
const PORT: u16 = 10292;
/// Port of the health endpoint.
const HEALTH: u16 = 10291;
/// Port of the SNI proxy for these proxies, the same in all seeds.
const FRONT_PORT: u16 = 8443;

/// The proxies on the nodes.
#[derive(Debug)]
pub struct ApiProxy;

impl Deploy for ApiProxy {
    const TASKS: Tasks = [
        "Deploying proxy to the Kubernetes API server in Shoot",
        "Waiting until proxy to the Kubernetes API server in Shoot is applied",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn deploy(f: &Facts) -> Result<()> {
        super::deploy(&f.residency, MANAGED_RESOURCE, wanted(f)?.as_deref()).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        super::ready(&f.residency, MANAGED_RESOURCE, wanted(f)?.as_deref()).await
    }
}

/// An IPv6 Service cannot have an IPv4 endpoint.
fn wanted(f: &Facts) -> Result<Option<Vec<Value>>> {
    if !f.has_workers() || f.names.first_service_ip.is_ipv6() {
        return Ok(None);
    }
    let image = f.residency.settings.image_of(
        &f.residency.settings.tunnel_image,
        &f.residency.settings.tunnel_tag,
    );
    Ok(Some(objects(&image, f.api_for_nodes()?)))
}

/// All objects. The objects hold no data of the seed: a move changes no object, and so restarts no pod (I4).
pub(super) fn objects(image: &str, api: &str) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": NAMESPACE},
            "automountServiceAccountToken": false,
        }),
        // In the namespace of the Service. The pods run in a different namespace, so a selector cannot work.
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": SERVICE, "namespace": "default", "labels": {
                "kubernetes.io/service-name": SERVICE,
                // Keeps the controllers of Kubernetes from managing this object.
                "endpointslice.kubernetes.io/managed-by": NAME,
            }},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": true}}],
            "ports": [{"name": SERVICE_PORT, "port": PORT, "protocol": "TCP"}],
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels(NAME)},
            "spec": {
                "selector": {"matchLabels": labels(NAME)},
                // While a proxy pod is replaced, pods on that machine do not reach the API.
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
                "template": {"metadata": {"labels": labels(NAME)}, "spec": pod(image, api)},
            },
        }),
    ]
}

fn pod(image: &str, api: &str) -> Value {
    json!({
        // The address belongs to the machine's network namespace.
        "hostNetwork": true,
        // The API's name is resolved outside the shoot: CoreDNS may depend on this proxy.
        "dnsPolicy": "Default",
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "serviceAccountName": NAME,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": 15,
        "securityContext": pod_security(NON_ROOT),
        "containers": [proxy(image, api), address(image)],
    })
}

/// The traffic of pods passes this container, so the container has no rights.
fn proxy(image: &str, api: &str) -> Value {
    let look = |path: &str| json!({"host": "127.0.0.1", "path": path, "port": HEALTH});
    let args = [
        "api-proxy".to_owned(),
        format!("--address={ADDRESS}:{PORT}"),
        format!("--front={api}"),
        format!("--front-port={FRONT_PORT}"),
        format!("--health-address=127.0.0.1:{HEALTH}"),
    ];
    let mut container = container("proxy", image, &args, &hardened());
    container["resources"] =
        json!({"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "192Mi"}});
    container["readinessProbe"] = json!({"httpGet": look("/readyz"), "periodSeconds": 5});
    container["livenessProbe"] =
        json!({"httpGet": look("/healthz"), "periodSeconds": 10, "failureThreshold": 6});
    container
}

/// Assigns the address to the machine. The container listens only to the kernel.
fn address(image: &str) -> Value {
    let mut may = hardened();
    // Only root may assign addresses; all further rights of root are dropped.
    may["runAsNonRoot"] = json!(false);
    may["runAsUser"] = json!(0);
    may["capabilities"]["add"] = json!(["NET_ADMIN"]);
    let args = ["api-proxy-address".to_owned(), format!("--address={ADDRESS}")];
    let mut container = container("address", image, &args, &may);
    container["resources"] =
        json!({"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}});
    container
}

fn container(name: &str, image: &str, args: &[String], may: &Value) -> Value {
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/tunnel"],
        "args": args,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": may,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const API: &str = "api.web.dev.internal.example.test";

    fn of_kind(kind: &str) -> Value {
        let all = objects("repot/tunnel:dev", API);
        all.into_iter().find(|object| object["kind"] == kind).unwrap()
    }

    fn containers() -> Vec<Value> {
        let containers = of_kind("DaemonSet")["spec"]["template"]["spec"]["containers"].clone();
        serde_json::from_value(containers).unwrap()
    }

    fn args(container: &Value) -> Vec<String> {
        serde_json::from_value(container["args"].clone()).unwrap()
    }

    #[test]
    fn the_service_leads_to_where_the_proxy_listens() {
        let slice = of_kind("EndpointSlice");
        assert_eq!(
            (
                &slice["metadata"]["namespace"],
                &slice["metadata"]["labels"]["kubernetes.io/service-name"]
            ),
            (&json!("default"), &json!("kubernetes"))
        );
        // kube-proxy finds the endpoints of a port by the port's name.
        assert_eq!(slice["ports"][0]["name"], "https");
        let address = slice["endpoints"][0]["addresses"][0].as_str().unwrap();
        let [proxy, holder] = containers().try_into().unwrap();
        assert!(args(&proxy).contains(&format!("--address={address}:{}", slice["ports"][0]["port"])));
        assert!(args(&holder).contains(&format!("--address={address}")));
        // The API server refuses endpoints with link-local or loopback addresses.
        let parsed: std::net::Ipv4Addr = address.parse().unwrap();
        assert!(!parsed.is_loopback() && !parsed.is_link_local() && !parsed.is_multicast());
    }

    #[test]
    fn what_reads_what_pods_send_has_no_right_and_what_has_one_reads_nothing() {
        let pod = of_kind("DaemonSet")["spec"]["template"]["spec"].clone();
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["volumes"], Value::Null, "no key of anybody");
        let [proxy, holder] = containers().try_into().unwrap();
        assert_eq!(proxy["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
        assert_eq!(proxy["securityContext"]["runAsUser"], Value::Null);
        assert_eq!(
            holder["securityContext"]["capabilities"],
            json!({"drop": ["ALL"], "add": ["NET_ADMIN"]})
        );
        for container in [&proxy, &holder] {
            let may = &container["securityContext"];
            assert_eq!(
                (
                    &may["privileged"],
                    &may["allowPrivilegeEscalation"],
                    &may["readOnlyRootFilesystem"]
                ),
                (&json!(false), &json!(false), &json!(true))
            );
        }
        assert_eq!(proxy["readinessProbe"]["httpGet"]["host"], "127.0.0.1");
    }

    /// The chart of seeds contains the same ports.
    #[test]
    fn the_fronts_of_seeds_have_the_port_that_proxies_know() {
        let chart = include_str!("../../../../../charts/seed/templates/edge.yaml");
        assert!(chart.contains(&format!("name: api-proxies\n      port: {FRONT_PORT}\n")));
        assert!(chart.contains(&format!("hostPort: {FRONT_PORT}\n")));
        assert!(chart.contains("name: api-proxies\n              containerPort: 8444\n"));
        let front = include_str!("../../../../../charts/seed/files/haproxy.cfg");
        assert!(front.contains("bind :8444 accept-proxy\n"));
        let [proxy, _] = containers().try_into().unwrap();
        assert!(args(&proxy).contains(&format!("--front-port={FRONT_PORT}")));
    }

    /// Otherwise pods or Services of the shoot could get the address.
    #[test]
    fn no_network_of_a_shoot_may_contain_the_address() {
        let networks = include_str!("../../../api/src/gardencore/shoot/networking.rs");
        let rule = format!("!isCIDR(self) || !cidr(self).containsIP('{ADDRESS}')");
        assert_eq!(networks.matches(&rule).count(), 3, "of pods, nodes and services");
    }
}
