//! The rights that charts grant, from the charts in the rendering of Helm.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_yaml_ng::Value;

use super::{
    policy_rule::{PolicyRule, Right, RightHolder},
    shapes::Cluster,
};
use crate::sources::files_below;

/// A chart with roles: the cluster of the installation, and the values that add rights.
struct Chart {
    name: &'static str,
    cluster: Cluster,
    /// Values of each rendering.
    set: &'static [&'static str],
    values: &'static [ChartValue],
}

/// A value that adds rights, as operators read the value, and as Helm gets the value.
struct ChartValue {
    shown: &'static str,
    set: &'static [&'static str],
}

const LEADER_MIGRATION: ChartValue = ChartValue {
    shown: "leaderMigration.enabled",
    set: &["leaderMigration.enabled=true"],
};

const CHARTS: &[Chart] = &[
    Chart {
        name: "garden",
        cluster: Cluster::Garden,
        // By default an operator binds the roles of gardenlets to the user of each gardenlet.
        set: &["gardenlets.bindGroup=true"],
        values: &[],
    },
    Chart {
        name: "garden-controller-manager",
        cluster: Cluster::Garden,
        set: &[],
        values: &[LEADER_MIGRATION],
    },
    Chart {
        name: "gardenlet",
        cluster: Cluster::Seed,
        set: &[],
        values: &[LEADER_MIGRATION],
    },
    Chart {
        name: "etcd-druid",
        cluster: Cluster::Seed,
        set: &[],
        values: &[],
    },
    Chart {
        name: "resource-manager",
        cluster: Cluster::Seed,
        set: &[],
        values: &[
            ChartValue {
                shown: "seedObjects.roles",
                set: &["seedObjects.roles=true"],
            },
            ChartValue {
                shown: "seedObjects.anyKind",
                set: &["seedObjects.anyKind=true"],
            },
        ],
    },
    Chart {
        name: "provider-local",
        cluster: Cluster::Seed,
        set: &[],
        values: &[
            LEADER_MIGRATION,
            ChartValue {
                shown: "garden.kubeconfigSecret",
                set: &[
                    "garden.kubeconfigSecret=garden",
                    "garden.seedName=seed",
                    "garden.backupEntryDeletionGracePeriodHours=24",
                ],
            },
        ],
    },
    Chart {
        name: "provider-aws",
        cluster: Cluster::Seed,
        set: &[],
        values: &[LEADER_MIGRATION],
    },
];

/// The namespace of releases on the page.
const RELEASE_NAMESPACE: &str = "garden";

/// The rights of all charts.
pub fn rights(root: &Path) -> Result<BTreeSet<Right>> {
    for file in files_below(vec![root.join("charts")], "yaml")? {
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let chart = shown.split('/').nth(1).unwrap_or_default();
        let is_listed = CHARTS.iter().any(|listed| listed.name == chart);
        let is_link = shown.contains("/charts/");
        if !is_listed && !is_link && fs::read_to_string(&file)?.contains("\nkind: ClusterRole\n") {
            bail!("{shown} has a role; add chart {chart} to {}", file!());
        }
    }
    let mut rights = BTreeSet::new();
    for chart in CHARTS {
        let usual = of_manifests(chart, &render(root, chart, &[])?)?;
        let mut known = usual.clone();
        for option in chart.values {
            for mut right in of_manifests(chart, &render(root, chart, option.set)?)? {
                if !known.contains(&right) {
                    known.insert(right.clone());
                    right.value = Some(option.shown.to_owned());
                    rights.insert(right);
                }
            }
        }
        rights.extend(usual);
    }
    Ok(rights)
}

