//! An operator withdraws rights and credentials by deletions. A finalizer of a member would keep the deleted
//! object, and Kubernetes counts the rights of a RoleBinding in deletion.

use std::{pin::pin, time::Duration};

use api::{gardencore::SecretBinding, security::CredentialsBinding};
use futures::{Stream, StreamExt};
use k8s_openapi::api::{
    core::v1::ConfigMap,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, allowed, refused, try_create, until_allowed, until_refused};

const RBAC: &str = "rbac.authorization.k8s.io";
/// Many times the duration of a request, also on a busy machine.
const SOON: Duration = Duration::from_secs(60);
const REFUSED: &str = "may not add a finalizer to";
const CANNOT_CREATE: &str = "cannot create resource \"configmaps\"";

fn finalizers(list: &[&str]) -> Value {
    json!({"metadata": {"finalizers": list}})
}

/// A member with the role of the example for operators.
async fn member(garden: &Garden) -> Client {
    let example = include_str!("../../../../../docs/operate/examples/project-admin-role.yaml");
    for document in garden::documents_in(example) {
        garden.bring(&document).await.unwrap();
    }
    garden.client("keeper", &["dev-admins"]).await
}

/// A grant of the member's own role to a guest.
fn guest_binding(name: &str, finalizers: &[&str]) -> RoleBinding {
    serde_json::from_value(json!({
        "metadata": {"name": name, "finalizers": finalizers},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "gardener.cloud:project-admin"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "guest-of-keeper"}],
    }))
    .unwrap()
}

