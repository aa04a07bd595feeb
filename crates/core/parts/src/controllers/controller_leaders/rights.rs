//! Rights of the cloud-controller-manager in the shoot, and rights of both managers to their shared lock.
//!
//! The cloud controllers of Kubernetes need these rights in every cloud. RBAC cannot restrict `create` to a
//! resource name.

use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use runtime::{
    Result,
    client::{Cluster, Shoot, apply},
    error::Explain,
};
use serde_json::json;

use super::node_ipam::{LOCK, NAMESPACE};
use crate::{
    FIELD_MANAGER, from_json,
    rbac::{role_ref, user},
    secrets::config::{
        CLOUD_CONTROLLER_MANAGER, CLOUD_CONTROLLER_MANAGER_USER, KUBE_CONTROLLER_MANAGER_USER,
    },
};

/// Name of the role, as in the documentation of Kubernetes.
const NAME: &str = CLOUD_CONTROLLER_MANAGER_USER;
/// Name of the Role for the main lock, in the pattern that Kubernetes uses for the built-in managers.
const MAIN_LOCK_ROLE: &str = "system::leader-locking-cloud-controller-manager";
/// Main lock of the cloud-controller-manager: the Lease has the name of the manager.
const MAIN_LOCK: &str = CLOUD_CONTROLLER_MANAGER;

/// Deploys the rights of the cloud-controller-manager in the shoot. The tests of providers run the provider's
/// programs with exactly these rights.
///
/// # Errors
/// The shoot's API refuses an object, or does not answer.
pub async fn deploy_cloud_controller_manager_rights(shoot: &Shoot) -> Result<()> {
    let role: ClusterRole = from_json(json!({"metadata": {"name": NAME}, "rules": [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch", "update", "delete"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch", "update"]},
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch", "patch", "update"]},
        {"apiGroups": [""], "resources": ["services/status"], "verbs": ["patch", "update"]},
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
    ]}))?;
    let binding: ClusterRoleBinding = from_json(json!({
        "metadata": {"name": NAME},
        "roleRef": role_ref("ClusterRole", NAME),
        "subjects": [user(CLOUD_CONTROLLER_MANAGER_USER)],
    }))?;
    FIELD_MANAGER.apply(&shoot.cluster_wide(), &role).await?;
    FIELD_MANAGER.apply(&shoot.cluster_wide(), &binding).await?;
    deploy_lock(shoot, MAIN_LOCK_ROLE, MAIN_LOCK, &[CLOUD_CONTROLLER_MANAGER_USER]).await
}

/// Grants both managers the rights to the migration lock (RK-30).
pub(super) async fn share(shoot: &Shoot) -> Result<()> {
    deploy_lock(
        shoot,
        LOCK,
        LOCK,
        &[KUBE_CONTROLLER_MANAGER_USER, CLOUD_CONTROLLER_MANAGER_USER],
    )
    .await
}

/// Whether the Role for the migration lock still exists.
pub(super) async fn are_shared(shoot: &Shoot) -> Result<bool> {
    let roles: Api<Role> = shoot.namespaced(NAMESPACE);
    let found = roles.get_opt(LOCK).await;
    Ok(found
        .context(format_args!("could not read Role {LOCK} of the shoot"))?
        .is_some())
}

/// Deletes the RoleBinding and the Role of the migration lock.
pub(super) async fn unshare(shoot: &Shoot) -> Result<()> {
    apply::delete(&shoot.namespaced::<RoleBinding>(NAMESPACE), LOCK).await?;
    apply::delete(&shoot.namespaced::<Role>(NAMESPACE), LOCK).await
}

async fn deploy_lock(shoot: &Shoot, name: &str, lock: &str, users: &[&str]) -> Result<()> {
    let role: Role = from_json(
        json!({"metadata": {"name": name, "namespace": NAMESPACE}, "rules": [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [lock], "verbs": ["get", "watch", "update"]},
        ]}),
    )?;
    let subjects: Vec<_> = users.iter().map(|name| user(name)).collect();
    let binding: RoleBinding = from_json(json!({
        "metadata": {"name": name, "namespace": NAMESPACE},
        "roleRef": role_ref("Role", name),
        "subjects": subjects,
    }))?;
    FIELD_MANAGER.apply(&shoot.namespaced(NAMESPACE), &role).await?;
    FIELD_MANAGER
        .apply(&shoot.namespaced(NAMESPACE), &binding)
        .await
        .map(|_| ())
}
