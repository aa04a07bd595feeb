//! The rights from the chart, applied to a seed without nodes.

use std::{path::Path, process::Stdio};

use anyhow::{Context, Result, ensure};
use testkit::find_program;
use tokio::{io::AsyncWriteExt, process::Command};

/// The namespace of the chart.
pub const NAMESPACE: &str = "extension-provider-local";

/// Installs all objects of the chart except the Deployment. `values` are `KEY=VALUE`.
pub async fn install(kubeconfig: &Path, values: &[&str]) -> Result<()> {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../charts/provider-local");
    let mut helm = Command::new(find_program("helm")?);
    helm.args(["template", "provider-local", "--namespace", NAMESPACE])
        .args(["--kube-version", "1.34.0"])
        .args(["--set", "global.allowEmptyRegistry=true"])
        .args(values.iter().flat_map(|value| ["--set", value]))
        .arg(chart);
    for file in [
        "serviceaccount",
        "clusterrole",
        "clusterrolebinding",
        "role",
        "leader-election",
    ] {
        helm.arg("--show-only").arg(format!("templates/{file}.yaml"));
    }
    let rendered = helm.kill_on_drop(true).output().await?;
    ensure!(
        rendered.status.success(),
        "helm: {}",
        String::from_utf8_lossy(&rendered.stderr)
    );
    apply(kubeconfig, &rendered.stdout).await
}

/// Applies manifests.
pub async fn apply(kubeconfig: &Path, manifests: &[u8]) -> Result<()> {
    let mut kubectl = Command::new(find_program("kubectl")?)
        .args(["apply", "--filename=-", "--kubeconfig"])
        .arg(kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    kubectl
        .stdin
        .take()
        .context("no pipe to kubectl")?
        .write_all(manifests)
        .await?;
    ensure!(kubectl.wait().await?.success(), "kubectl could not apply it");
    Ok(())
}
