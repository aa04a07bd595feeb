//! Defaults of all charts for availability: the Pods of each manager, the rendering without subcharts, and
//! the versions of the cluster.

use std::path::Path;

use serde_json::Value;

use crate::programs::{Desk, REGISTRIES, charts, root};

/// Deployments without a leader: all Pods serve.
const WITHOUT_LEADER: &[&str] = &["edge"];

fn deployments(objects: &[Value]) -> impl Iterator<Item = (&str, &Value)> {
    let found = objects.iter().filter(|object| object["kind"] == "Deployment");
    found.map(|object| {
        let name = object["metadata"]["name"].as_str().unwrap();
        (name, &object["spec"])
    })
}

/// With a single Pod, the loss of a Node stops a manager until Kubernetes evicts the Pod, minutes later.
/// Without a lock, two Pods would reconcile the same objects.
#[tokio::test]
async fn each_manager_has_two_pods_and_a_lock_by_default() {
    let desk = Desk::new().unwrap();
    let mut managers = Vec::new();
    for chart in charts() {
        let rendered = desk.rendered(&chart, &[]).await.unwrap();
        for (name, spec) in deployments(&rendered) {
            if WITHOUT_LEADER.contains(&name) {
                continue;
            }
            assert_eq!(spec["replicas"], 2, "{chart}: {name}");
            let args = spec["template"]["spec"]["containers"][0]["args"].to_string();
            assert!(
                args.contains("--leader-elect-resource-namespace="),
                "{chart}: {name}"
            );
            assert!(may_renew_its_lock(&rendered, name), "{chart}: {name}");
            managers.push(name.to_owned());
        }
    }
    managers.sort_unstable();
    managers.dedup();
    assert_eq!(managers.len(), 6, "{managers:?}");
}

/// Whether a Role allows updates of Leases, and a binding gives the Role to the ServiceAccount of the
/// manager.
fn may_renew_its_lock(objects: &[Value], manager: &str) -> bool {
    let roles = objects
        .iter()
        .filter(|object| object["kind"] == "Role")
        .filter(|role| {
            let mut rules = role["rules"].as_array().into_iter().flatten();
            rules.any(|rule| {
                rule["resources"].to_string().contains("\"leases\"")
                    && rule["verbs"].to_string().contains("\"update\"")
            })
        });
    let names: Vec<&Value> = roles.map(|role| &role["metadata"]["name"]).collect();
    objects.iter().any(|binding| {
        binding["kind"] == "RoleBinding"
            && names.contains(&&binding["roleRef"]["name"])
            && binding["subjects"][0]["name"] == manager
    })
}

/// The names of the subcharts of a chart.
fn subcharts(chart: &str) -> Vec<String> {
    let folder = root().join("charts").join(chart).join("charts");
    let folders = std::fs::read_dir(folder).into_iter().flatten();
    folders
        .map(|folder| folder.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// A chart that uses a template of a subchart alone fails without the subchart.
#[tokio::test]
async fn every_chart_is_rendered_without_any_of_its_subcharts() {
    let desk = Desk::new().unwrap();
    let mut parents = 0;
    for chart in charts() {
        let names = subcharts(&chart);
        parents += usize::from(!names.is_empty());
        let off: Vec<String> = names.iter().map(|name| format!("{name}.enabled=false")).collect();
        for set in off.iter().chain([&off.join(",")]) {
            let rendered = desk.rendered(&chart, &["--set", set]).await;
            assert!(
                rendered.is_ok_and(|objects| !objects.is_empty()),
                "{chart} without {set}"
            );
        }
        let shared = root().join("charts").join(&chart).join("templates/_common.tpl");
        assert_eq!(
            std::fs::read_link(&shared).unwrap(),
            Path::new("../../common/_common.tpl")
        );
    }
    assert_eq!(parents, 2);
}

/// ValidatingAdmissionPolicy exists since 1.30.
#[tokio::test]
async fn a_cluster_that_is_too_old_is_refused() {
    let desk = Desk::new().unwrap();
    for chart in charts() {
        let path = format!("charts/{chart}");
        let template = ["template", "release", path.as_str(), "--kube-version"];
        for (version, accepted) in [("1.29.9", false), ("1.30.0-rc.1", true), ("1.34.0", true)] {
            let args = [&template[..], &[version], &REGISTRIES[..]].concat();
            let said = desk.run("helm", &args).await.unwrap();
            assert_eq!(said.success, accepted, "{chart} {version}: {}", said.err);
            assert!(
                accepted || said.err.contains("requires kubeVersion"),
                "{chart}: {}",
                said.err
            );
        }
    }
}
