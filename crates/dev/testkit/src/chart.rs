//! The rights from a chart, without an installation of the chart.

use std::path::Path;

use anyhow::{Context, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{Api, Client, api::PostParams};
use serde_json::json;

/// Gives the user exactly the rights of the ClusterRole of a chart. Only for charts whose role is templated
/// only in the labels: lines with braces are skipped.
///
/// # Errors
/// The chart does not exist, the file is not a ClusterRole, or the role was granted already.
pub async fn grant(admin: &Client, chart: &str, user: &str) -> Result<()> {
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../charts");
    let path = charts.join(chart).join("templates/clusterrole.yaml");
    let template =
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let plain: String = template
        .lines()
        .filter(|line| !line.contains("{{"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let role: ClusterRole = serde_yaml_ng::from_str(&plain)?;
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": chart},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role.metadata.name},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }))?;
    let (roles, bindings) = (
        Api::<ClusterRole>::all(admin.clone()),
        Api::<ClusterRoleBinding>::all(admin.clone()),
    );
    roles.create(&PostParams::default(), &role).await?;
    bindings.create(&PostParams::default(), &binding).await?;
    Ok(())
}
