//! Rights of nodes and of the machine-controller-manager in the shoot.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use runtime::{Result, client::Cluster};
use serde_json::json;

use crate::{
    FIELD_MANAGER, Residency, from_json,
    rbac::{group, role_ref, user},
    secrets::config::{KUBELET_CLIENT_USER, MACHINE_CONTROLLER_MANAGER_USER},
    task::{NONE, PartTask},
};

/// The rights.
#[derive(Debug)]
pub struct NodeRights;

impl NodeRights {
    /// [`Self::deploy`], as a task.
    pub const DEPLOY: PartTask<Residency> =
        PartTask::new("Deploying rights of nodes in Shoot", NONE, |input| {
            Box::pin(Self::deploy(input))
        });

    /// "Deploying rights of nodes in Shoot": a machine may request a node certificate with the bootstrap
    /// token, and a node may renew the node's own certificate. kube-apiserver may use kubelets, and the
    /// machine-controller-manager may manage machines.
    pub async fn deploy(residency: &Residency) -> Result<()> {
        let shoot = residency.shoot_client().await?;
        for binding in bindings()? {
            FIELD_MANAGER.apply(&shoot.cluster_wide(), &binding).await?;
        }
        FIELD_MANAGER
            .apply(&shoot.cluster_wide(), &machines_role()?)
            .await?;
        let (role, binding) = tokens()?;
        FIELD_MANAGER
            .apply(&shoot.namespaced("kube-system"), &role)
            .await?;
        FIELD_MANAGER
            .apply(&shoot.namespaced("kube-system"), &binding)
            .await
            .map(drop)
    }
}

fn bindings() -> Result<Vec<ClusterRoleBinding>> {
    let csr = |what: &str| format!("system:certificates.k8s.io:certificatesigningrequests:{what}");
    [
        (
            "gardener.cloud:node-bootstrapper",
            "system:node-bootstrapper".to_owned(),
            group("system:bootstrappers"),
        ),
        (
            "gardener.cloud:node-client",
            csr("nodeclient"),
            group("system:bootstrappers"),
        ),
        (
            "gardener.cloud:node-client-renewal",
            csr("selfnodeclient"),
            group("system:nodes"),
        ),
        (
            "gardener.cloud:kube-apiserver-kubelet",
            "system:kubelet-api-admin".to_owned(),
            user(KUBELET_CLIENT_USER),
        ),
        (
            MACHINE_CONTROLLER_MANAGER_USER,
            MACHINE_CONTROLLER_MANAGER_USER.to_owned(),
            user(MACHINE_CONTROLLER_MANAGER_USER),
        ),
    ]
    .into_iter()
    .map(|(name, role, subject)| {
        from_json(json!({
            "metadata": {"name": name},
            "roleRef": role_ref("ClusterRole", &role),
            "subjects": [subject],
        }))
    })
    .collect()
}

/// Rights to describe and delete nodes, to evict pods, and to delete pods that resist the eviction.
fn machines_role() -> Result<ClusterRole> {
    from_json(
        json!({"metadata": {"name": MACHINE_CONTROLLER_MANAGER_USER}, "rules": [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch", "update", "delete"]},
            {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch", "update"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"]},
            {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
            {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["persistentvolumeclaims", "persistentvolumes"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["storage.k8s.io"], "resources": ["volumeattachments"], "verbs": ["get", "list", "watch", "delete"]},
            {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
        ]}),
    )
}

/// Bootstrap tokens are Secrets in this namespace. RBAC cannot restrict `create` to a resource name, and
/// token names are random.
fn tokens() -> Result<(Role, RoleBinding)> {
    let name = MACHINE_CONTROLLER_MANAGER_USER;
    let role = from_json(json!({"metadata": {"name": name}, "rules": [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch", "create", "patch", "update", "delete"]},
    ]}))?;
    let binding = from_json(json!({
        "metadata": {"name": name},
        "roleRef": role_ref("Role", name),
        "subjects": [user(name)],
    }))?;
    Ok((role, binding))
}
