//! An account in the local cloud, on a real API server.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use cloud_local::instances;
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, Pod, ServiceAccount},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testkit::{ControlPlane, eventually};

pub const ACCOUNT: &str = "cloud";
pub const CLUSTER: &str = "shoot--dev--web";
/// The API server applies granted rights a moment later. This bound is far longer.
pub const SOON: Duration = Duration::from_secs(60);

pub fn made<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// The account of hack/install.sh, with the rights and the list of a network's instances.
pub async fn account(cloud: &ControlPlane) -> Result<BTreeMap<String, Vec<u8>>> {
    let admin = cloud.admin();
    let create = PostParams::default();
    let namespace: Namespace = made(json!({"metadata": {"name": ACCOUNT}}));
    Api::all(admin.clone()).create(&create, &namespace).await?;
    let role: Role = made(json!({"metadata": {"name": ACCOUNT}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create", "delete"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    ]}));
    Api::namespaced(admin.clone(), ACCOUNT)
        .create(&create, &role)
        .await?;
    let binding: RoleBinding = made(json!({"metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "owner"}]}));
    Api::namespaced(admin.clone(), ACCOUNT)
        .create(&create, &binding)
        .await?;
    let list: ConfigMap = made(json!({"metadata": {"name": instances(CLUSTER)}}));
    Api::namespaced(admin.clone(), ACCOUNT)
        .create(&create, &list)
        .await?;
    let pods: Api<Pod> = Api::namespaced(cloud.client("owner", &[]).await?, ACCOUNT);
    eventually("the owner is let in", SOON, || async {
        pods.list(&ListParams::default()).await
    })
    .await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin, ACCOUNT);
    eventually("instances can be made", SOON, || accounts.get("default")).await?;
    let kubeconfig = serde_json::to_vec(&cloud.kubeconfig("owner", &[])?)?;
    Ok(BTreeMap::from([
        ("kubeconfig".to_owned(), kubeconfig),
        ("namespace".to_owned(), ACCOUNT.into()),
    ]))
}