fn render(root: &Path, chart: &Chart, set: &[&str]) -> Result<String> {
    let mut helm = Command::new("helm");
    helm.args(["template", chart.name, "--namespace", RELEASE_NAMESPACE])
        // `xtask generate` writes the schemas too, after a change of the values.
        .args(["--kube-version", "1.34.0", "--skip-schema-validation"])
        .args(["--set", "global.allowEmptyRegistry=true"])
        .args(chart.set.iter().chain(set).flat_map(|value| ["--set", *value]))
        .arg(root.join("charts").join(chart.name));
    let output = helm
        .output()
        .context("helm could not be started; run hack/tools.sh helm")?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("helm cannot render charts/{}: {error}", chart.name);
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn of_manifests(chart: &Chart, manifests: &str) -> Result<BTreeSet<Right>> {
    let (mut rules, mut bindings) = (BTreeMap::new(), Vec::new());
    for part in manifests.split("\n---\n") {
        let source = part
            .lines()
            .find_map(|line| line.trim_start_matches("---").trim().strip_prefix("# Source: "));
        // Subcharts are rendered alone, and the definitions of kinds are large.
        let is_own = source.is_some_and(|source| source.starts_with(&format!("{}/templates/", chart.name)));
        if !is_own || !part.contains("rbac.authorization.k8s.io/v1") {
            continue;
        }
        let object: Value = serde_yaml_ng::from_str(part.trim_start_matches("---\n"))
            .with_context(|| format!("a manifest of charts/{}", chart.name))?;
        let kind = text(&object["kind"]);
        let key = |object: &Value| (text(&object["metadata"]["name"]), namespace_of(object));
        match kind.as_str() {
            "Role" | "ClusterRole" => {
                let found: Vec<PolicyRule> = serde_yaml_ng::from_value(object["rules"].clone())?;
                let (name, namespace) = key(&object);
                let namespace = namespace.filter(|_| kind == "Role");
                let file = source.map_or_else(String::new, |source| format!("charts/{source}"));
                rules.insert((kind, name, namespace), (file, found));
            }
            "RoleBinding" | "ClusterRoleBinding" => bindings.push(object),
            _ => {}
        }
    }
    let (mut rights, mut bound) = (BTreeSet::new(), BTreeSet::new());
    for binding in &bindings {
        let namespace = namespace_of(binding).filter(|_| text(&binding["kind"]) == "RoleBinding");
        let kind = text(&binding["roleRef"]["kind"]);
        let role_namespace = namespace.clone().filter(|_| kind == "Role");
        let key = (kind, text(&binding["roleRef"]["name"]), role_namespace);
        let Some((file, rules)) = rules.get(&key) else {
            bail!(
                "charts/{} binds {} {}, which the chart does not have",
                chart.name,
                key.0,
                key.1
            );
        };
        bound.insert(key);
        for subject in binding["subjects"].as_sequence().into_iter().flatten() {
            let holder = RightHolder {
                process: process_of(&text(&subject["name"])),
                cluster: chart.cluster,
                namespace: namespace.clone(),
                file: file.clone(),
            };
            rights.extend(rules.iter().flat_map(|rule| holder.expand(rule)));
        }
    }
    if let Some((kind, name, _)) = rules.keys().find(|key| !bound.contains(*key)) {
        bail!(
            "charts/{} has {kind} {name} without a binding; add the value that renders the binding to {}",
            chart.name,
            file!()
        );
    }
    Ok(rights)
}

/// The process behind a subject: a ServiceAccount has the name of the process, and gardenlets are a group.
fn process_of(subject: &str) -> String {
    match subject {
        "gardener.cloud:system:seeds" => "gardenlet".to_owned(),
        account => account.to_owned(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn namespace_of(object: &Value) -> Option<String> {
    object["metadata"]["namespace"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ROLE: &str = "---
# Source: garden/templates/role.yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: gardenlets
rules:
  - apiGroups: [core.gardener.cloud]
    resources: [seeds, seeds/status]
    resourceNames: [a]
    verbs: [get, patch]
";
    const BINDING: &str = "---
# Source: garden/templates/binding.yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: gardenlets
roleRef:
  kind: ClusterRole
  name: gardenlets
subjects:
  - kind: Group
    name: gardener.cloud:system:seeds
";

    #[test]
    fn each_verb_on_each_resource_is_a_right_of_the_bound_process() {
        let rights = of_manifests(&CHARTS[0], &format!("{ROLE}{BINDING}")).unwrap();
        let shown: Vec<String> = rights
            .iter()
            .map(|right| format!("{} {} {}", right.process, right.verb, right.resource))
            .collect();
        assert_eq!(
            shown,
            [
                "gardenlet get seeds",
                "gardenlet patch seeds",
                "gardenlet get seeds/status",
                "gardenlet patch seeds/status"
            ]
        );
    }

    #[test]
    fn a_role_without_a_binding_is_an_error() {
        assert!(of_manifests(&CHARTS[0], ROLE).is_err());
    }
}
