//! Pods of the charts: the actions that each pod may take on the node, and the resources that each pod may
//! use.

use serde_json::{Value, json};

use crate::programs::Desk;

/// Service accounts whose pods use the API of their cluster, and thus get a token. No further pod gets a
/// token.
const WITH_TOKEN: &[&str] = &[
    "etcd-druid",
    "garden-controller-manager",
    "gardenlet",
    "provider-aws",
    "provider-local",
    "resource-manager",
];

/// Containers that use a port of the node.
const WITH_HOST_PORT: &[(&str, &str)] = &[("edge", "the front of a seed without load balancers")];

/// Variants of the installation of the charts; objects that only a variant renders are checked too.
const WAYS: &[(&str, &[&str])] = &[
    ("garden", &[]),
    ("seed", &[]),
    (
        "garden",
        &[
            "garden-controller-manager.replicas=2",
            "garden-controller-manager.leaderMigration.enabled=true",
        ],
    ),
    (
        "seed",
        &[
            "gardenlet.replicas=3",
            "gardenlet.leaderMigration.enabled=true",
            "gardenlet.tracing.endpoint=https://collector.example:4317",
            "gardenlet.tracing.caBundle=CERTIFICATES",
            "resource-manager.replicas=2",
            "provider-local.replicas=2",
            "provider-local.leaderMigration.enabled=true",
            "provider-local.garden.kubeconfigSecret=garden-kubeconfig",
            "provider-local.garden.seedName=seed-a",
            "provider-local.garden.backupEntryDeletionGracePeriodHours=0",
            "edge.replicas=2",
            "edge.hostPort=null",
        ],
    ),
    ("provider-aws", &["leaderMigration.enabled=true"]),
    ("provider-aws", &["replicas=1"]),
];

/// All objects of the charts, for each variant.
pub async fn everything() -> Vec<(&'static str, Vec<Value>)> {
    let desk = Desk::new().unwrap();
    let mut all = Vec::new();
    for (chart, settings) in WAYS {
        let args: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
        all.push((*chart, desk.rendered(chart, &args).await.unwrap()));
    }
    all
}

fn pods(objects: &[Value]) -> impl Iterator<Item = (String, &Value)> {
    objects.iter().filter_map(|object| {
        let kind = object["kind"].as_str()?;
        let template = match kind {
            "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" => &object["spec"]["template"],
            "CronJob" => &object["spec"]["jobTemplate"]["spec"]["template"],
            "Pod" => object,
            _ => return None,
        };
        Some((
            format!("{kind} {}", object["metadata"]["name"].as_str()?),
            &template["spec"],
        ))
    })
}

/// The Deployments of a variant. Without Deployments, a test of all Deployments could not fail.
fn deployments<'a>(chart: &str, objects: &'a [Value]) -> Vec<&'a Value> {
    let found: Vec<&Value> = objects
        .iter()
        .filter(|object| object["kind"] == "Deployment")
        .collect();
    assert!(!found.is_empty(), "{chart}: no Deployment is rendered");
    found
}

/// The missing hardening of a pod.
fn gaps_of_pod(pod: &Value) -> Vec<String> {
    let mut gaps = Vec::new();
    let mut want = |holds: bool, what: &str| {
        if !holds {
            gaps.push(what.to_owned());
        }
    };
    let context = &pod["securityContext"];
    want(context["runAsNonRoot"] == true, "runAsNonRoot");
    want(
        context["runAsUser"].as_u64().is_some_and(|user| user > 0),
        "runAsUser",
    );
    want(
        context["seccompProfile"]["type"] == "RuntimeDefault",
        "seccompProfile RuntimeDefault",
    );
    want(pod["enableServiceLinks"] == false, "enableServiceLinks: false");
    let account = pod["serviceAccountName"].as_str().unwrap_or_default();
    want(!account.is_empty(), "a service account of its own");
    let token = WITH_TOKEN.contains(&account);
    want(
        pod["automountServiceAccountToken"] == token,
        "automountServiceAccountToken as WITH_TOKEN says",
    );
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        want(pod.get(host).is_none_or(|value| value == false), host);
    }
    let volumes = pod["volumes"].as_array().map(Vec::as_slice).unwrap_or_default();
    want(
        volumes.iter().all(|volume| volume.get("hostPath").is_none()),
        "no hostPath",
    );
    for list in ["initContainers", "containers"] {
        for container in pod[list].as_array().into_iter().flatten() {
            gaps.extend(gaps_of_container(container, list == "containers"));
        }
    }
    gaps
}

