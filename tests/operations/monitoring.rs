//! Objects of the Prometheus Operator, which the charts render on request.

use std::fs;

use serde_json::{Value, json};

use crate::programs::{Desk, charts, documents, root};

const ENABLED: &str = "global.monitoring.enabled=true,global.monitoring.labels.release=prometheus";
const PAGES: &str = "monitoring.runbookURL=https://git.example/docs/";

/// The charts with alerts, and the name of the PrometheusRule.
const WITH_ALERTS: [(&str, &str); 2] = [("garden", "repot-garden"), ("seed", "repot-seed")];

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// All objects of a chart with monitoring.
async fn monitored(desk: &Desk, chart: &str) -> Vec<Value> {
    let mut args = vec!["--set", ENABLED];
    if WITH_ALERTS.iter().any(|(name, _)| *name == chart) {
        args.extend(["--set", PAGES]);
    }
    desk.rendered(chart, &args).await.unwrap()
}

/// Whether a monitor selects Pods of this template, and the Pods have the port of the monitor.
fn selects(monitor: &Value, pod: &Value) -> bool {
    let spec = &monitor["spec"];
    let wanted = spec["selector"]["matchLabels"].as_object().unwrap();
    let labels = &pod["metadata"]["labels"];
    let port = &spec["podMetricsEndpoints"][0]["port"];
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut ports = containers.flat_map(|container| container["ports"].as_array().into_iter().flatten());
    wanted.iter().all(|(name, value)| labels[name] == *value) && ports.any(|found| found["name"] == *port)
}

#[tokio::test]
async fn each_monitor_selects_pods_with_metrics() {
    let desk = Desk::new().unwrap();
    for chart in charts() {
        let objects = monitored(&desk, &chart).await;
        let monitors = of_kind(&objects, "PodMonitor");
        assert!(!monitors.is_empty(), "{chart} has no PodMonitor");
        for monitor in monitors {
            let name = monitor["metadata"]["name"].as_str().unwrap();
            assert_eq!(monitor["metadata"]["labels"]["release"], "prometheus", "{name}");
            // The Pods of these monitors are not in the charts.
            if ["etcd-backup-restore", "control-planes"].contains(&name) {
                continue;
            }
            let deployments = of_kind(&objects, "Deployment");
            let mut of_namespace = deployments
                .iter()
                .filter(|object| object["metadata"]["namespace"] == monitor["metadata"]["namespace"]);
            assert!(
                of_namespace.any(|object| selects(monitor, &object["spec"]["template"])),
                "{chart}: {name} selects no Pod: {monitor}"
            );
        }
    }
}

#[tokio::test]
async fn the_process_beside_an_etcd_is_selected() {
    let objects = monitored(&Desk::new().unwrap(), "etcd-druid").await;
    let monitors = of_kind(&objects, "PodMonitor");
    let mut monitors = monitors.into_iter();
    let monitor = monitors.find(|monitor| monitor["metadata"]["name"] == "etcd-backup-restore");
    let path = root().join("crates/components/etcd-druid/src/objects/snapshots/etcd-main.stateful-set.yaml");
    let etcd = documents(&fs::read_to_string(path).unwrap()).unwrap();
    assert!(selects(monitor.unwrap(), &etcd[0]["spec"]["template"]));
}

/// The gardenlet and the providers create these Deployments. The name of a Deployment is the label `role` of
/// the Pods, and the container port has the name of the scheme.
#[tokio::test]
async fn processes_of_the_suite_in_control_planes_are_selected() {
    let objects = monitored(&Desk::new().unwrap(), "gardenlet").await;
    let monitors = of_kind(&objects, "PodMonitor");
    let mut monitors = monitors.into_iter();
    let monitor = monitors.find(|monitor| monitor["metadata"]["name"] == "control-planes");
    let spec = &monitor.unwrap()["spec"];
    assert_eq!(spec["podMetricsEndpoints"][0]["port"], "http");
    assert_eq!(spec["namespaceSelector"]["any"], true);
    let source = |file: &str| fs::read_to_string(root().join("crates").join(file)).unwrap();
    let builder = source("core/runtime/src/workload/deployment.rs");
    for text in [
        "[(\"app\", \"kubernetes\"), (\"role\", name)]",
        "pod_labels.insert(\"gardener.cloud/role\".into(), \"controlplane\".into())",
        "\"ports\": [{\"name\": scheme.to_lowercase()",
    ] {
        assert!(builder.contains(text), "{text}");
    }
    let labels = json!({"app": "kubernetes", "gardener.cloud/role": "controlplane"});
    assert_eq!(spec["selector"]["matchLabels"], labels);
    let roles = &spec["selector"]["matchExpressions"][0]["values"];
    let local = "local-cloud/provider-local/src/control_plane/cloud_controller_manager.rs";
    let aws = "providers/aws/provider-aws/src/control_plane/cloud_controller_manager.rs";
    let tunnel = "core/parts/src/tunnel/server.rs";
    let manager = "core/extension/src/worker/manager.rs";
    let machines = "core/extension/src/worker/machines.rs";
    for (role, named_in, health_in) in [
        ("tunnel-server", tunnel, tunnel),
        ("cloud-controller-manager", local, local),
        ("cloud-controller-manager", aws, aws),
        ("machine-controller-manager", manager, machines),
    ] {
        let name = format!("NAME: &str = \"{role}\"");
        assert!(source(named_in).contains(&name), "{named_in}");
        assert!(source(health_in).contains("scheme: \"HTTP\""), "{health_in}");
        assert!(roles.as_array().unwrap().contains(&json!(role)), "{role}");
    }
}

