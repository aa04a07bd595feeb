//! Charts, packed by helm.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use testkit::find_program;

/// A ConfigMap with the values that the chart received.
pub const CONFIG_MAP: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
  seed: {{ .Values.gardener.seed.name }}
  garden: {{ .Values.gardener.garden.clusterIdentity }}
  color: {{ .Values.color | default \"none\" }}
";

const RIGHTS: &str = "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: {{ .Release.Name }}}
rules: [{apiGroups: [example.test], resources: [things], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: {{ .Release.Name }}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ .Release.Name }}}
subjects: [{kind: ServiceAccount, name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}]
";

const PODS: &str = "apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers: [{name: provider, image: provider}]
";

const HOOK: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
";

/// With a workload, rights and a hook.
pub fn good() -> Result<Vec<u8>> {
    pack(
        &[
            ("map", CONFIG_MAP),
            ("rights", RIGHTS),
            ("pods", PODS),
            ("hook", HOOK),
        ],
        "",
    )
}

/// With this template.
pub fn with(template: &str) -> Result<Vec<u8>> {
    pack(&[("only", template)], "")
}

/// A chart with a dependency from a repository.
pub fn with_dependency(repository: &str) -> Result<Vec<u8>> {
    // helm does not pack a chart with missing dependencies, so the chart is first packed without
    // dependencies.
    let folder = folder(&[("map", CONFIG_MAP)], "")?;
    let dependencies =
        format!("dependencies: [{{name: other, version: 1.0.0, repository: '{repository}'}}]\n");
    let chart = folder.path().join("ext/Chart.yaml");
    fs::write(&chart, fs::read_to_string(&chart)? + &dependencies)?;
    let packed = Command::new("tar")
        .args(["-czf", "-", "ext"])
        .current_dir(folder.path())
        .output()?;
    ensure!(
        packed.status.success(),
        "{}",
        String::from_utf8_lossy(&packed.stderr)
    );
    Ok(packed.stdout)
}

/// An empty archive, compressed by gzip.
pub fn empty_archive() -> Vec<u8> {
    vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

fn folder(templates: &[(&str, &str)], more: &str) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let chart = folder.path().join("ext");
    fs::create_dir_all(chart.join("templates"))?;
    fs::write(
        chart.join("Chart.yaml"),
        format!("apiVersion: v2\nname: ext\nversion: 1.0.0\n{more}"),
    )?;
    for (name, text) in templates {
        fs::write(chart.join(format!("templates/{name}.yaml")), text)?;
    }
    Ok(folder)
}

fn pack(templates: &[(&str, &str)], more: &str) -> Result<Vec<u8>> {
    let folder = folder(templates, more)?;
    let packed = Command::new(find_program("helm")?)
        .args(["package", "ext"])
        .current_dir(folder.path())
        .output()?;
    ensure!(
        packed.status.success(),
        "{}",
        String::from_utf8_lossy(&packed.stderr)
    );
    let archive: &Path = folder.path();
    fs::read(archive.join("ext-1.0.0.tgz")).context("an archive")
}
