//! The rights that the controller has in a seed.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{Api, Client, api::PostParams};
use serde_json::json;

/// The account of the controller.
pub const ACCOUNT: &str = "system:serviceaccount:garden:etcd-druid";

/// Gives the account what the chart's ClusterRole allows, and nothing else; its templated lines are labels only.
pub async fn give(admin: &Client) -> Result<()> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../charts/etcd-druid/templates/clusterrole.yaml"
    );
    let template = std::fs::read_to_string(path)?;
    let plain: String = template
        .lines()
        .filter(|line| !line.contains("{{"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let role: ClusterRole = serde_yaml_ng::from_str(&plain)?;
    Api::<ClusterRole>::all(admin.clone())
        .create(&PostParams::default(), &role)
        .await?;
    let binding = json!({
        "metadata": {"name": "etcd-druid"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "etcd-druid"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": ACCOUNT}],
    });
    Api::<ClusterRoleBinding>::all(admin.clone())
        .create(&PostParams::default(), &serde_json::from_value(binding)?)
        .await?;
    Ok(())
}