#[tokio::test]
async fn a_chart_without_monitoring_needs_no_prometheus_operator() {
    let desk = Desk::new().unwrap();
    for chart in charts() {
        let objects = desk.rendered(&chart, &[]).await.unwrap();
        for kind in ["PodMonitor", "PrometheusRule"] {
            assert!(of_kind(&objects, kind).is_empty(), "{chart} has a {kind}");
        }
    }
}

#[tokio::test]
async fn each_alert_links_to_the_pages_of_the_installation() {
    let desk = Desk::new().unwrap();
    for (chart, name) in WITH_ALERTS {
        let refused = desk.template(chart, &["--set", ENABLED]).await.unwrap();
        let sentence = "monitoring.runbookURL is empty: set monitoring.runbookURL to";
        assert!(
            !refused.success && refused.err.contains(sentence),
            "{}",
            refused.err
        );
        let objects = monitored(&desk, chart).await;
        let rules = of_kind(&objects, "PrometheusRule");
        assert_eq!(rules.len(), 1, "{chart}");
        assert_eq!(rules[0]["metadata"]["name"], name);
        assert_eq!(rules[0]["metadata"]["labels"]["release"], "prometheus");
        let file = root().join("charts").join(chart).join("files/rules.yaml");
        let text = fs::read_to_string(file).unwrap();
        let text = text.replace("RUNBOOK_URL", "https://git.example/docs");
        let expected: Value = serde_yaml_ng::from_str(&text).unwrap();
        assert_eq!(rules[0]["spec"], expected, "{chart}");
    }
}

#[tokio::test]
async fn the_dashboard_is_that_of_the_file() {
    let desk = Desk::new().unwrap();
    let dashboard = "monitoring.dashboards=true";
    let args = ["--set", ENABLED, "--set", PAGES, "--set", dashboard];
    let objects = desk.rendered("garden", &args).await.unwrap();
    let maps = of_kind(&objects, "ConfigMap");
    let mut maps = maps.into_iter();
    let map = maps.find(|map| map["metadata"]["name"] == "repot-dashboard");
    let text = map.unwrap()["data"]["repot.json"].as_str().unwrap();
    let file = fs::read_to_string(root().join("charts/garden/files/dashboard.json")).unwrap();
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(parsed(text), parsed(&file));
}

#[tokio::test]
async fn traces_of_moves_are_off_by_default_and_need_an_authority_with_https() {
    let desk = Desk::new().unwrap();
    let [http, https] = ["http", "https"].map(|scheme| format!("{scheme}://collector.example:4317"));
    let set_https = format!("tracing.endpoint={https}");
    let refused = desk.template("gardenlet", &["--set", &set_https]).await.unwrap();
    assert!(
        !refused.success && refused.err.contains("tracing.caBundle is empty"),
        "{}",
        refused.err
    );
    let [flag_http, flag_https] = [&http, &https].map(|url| format!("--otlp-endpoint={url}"));
    for (settings, flags) in [
        ("tracing.endpoint=".to_owned(), vec![]),
        (format!("tracing.endpoint={http}"), vec![flag_http.as_str()]),
        (
            format!("{set_https},tracing.caBundle=CERTIFICATES"),
            vec![flag_https.as_str(), "--otlp-ca-file=/tracing/ca.crt"],
        ),
    ] {
        let objects = desk.rendered("gardenlet", &["--set", &settings]).await.unwrap();
        let deployment = of_kind(&objects, "Deployment")[0];
        let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
        let args = args.as_array().into_iter().flatten().filter_map(Value::as_str);
        let found: Vec<_> = args.filter(|arg| arg.starts_with("--otlp-")).collect();
        assert_eq!(found, flags);
        let maps = of_kind(&objects, "ConfigMap").into_iter();
        let mut maps = maps.filter(|map| map["metadata"]["name"] == "gardenlet-tracing");
        let certificates = maps.next().and_then(|map| map["data"]["ca.crt"].as_str());
        let expected = (flags.len() == 2).then_some("CERTIFICATES");
        assert_eq!(certificates.map(str::trim), expected);
    }
}
