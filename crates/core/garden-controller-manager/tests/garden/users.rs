//! Users of the garden with few rights, and objects that they write.

use anyhow::Result;
use api::{constants::seed_user, gardencore::SecretBinding};
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
use kube::{Client, Config, config::KubeConfigOptions};
use serde_json::{Value, json};

use super::Garden;

impl Garden {
    /// A user with Kubernetes' own role `admin` in this namespace.
    pub async fn member(&self, namespace: &str) -> Result<Client> {
        let rbac = "rbac.authorization.k8s.io";
        self.bring(&json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "member", "namespace": namespace},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": "member"}],
        }))
        .await?;
        self.plane.client("member", &[]).await
    }

    /// A user who may read and write the Shoots of this namespace, and has no right besides.
    pub async fn editor_of_shoots(&self, namespace: &str) -> Result<Client> {
        let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
        self.user_of_shoots("editor-of-shoots", namespace, &verbs).await
    }

    /// A user with these verbs for the Shoots of this namespace, and no right besides.
    pub async fn user_of_shoots(&self, name: &str, namespace: &str, verbs: &[&str]) -> Result<Client> {
        let rules = json!([{"apiGroups": ["core.gardener.cloud"], "resources": ["shoots"], "verbs": verbs}]);
        self.grant(name, namespace, &rules, ("User", name)).await?;
        self.plane.client(name, &[]).await
    }

    /// A user who may read and write the BackupEntries of this namespace, and has no right besides.
    pub async fn editor_of_backups(&self, namespace: &str) -> Result<Client> {
        let verbs = ["get", "create", "update", "patch", "delete"];
        let rules =
            json!([{"apiGroups": ["core.gardener.cloud"], "resources": ["backupentries"], "verbs": verbs}]);
        let name = "editor-of-backups";
        self.grant(name, namespace, &rules, ("User", name)).await?;
        self.plane.client(name, &[]).await
    }

    /// A user who may write the Events of this namespace in both API groups, and has no right besides.
    pub async fn writer_of_events(&self, namespace: &str) -> Result<Client> {
        let groups = ["", "events.k8s.io"];
        let rules =
            json!([{"apiGroups": groups, "resources": ["events"], "verbs": ["create", "patch", "update"]}]);
        let name = "writer-of-events";
        self.grant(name, namespace, &rules, ("User", name)).await?;
        self.plane.client(name, &[]).await
    }

    /// Lets the user of [`Self::editor_of_shoots`] move Shoots.
    pub async fn allow_moves_to_editor(&self, namespace: &str) -> Result<()> {
        let rules = json!([{"apiGroups": ["core.gardener.cloud"], "resources": ["shoots/binding"], "verbs": ["update"]}]);
        self.grant("mover-of-shoots", namespace, &rules, ("User", "editor-of-shoots"))
            .await
    }

    /// Binds a new Role with these rules to a user or a group: kind and name.
    pub(super) async fn grant(
        &self,
        name: &str,
        namespace: &str,
        rules: &Value,
        (kind, subject): (&str, &str),
    ) -> Result<()> {
        let rbac = "rbac.authorization.k8s.io";
        let metadata = json!({"name": name, "namespace": namespace});
        let version = format!("{rbac}/v1");
        self.bring(&json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules}))
            .await?;
        self.bring(&json!({
            "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
            "subjects": [{"apiGroup": rbac, "kind": kind, "name": subject}],
        }))
        .await
    }

    /// A client of this user, in these groups.
    pub async fn client(&self, user: &str, groups: &[&str]) -> Client {
        self.plane.client(user, groups).await.unwrap()
    }

    /// The same, for a test that expects status 429: by default, a client repeats such a request for minutes.
    pub async fn client_without_retries(&self, user: &str, groups: &[&str]) -> Client {
        let kubeconfig = self.plane.kubeconfig(user, groups).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .unwrap();
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }

    /// A user who may create bindings in this namespace, and may read Secrets in it, but in no other
    /// namespace.
    pub async fn writer_of_bindings(&self, namespace: &str) -> Result<Client> {
        let rules = json!([
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
            {"apiGroups": ["core.gardener.cloud"], "resources": ["secretbindings"], "verbs": ["create"]},
            {"apiGroups": ["security.gardener.cloud"], "resources": ["credentialsbindings"], "verbs": ["create"]},
        ]);
        self.grant(
            "writer-of-bindings",
            namespace,
            &rules,
            ("User", "writer-of-bindings"),
        )
        .await?;
        self.plane.client("writer-of-bindings", &[]).await
    }
}

/// A SecretBinding; in the namespace of the binding where `namespace` is empty.
pub fn secret_binding(name: &str, namespace: &str, secret: &str) -> SecretBinding {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    serde_json::from_value(json!({
        "metadata": {"name": name}, "provider": {"type": "local"},
        "secretRef": {"name": secret, "namespace": namespace},
    }))
    .unwrap()
}

/// An Event of the gardenlet of a seed: about the Seed in namespace `default`, else about a ConfigMap in the
/// namespace.
pub fn event_in(namespace: &str, seed: &str) -> Event {
    let regarding = if namespace == "default" {
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "name": seed})
    } else {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": namespace})
    };
    serde_json::from_value(json!({
        "metadata": {"name": "reported", "namespace": namespace}, "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "A", "reason": "R", "type": "Normal", "regarding": regarding,
        "reportingController": "gardenlet", "reportingInstance": seed_user(seed),
    }))
    .unwrap()
}

/// A ConfigMap with so many characters of data.
pub fn config_map(name: &str, length: usize) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"x": "y".repeat(length)}})).unwrap()
}
