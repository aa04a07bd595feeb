#![allow(clippy::unwrap_used)]
use std::{collections::BTreeMap, net::IpAddr};

use api::gardencore::shoot::{KubeProxyConfig, ProxyMode};
use serde_json::{Value, json};

use super::{api_proxy, coredns, kube_proxy};

const API: &str = "api.web.dev.internal.example.test";

fn proxy(mode: Option<ProxyMode>) -> Vec<Value> {
    let config = KubeProxyConfig {
        mode,
        ..KubeProxyConfig::default()
    };
    kube_proxy::objects("kube-proxy:v1.34.4", API, "100.96.0.0/11", &config)
}

fn dns() -> Vec<Value> {
    coredns::objects("coredns:v1", API, IpAddr::from([100, 64, 0, 10]))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap()
}

fn pod<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    &of_kind(objects, kind)["spec"]["template"]["spec"]
}

#[test]
fn kube_proxy_is_told_by_a_file_what_the_shoot_wants() {
    for (wanted, mode) in [
        (None, "iptables"),
        (Some(ProxyMode::IPTables), "iptables"),
        (Some(ProxyMode::NFTables), "nftables"),
        (Some(ProxyMode::IPVS), "ipvs"),
    ] {
        let objects = proxy(wanted);
        let files = &of_kind(&objects, "ConfigMap")["data"];
        let config: Value = serde_json::from_str(files["config.yaml"].as_str().unwrap()).unwrap();
        assert_eq!(
            (&config["mode"], &config["clusterCIDR"]),
            (&json!(mode), &json!("100.96.0.0/11"))
        );
        assert_eq!(config["metricsBindAddress"], "127.0.0.1:10249");
        let way: Value = serde_json::from_str(files["kubeconfig"].as_str().unwrap()).unwrap();
        assert_eq!(way["clusters"][0]["cluster"]["server"], format!("https://{API}"));
    }
}

/// Otherwise pods would continue with the configuration from their start.
#[test]
fn another_configuration_makes_pods_anew() {
    let [one, same, other] = [None, Some(ProxyMode::IPTables), Some(ProxyMode::NFTables)].map(|mode| {
        let objects = proxy(mode);
        let name = of_kind(&objects, "ConfigMap")["metadata"]["name"].clone();
        assert_eq!(
            pod(&objects, "DaemonSet")["volumes"][0]["configMap"]["name"],
            name
        );
        name
    });
    assert_eq!(one, same);
    assert_ne!(one, other);
}

/// Lists the privileges of each container. The reason for a privilege is stated at the definition.
#[test]
fn no_container_has_a_privilege_that_it_does_not_need() {
    let may = |objects: &[Value], kind| pod(objects, kind)["containers"][0]["securityContext"].clone();
    let of_proxy = may(&proxy(None), "DaemonSet");
    assert_eq!(
        of_proxy["capabilities"],
        json!({"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]})
    );
    assert_eq!(
        (&of_proxy["privileged"], &of_proxy["allowPrivilegeEscalation"]),
        (&json!(false), &json!(false))
    );
    let of_dns = may(&dns(), "Deployment");
    assert_eq!(
        of_dns["capabilities"],
        json!({"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]})
    );
    assert_eq!(of_dns["readOnlyRootFilesystem"], true);
    let pods = [(proxy(None), "DaemonSet"), (dns(), "Deployment")];
    for (objects, kind) in pods {
        let spec = pod(&objects, kind);
        assert_eq!(
            spec["securityContext"]["seccompProfile"]["type"],
            "RuntimeDefault"
        );
        assert_eq!(spec["containers"][0]["imagePullPolicy"], "IfNotPresent");
        assert_eq!(spec["dnsPolicy"], "Default");
    }
    assert_eq!(pod(&dns(), "Deployment")["securityContext"]["runAsNonRoot"], true);
}

#[test]
fn the_dns_is_where_kubelets_tell_pods_to_ask() {
    let objects = dns();
    let service = of_kind(&objects, "Service");
    assert_eq!(
        (&service["spec"]["clusterIP"], &service["metadata"]["name"]),
        (&json!("100.64.0.10"), &json!("kube-dns"))
    );
    let labels: BTreeMap<String, String> = serde_json::from_value(
        of_kind(&objects, "Deployment")["spec"]["template"]["metadata"]["labels"].clone(),
    )
    .unwrap();
    for selector in [
        &service["spec"]["selector"],
        &of_kind(&objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ] {
        let selector: BTreeMap<String, String> = serde_json::from_value(selector.clone()).unwrap();
        assert!(
            selector.iter().all(|(key, value)| labels.get(key) == Some(value)),
            "{selector:?}"
        );
    }
    let container = &pod(&objects, "Deployment")["containers"][0];
    assert_eq!(
        container["env"][0],
        json!({"name": "KUBERNETES_SERVICE_HOST", "value": API})
    );
    let file = of_kind(&objects, "ConfigMap")["data"]["Corefile"]
        .as_str()
        .unwrap();
    assert!(
        file.contains("kubernetes cluster.local") && file.contains("forward . /etc/resolv.conf"),
        "{file}"
    );
}

/// The resource-manager refuses an object without these fields.
#[test]
fn every_object_says_what_it_is_and_where() {
    let api = api_proxy::objects("repot/tunnel:dev", API);
    for object in proxy(None).iter().chain(&dns()).chain(&api) {
        assert!(
            object["apiVersion"].is_string() && object["metadata"]["name"].is_string(),
            "{object}"
        );
        let kind = object["kind"].as_str().unwrap();
        let is_wide = kind.starts_with("ClusterRole");
        assert_eq!(object["metadata"]["namespace"].is_null(), is_wide, "{kind}");
    }
}
