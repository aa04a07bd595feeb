//! Applies manifests as a user does: with `kubectl apply` under strict validation.

use std::{fs, process::Stdio};

use anyhow::{Context, Result, bail, ensure};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{landscape::Landscape, repository};

/// The Kubernetes version that the landscape's images have.
pub const KUBERNETES_VERSION: &str = "1.34.4";

/// Applies `tests/landscape/manifests/<file>` to the garden, with `${KEY}` replaced. Returns the output of
/// kubectl.
pub async fn apply(landscape: &Landscape, file: &str, values: &[(&str, &str)]) -> Result<String> {
    apply_text(landscape, &text(file, values)?).await
}

/// The text of `tests/landscape/manifests/<file>`, with `${KEY}` replaced.
pub fn text(file: &str, values: &[(&str, &str)]) -> Result<String> {
    let path = repository().join("tests/landscape/manifests").join(file);
    let mut text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for (key, value) in values.iter().chain(&[("KUBERNETES_VERSION", KUBERNETES_VERSION)]) {
        text = text.replace(&format!("${{{key}}}"), value);
    }
    Ok(text)
}

/// Applies manifests to the garden under strict validation. Returns the output of kubectl.
pub async fn apply_text(landscape: &Landscape, text: &str) -> Result<String> {
    kubectl(
        landscape,
        &["apply", "--server-side", "--validate=strict", "-f", "-"],
        text,
    )
    .await
}

/// Runs kubectl against the garden.
pub async fn kubectl(landscape: &Landscape, arguments: &[&str], input: &str) -> Result<String> {
    let mut child = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(landscape.variable("GARDEN_KUBECONFIG")?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("kubectl does not start; run: hack/tools.sh kubectl")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).await?;
    }
    let output = child.wait_with_output().await?;
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    if output.status.success() {
        Ok(said)
    } else {
        bail!("kubectl {}: {said}", arguments.join(" "))
    }
}

/// The user's side of a landscape: cloud profile, project, credentials. Safe to repeat.
pub async fn apply_project(landscape: &Landscape) -> Result<()> {
    apply(landscape, "10-project.yaml", &[]).await?;
    kubectl(
        landscape,
        &[
            "wait",
            "project/dev",
            "--for=jsonpath={.status.phase}=Ready",
            "--timeout=60s",
        ],
        "",
    )
    .await?;
    let kubeconfig =
        fs::read_to_string(landscape.variable("LANDSCAPE_STATE")?.to_owned() + "/cloud.kubeconfig")
            .context("the cloud's kubeconfig is missing; run: hack/install.sh")?;
    let indented: String = kubeconfig.lines().flat_map(|line| ["    ", line, "\n"]).collect();
    apply(
        landscape,
        "20-credentials.yaml",
        &[("CLOUD_KUBECONFIG", indented.trim_end())],
    )
    .await?;
    Ok(())
}

/// A Shoot with machines in two zones, on seed-a at first.
pub async fn apply_shoot_with_workers(landscape: &Landscape, name: &str) -> Result<String> {
    apply(landscape, "40-shoot-with-workers.yaml", &[("SHOOT", name)]).await
}

/// As [`apply_shoot_with_workers`], with a machine in each of three zones.
pub async fn apply_shoot_in_three_zones(landscape: &Landscape, name: &str) -> Result<String> {
    let mut text = text("40-shoot-with-workers.yaml", &[("SHOOT", name)])?;
    for (two, three) in [
        ("minimum: 2", "minimum: 3"),
        ("maximum: 2", "maximum: 3"),
        ("zones: [a, b]", "zones: [a, b, c]"),
    ] {
        ensure!(
            text.contains(two),
            "40-shoot-with-workers.yaml has no {two:?} any more"
        );
        text = text.replace(two, three);
    }
    apply_text(landscape, &text).await
}

/// A Shoot, on seed-a at first.
pub async fn apply_shoot(landscape: &Landscape, name: &str) -> Result<String> {
    apply(landscape, "30-shoot.yaml", &[("SHOOT", name)]).await
}