pub async fn a_member_keeps_no_deleted_right(garden: &Garden) {
    let member = member(garden).await;
    let bindings: Api<RoleBinding> = Api::namespaced(member.clone(), NAMESPACE);
    let administrators: Api<RoleBinding> = garden.admin(NAMESPACE);
    let params = PostParams::default();
    until_allowed(|| try_create(&bindings, guest_binding("of-guest", &[]))).await;
    let kept = guest_binding("kept-from-birth", &["example.org/kept"]);
    refused(bindings.create(&params, &kept).await.map(drop), REFUSED);
    let created = bindings.create(&params, &guest_binding("of-guest", &[])).await;
    allowed(created.map(drop));
    // The binding of the operator, too.
    for name in ["of-guest", "project-admin"] {
        for added in [
            finalizers(&["example.org/kept"]),
            finalizers(&["foregroundDeletion"]),
        ] {
            refused(garden.patch(&bindings, name, added).await, REFUSED);
        }
    }
    // Dependents of the member would keep the binding.
    for params in [DeleteParams::foreground(), DeleteParams::orphan()] {
        let deleted = bindings.delete("of-guest", &params).await;
        refused(
            deleted.map(drop),
            "with propagationPolicy Foreground or Orphan, because dependents would keep the object",
        );
    }
    the_collector_keeps_no_binding(garden).await;
    let configs: Api<ConfigMap> = Api::namespaced(garden.client("guest-of-keeper", &[]).await, NAMESPACE);
    let write = || try_create(&configs, garden::config_map("of-guest", 1));
    until_allowed(write).await;
    allowed(write().await);
    let open = configs.watch(&WatchParams::default(), "0").await.unwrap();
    let deleted = administrators.delete("of-guest", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
    until_refused(CANNOT_CREATE, write).await;
    refused(write().await, CANNOT_CREATE);
    an_open_watch_outlives_the_right(garden, open).await;

    a_finalizer_from_before_the_policy_is_removed(garden, &bindings, &configs).await;
    other_kinds_get_no_finalizer(garden, &member).await;
    for params in [DeleteParams::default(), DeleteParams::background()] {
        let name = "short-lived";
        let created = bindings
            .create(&PostParams::default(), &guest_binding(name, &[]))
            .await;
        allowed(created.map(drop));
        allowed(bindings.delete(name, &params).await.map(drop));
    }
}

/// An operator finds the bindings of a member by `kubectl get`, which cuts a cell at a line feed, and prints
/// names by columns as received.
pub async fn a_member_hides_no_binding(garden: &Garden) {
    let member = member(garden).await;
    let bindings: Api<RoleBinding> = Api::namespaced(member.clone(), NAMESPACE);
    let roles: Api<Role> = Api::namespaced(member, NAMESPACE);
    let params = PostParams::default();
    until_allowed(|| try_create(&bindings, guest_binding("of-two", &[]))).await;
    allowed(
        bindings
            .create(&params, &guest_binding("of-two", &[]))
            .await
            .map(drop),
    );
    let words = "with a control character in metadata.name, roleRef.name or subjects";
    let user = |name: &str| json!({"apiGroup": RBAC, "kind": "User", "name": name});
    for hidden in ["a\n", "a\u{1b}[2K", "a\u{202e}", "\t"] {
        let subjects = json!([user(hidden), user("keeper")]);
        let mut binding = guest_binding("hides", &[]);
        binding.subjects = Some(serde_json::from_value(subjects.clone()).unwrap());
        refused(bindings.create(&params, &binding).await.map(drop), words);
        let patch = json!({"subjects": subjects});
        refused(garden.patch(&bindings, "of-two", patch).await, words);
    }
    let forged = "x\ngarden-bank   SecretBinding   bank-aws   2026-11-30T01:00:00Z   [y]";
    let binding = guest_binding(forged, &[]);
    refused(bindings.create(&params, &binding).await.map(drop), words);
    let role: Role = serde_json::from_value(json!({"metadata": {"name": forged}, "rules": []})).unwrap();
    refused(roles.create(&params, &role).await.map(drop), words);
    // Names of users and groups of an identity provider have further signs.
    let subjects = json!([user("oidc:J\u{fc}rgen M@example.org"), user("keeper")]);
    let named = json!({"subjects": subjects});
    allowed(garden.patch(&bindings, "of-two", named).await);
    // A subject from before the rule keeps no member from other fields.
    let administrators: Api<RoleBinding> = garden.admin(NAMESPACE);
    let early = json!({"subjects": [user("a\n")]});
    allowed(garden.patch(&administrators, "of-two", early).await);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    allowed(garden.patch(&bindings, "of-two", labels).await);
    let deleted = bindings.delete("of-two", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
}

/// The member deletes an owner of the binding in the foreground, and the garbage collector follows.
async fn the_collector_keeps_no_binding(garden: &Garden) {
    let collector = "system:serviceaccount:kube-system:generic-garbage-collector";
    let bindings: Api<RoleBinding> = Api::namespaced(garden.client(collector, &[]).await, NAMESPACE);
    let deleted = bindings.delete("of-guest", &DeleteParams::foreground()).await;
    let words = "with propagationPolicy Foreground or Orphan, because dependents would keep the object";
    refused(deleted.map(drop), words);
}

/// kube-apiserver authorizes a watch once. The reason for the restarts in the runbook about rights.
async fn an_open_watch_outlives_the_right(
    garden: &Garden,
    open: impl Stream<Item = kube::Result<WatchEvent<ConfigMap>>>,
) {
    let (name, configs): (_, Api<ConfigMap>) = ("after-the-withdrawal", garden.admin(NAMESPACE));
    let created = configs
        .create(&PostParams::default(), &garden::config_map(name, 1))
        .await;
    allowed(created.map(drop));
    let mut open = pin!(open);
    let arrives = async {
        while let Some(event) = open.next().await {
            if let Ok(WatchEvent::Added(found)) = event
                && found.name_any() == name
            {
                return true;
            }
        }
        false
    };
    let has_arrived = testkit::timeout(SOON, arrives).await.unwrap();
    assert!(has_arrived, "the watch has ended with the right");
    let deleted = configs.delete(name, &DeleteParams::default()).await;
    allowed(deleted.map(drop));
}

/// The reason for the policy, and the steps of the runbook.
async fn a_finalizer_from_before_the_policy_is_removed(
    garden: &Garden,
    bindings: &Api<RoleBinding>,
    configs: &Api<ConfigMap>,
) {
    let administrators: Api<RoleBinding> = garden.admin(NAMESPACE);
    let early = guest_binding("early", &["example.org/early", "example.org/kept"]);
    let created = administrators.create(&PostParams::default(), &early).await;
    allowed(created.map(drop));
    let write = || try_create(configs, garden::config_map("of-guest", 1));
    until_allowed(write).await;
    // Writes beside the finalizers pass, and so does the removal of a finalizer.
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    allowed(garden.patch(bindings, "early", label).await);
    allowed(
        garden
            .patch(bindings, "early", finalizers(&["example.org/kept"]))
            .await,
    );
    let exchanged = finalizers(&["example.org/other"]);
    refused(garden.patch(bindings, "early", exchanged).await, REFUSED);

    let deleted = administrators.delete("early", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
    let left = administrators.get("early").await.unwrap();
    assert!(left.metadata.deletion_timestamp.is_some());
    // Kubernetes counts the right.
    allowed(write().await);
    allowed(garden.patch(&administrators, "early", finalizers(&[])).await);
    until_refused(CANNOT_CREATE, write).await;
    refused(write().await, CANNOT_CREATE);
}

/// Roles, and the bindings to credentials.
async fn other_kinds_get_no_finalizer(garden: &Garden, member: &Client) {
    let params = PostParams::default();
    let roles: Api<Role> = Api::namespaced(member.clone(), NAMESPACE);
    let role = |list: &[&str]| -> Role {
        serde_json::from_value(json!({"metadata": {"name": "lasting", "finalizers": list}, "rules": []}))
            .unwrap()
    };
    let secret: Api<SecretBinding> = Api::namespaced(member.clone(), NAMESPACE);
    let secret_binding = |list: &[&str]| {
        let mut binding = garden::secret_binding("lasting", "", "lasting");
        binding.metadata.finalizers = Some(list.iter().map(|&name| name.to_owned()).collect());
        binding
    };
    let credentials: Api<CredentialsBinding> = Api::namespaced(member.clone(), NAMESPACE);
    let credentials_binding = |list: &[&str]| -> CredentialsBinding {
        serde_json::from_value(json!({
            "metadata": {"name": "lasting", "finalizers": list}, "provider": {"type": "local"},
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "lasting", "namespace": NAMESPACE},
        }))
        .unwrap()
    };
    let own = ["example.org/kept"];
    refused(roles.create(&params, &role(&own)).await.map(drop), REFUSED);
    refused(
        secret.create(&params, &secret_binding(&own)).await.map(drop),
        REFUSED,
    );
    let created = credentials.create(&params, &credentials_binding(&own)).await;
    refused(created.map(drop), REFUSED);

    allowed(roles.create(&params, &role(&[])).await.map(drop));
    let created = secret.create(&params, &secret_binding(&[])).await;
    allowed(created.map(drop));
    let created = credentials.create(&params, &credentials_binding(&[])).await;
    allowed(created.map(drop));
    refused(garden.patch(&roles, "lasting", finalizers(&own)).await, REFUSED);
    refused(garden.patch(&secret, "lasting", finalizers(&own)).await, REFUSED);
    refused(
        garden.patch(&credentials, "lasting", finalizers(&own)).await,
        REFUSED,
    );
}
