//! The rights and policies of a garden from the charts, with the clients under these rights.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use testkit::ControlPlane;

use crate::garden;

/// Files with the installed objects, below `charts`.
const TEMPLATES: [&str; 4] = [
    "garden/templates/gardenlets-rbac.yaml",
    "garden/templates/gardenlets-bindings.yaml",
    "garden-controller-manager/templates/clusterrole.yaml",
    "garden-controller-manager/templates/clusterrolebinding.yaml",
];
/// Folder of the policies, below `charts`.
const POLICIES: &str = "garden/files/policies";

/// Installs roles, then policies. The policies are in force some seconds later.
pub async fn install(client: &Client) -> Result<()> {
    garden::apply(client, garden::namespace("gardener-system-seed-lease")).await?;
    let mut files: Vec<PathBuf> = TEMPLATES.iter().map(|file| charts().join(file)).collect();
    for file in fs::read_dir(charts().join(POLICIES)).context(POLICIES)? {
        files.push(file?.path());
    }
    for file in files {
        for object in objects(&file)? {
            garden::apply(client, object).await?;
        }
    }
    Ok(())
}

/// A client of the garden with garden-controller-manager's rights.
pub async fn manager(garden: &ControlPlane) -> Result<Client> {
    let name = "system:serviceaccount:garden:garden-controller-manager";
    garden.client(name, &[]).await
}

/// A client of the garden with the rights of a seed's gardenlet.
pub async fn gardenlet(garden: &ControlPlane, seed: &str) -> Result<Client> {
    let name = format!("gardener.cloud:system:seed:{seed}");
    garden.client(&name, &["gardener.cloud:system:seeds"]).await
}

fn charts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts")
}

/// The objects of a file, or of a chart's template without lines that are only templating.
fn objects(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let lines: Vec<_> = text.lines().filter(|line| !line.contains("{{-")).collect();
    let text = lines.join("\n").replace("{{ .Release.Namespace }}", "garden");
    serde_yaml_ng::Deserializer::from_str(&text)
        .map(|object| Value::deserialize(object).with_context(|| path.display().to_string()))
        .collect()
}