fn gaps_of_container(container: &Value, runs: bool) -> Vec<String> {
    let name = container["name"].as_str().unwrap_or_default();
    let mut gaps = Vec::new();
    let mut want = |holds: bool, what: &str| {
        if !holds {
            gaps.push(format!("container {name}: {what}"));
        }
    };
    let context = &container["securityContext"];
    want(
        context["allowPrivilegeEscalation"] == false,
        "allowPrivilegeEscalation: false",
    );
    want(
        context.get("privileged").is_none_or(|value| value == false),
        "not privileged",
    );
    want(
        context["readOnlyRootFilesystem"] == true,
        "readOnlyRootFilesystem",
    );
    want(
        context["capabilities"]["drop"] == serde_json::json!(["ALL"]),
        "capabilities drop ALL",
    );
    want(
        context["capabilities"].get("add").is_none(),
        "no added capabilities",
    );
    for override_ in ["runAsUser", "runAsNonRoot", "seccompProfile"] {
        want(
            context.get(override_).is_none(),
            "nothing that undoes what the pod says",
        );
    }
    let resources = &container["resources"];
    for amount in [
        "/requests/cpu",
        "/requests/memory",
        "/requests/ephemeral-storage",
        "/limits/memory",
        "/limits/ephemeral-storage",
    ] {
        want(resources.pointer(amount).is_some(), amount);
    }
    if runs {
        want(container.get("readinessProbe").is_some(), "readinessProbe");
        want(container.get("livenessProbe").is_some(), "livenessProbe");
    }
    let tagged = container["image"]
        .as_str()
        .is_some_and(|image| image.rsplit('/').next().unwrap().contains(':'));
    want(tagged, "an image with a tag");
    let ports = container["ports"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let takes = ports.iter().any(|port| port.get("hostPort").is_some());
    want(
        !takes || WITH_HOST_PORT.iter().any(|(known, _)| *known == name),
        "no port of the node",
    );
    gaps
}

#[tokio::test]
async fn no_container_has_more_power_over_its_node_than_it_needs() {
    let mut seen = 0;
    for (chart, objects) in everything().await {
        for (name, pod) in pods(&objects) {
            assert_eq!(gaps_of_pod(pod), Vec::<String>::new(), "{chart}: {name}");
            seen += 1;
        }
        for account in objects.iter().filter(|object| object["kind"] == "ServiceAccount") {
            assert_eq!(
                account["automountServiceAccountToken"], false,
                "{chart}: {}",
                account["metadata"]["name"]
            );
        }
    }
    assert!(seen >= 10, "{seen}");
}

/// A drain of nodes evicts several processes one at a time, and never waits for a single process.
#[tokio::test]
async fn several_processes_are_not_drained_at_once_and_a_single_one_blocks_no_drain() {
    for (chart, objects) in everything().await {
        for object in deployments(chart, &objects) {
            let labels = &object["spec"]["selector"];
            let same_place =
                |budget: &&Value| budget["metadata"]["namespace"] == object["metadata"]["namespace"];
            let budget = objects
                .iter()
                .filter(|budget| {
                    budget["kind"] == "PodDisruptionBudget" && budget["spec"]["selector"] == *labels
                })
                .find(same_place);
            let name = &object["metadata"]["name"];
            if object["spec"]["replicas"].as_u64().unwrap() > 1 {
                let spec = &budget.unwrap_or(&Value::Null)["spec"];
                assert_eq!(spec["maxUnavailable"], 1, "{chart}: {name}");
                assert_eq!(
                    spec["unhealthyPodEvictionPolicy"], "AlwaysAllow",
                    "{chart}: {name}"
                );
            } else {
                assert!(budget.is_none(), "{chart}: {name}");
            }
        }
    }
}

/// Users of a shoot choose addresses that kube-apiserver of the shoot connects to, as for webhooks, and the
/// metrics name the shoots of all projects.
#[tokio::test]
async fn control_planes_reach_no_health_port_of_a_seed() {
    let outside = json!([{"namespaceSelector": {"matchExpressions":
        [{"key": "shoot.gardener.cloud/namespace", "operator": "DoesNotExist"}]}}]);
    for (chart, objects) in everything().await {
        if chart == "garden" {
            continue;
        }
        for object in deployments(chart, &objects) {
            let name = &object["metadata"]["name"];
            let policy = objects.iter().find(|policy| {
                policy["kind"] == "NetworkPolicy"
                    && policy["metadata"]["namespace"] == object["metadata"]["namespace"]
                    && policy["spec"]["podSelector"] == object["spec"]["selector"]
            });
            let spec = &policy.unwrap_or(&Value::Null)["spec"];
            assert_eq!(spec["policyTypes"], json!(["Ingress"]), "{chart}: {name}");
            let container = &object["spec"]["template"]["spec"]["containers"][0];
            let ports = container["ports"].as_array().unwrap();
            let health = ports.iter().find(|port| port["name"] == "health").unwrap();
            let is_health =
                |port: &Value| port["port"] == "health" || port["port"] == health["containerPort"];
            let mut opened = 0;
            for rule in spec["ingress"].as_array().unwrap() {
                if rule["ports"].as_array().unwrap().iter().any(is_health) {
                    assert_eq!(rule["from"], outside, "{chart}: {name}");
                    opened += 1;
                }
            }
            assert_eq!(opened, 1, "{chart}: {name}");
        }
    }
}

/// The Pods of a process prefer different nodes, so that the loss of a node costs one Pod.
#[tokio::test]
async fn pods_of_a_process_prefer_different_nodes() {
    for (chart, objects) in everything().await {
        for object in deployments(chart, &objects) {
            let affinity = &object["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"];
            let term = &affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"];
            let name = &object["metadata"]["name"];
            assert_eq!(term["topologyKey"], "kubernetes.io/hostname", "{chart}: {name}");
            assert_eq!(
                term["labelSelector"], object["spec"]["selector"],
                "{chart}: {name}"
            );
        }
    }
}

/// The test of hardened containers must be able to fail.
#[tokio::test]
async fn a_container_that_is_not_hardened_is_found() {
    let all = everything().await;
    let (_, garden) = all.first().unwrap();
    let (_, pod) = pods(garden).next().unwrap();
    for (pointer, gap) in [
        ("/securityContext/runAsNonRoot", "runAsNonRoot"),
        (
            "/containers/0/securityContext/readOnlyRootFilesystem",
            "readOnlyRootFilesystem",
        ),
        ("/containers/0/resources/limits", "/limits/memory"),
        ("/automountServiceAccountToken", "automountServiceAccountToken"),
    ] {
        let mut changed = pod.clone();
        *changed.pointer_mut(pointer).unwrap() = Value::Null;
        assert!(
            gaps_of_pod(&changed).iter().any(|found| found.contains(gap)),
            "{pointer}"
        );
    }
}
