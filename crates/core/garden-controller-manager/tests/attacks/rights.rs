//! Rights of seeds are granted by garden-controller-manager alone (threats.md 8, 10, 16, 17).

use std::time::Duration;

use api::gardencore::{SecretBinding, Seed, Shoot, ShootState};
use k8s_openapi::api::{
    core::v1::{Namespace, ServiceAccount},
    rbac::v1::{ClusterRole, Role, RoleBinding},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, refused, secret_binding, try_create, until_allowed},
    grant_rights,
    shoot_states::owned_shoots,
};

/// Longer than garden-controller-manager takes for a change on a slow machine.
const SOON: Duration = Duration::from_secs(60);
const RBAC: &str = "rbac.authorization.k8s.io";
const RESERVED: &str = "are reserved for the rights of seeds; use other names and labels";

fn role(name: &str, labels: &Value) -> Role {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}, "rules": []})).unwrap()
}

fn binding(name: &str, kind: &str, role: &str, labels: &Value) -> RoleBinding {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "member"}],
    }))
    .unwrap()
}

/// A member of a project prepares the role that garden-controller-manager fills, binds a role of a seed, or
/// takes the binding of a seed away.
pub async fn a_member_grafts_no_right_on_those_of_seeds(garden: &Garden) {
    let _controllers = owned_shoots(garden).await;
    let member = garden.member(NAMESPACE).await.unwrap();
    let roles: Api<Role> = Api::namespaced(member.clone(), NAMESPACE);
    let bindings: Api<RoleBinding> = Api::namespaced(member, NAMESPACE);
    let own = json!({"gardener.cloud/role": "other"});
    until_allowed(|| try_create(&roles, role("own", &own))).await;
    allowed(
        roles
            .create(&PostParams::default(), &role("own", &own))
            .await
            .map(drop),
    );
    let watched = json!({"gardener.cloud/role": "seed-rights"});
    for planted in [
        role("gardener.cloud:seed:shoot-state:later", &json!({})),
        role("gardener.cloud:seed:seed-a", &json!({})),
        role("gardener.cloud:system:seeds", &json!({})),
        role("watched", &watched),
    ] {
        refused(
            roles.create(&PostParams::default(), &planted).await.map(drop),
            RESERVED,
        );
    }
    refused(
        garden
            .patch(&roles, "own", json!({"metadata": {"labels": watched}}))
            .await,
        RESERVED,
    );
    for planted in [
        binding("gardener.cloud:seed:seed-c", "Role", "own", &json!({})),
        binding("watched", "Role", "own", &watched),
    ] {
        refused(
            bindings.create(&PostParams::default(), &planted).await.map(drop),
            RESERVED,
        );
    }
    // garden-controller-manager has made the binding of seed-a.
    let of_seed = "gardener.cloud:seed:seed-a";
    let deleted = bindings.delete(of_seed, &DeleteParams::default()).await;
    refused(deleted.map(drop), RESERVED);
    // RBAC refuses to write a binding with more rights than the member has, before a policy is asked.
    let words = "attempting to grant RBAC permissions not currently held";
    for name in [
        "gardener.cloud:seed:seed-a:garden-dev",
        "gardener.cloud:system:seeds",
    ] {
        let grafted = binding("mine", "ClusterRole", name, &json!({}));
        let bound = bindings.create(&PostParams::default(), &grafted).await;
        refused(bound.map(drop), words);
    }
    let stolen = json!({"subjects": [{"apiGroup": RBAC, "kind": "User", "name": "member"}]});
    refused(garden.patch(&bindings, of_seed, stolen).await, words);
}

/// The name of a ServiceAccount exempts nobody: members create ServiceAccounts in their namespace.
pub async fn a_service_account_of_a_known_name_is_not_exempt(garden: &Garden) {
    let member = garden.member(NAMESPACE).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(member.clone(), NAMESPACE);
    let mut account = ServiceAccount::default();
    account.metadata.name = Some("garden-controller-manager".into());
    until_allowed(|| try_create(&accounts, account.clone())).await;
    garden
        .bring(&json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "namesake", "namespace": NAMESPACE},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "garden-controller-manager", "namespace": NAMESPACE}],
        }))
        .await
        .unwrap();
    let namesake = garden
        .client(
            &format!("system:serviceaccount:{NAMESPACE}:garden-controller-manager"),
            &[],
        )
        .await;
    let roles: Api<Role> = Api::namespaced(namesake, NAMESPACE);
    let planted = role("gardener.cloud:seed:seed-c", &json!({}));
    garden::until_refused("may not write", || try_create(&roles, planted.clone())).await;
    refused(
        roles.create(&PostParams::default(), &planted).await.map(drop),
        "may not write",
    );
}

/// RBAC binds rights to the name of a seed's user. A certificate without the group of seeds meets the same
/// policies.
pub async fn a_certificate_without_the_group_meets_the_policies(garden: &Garden) {
    let _controllers = owned_shoots(garden).await;
    let ungrouped = garden.client("gardener.cloud:system:seed:seed-a", &[]).await;
    let states: Api<ShootState> = Api::namespaced(ungrouped, NAMESPACE);
    let timestamp =
        json!({"metadata": {"annotations": {"gardener.cloud/timestamp": "2026-01-01T00:00:00Z"}}});
    until_allowed(|| garden::try_patch(&states, "going", &timestamp)).await;
    allowed(garden.patch(&states, "going", timestamp).await);
    refused(
        garden
            .patch(&states, "going", json!({"metadata": {"finalizers": ["x/y"]}}))
            .await,
        "it writes only annotation gardener.cloud/timestamp",
    );
}

/// The gardenlet reads the Secret of a binding with its own rights.
pub async fn a_binding_names_a_secret_that_its_author_may_read(garden: &Garden) {
    garden.secret("cloud", "Opaque").await;
    let author = garden.writer_of_bindings(NAMESPACE).await.unwrap();
    let bindings: Api<SecretBinding> = Api::namespaced(author.clone(), NAMESPACE);
    until_allowed(|| try_create(&bindings, secret_binding("own", NAMESPACE, "cloud"))).await;
    for binding in [
        secret_binding("own", NAMESPACE, "cloud"),
        secret_binding("near", "", "cloud"),
    ] {
        allowed(bindings.create(&PostParams::default(), &binding).await.map(drop));
    }
    let words = "names Secret garden/cloud, which writer-of-bindings may not read";
    let foreign = secret_binding("foreign", "garden", "cloud");
    refused(
        bindings.create(&PostParams::default(), &foreign).await.map(drop),
        words,
    );
    let credentials: Api<api::security::CredentialsBinding> = Api::namespaced(author, NAMESPACE);
    let foreign = serde_json::from_value(json!({
        "metadata": {"name": "foreign"}, "provider": {"type": "local"},
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "cloud", "namespace": "garden"},
    }))
    .unwrap();
    refused(
        credentials
            .create(&PostParams::default(), &foreign)
            .await
            .map(drop),
        words,
    );
}

/// An editor of Shoots, without the right to `shoots/binding`, places a new Shoot and moves none.
pub async fn an_editor_of_shoots_moves_none(garden: &Garden) {
    let editor: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await.unwrap(), NAMESPACE);
    garden
        .shoot("edited", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    until_allowed(|| garden::try_patch(&editor, "edited", &label)).await;
    let to_b = json!({"spec": {"seedName": "seed-b"}});
    refused(
        garden.patch(&editor, "edited", to_b.clone()).await,
        "to move a shoot takes the right to update shoots/binding",
    );
    // The answer tells about a seed.
    let dry_run = json!({"metadata": {"annotations": {"migration.gardener.cloud/dry-run": "seed-b"}}});
    refused(
        garden.patch(&editor, "edited", dry_run.clone()).await,
        "may not ask for a dry run",
    );
    garden.allow_moves_to_editor(NAMESPACE).await.unwrap();
    until_allowed(|| garden::try_patch(&editor, "edited", &to_b)).await;
    allowed(garden.patch(&editor, "edited", to_b).await);
    allowed(garden.patch(&editor, "edited", dry_run).await);
}

/// garden-controller-manager creates and deletes namespaces of projects and seeds, and no other namespace.
pub async fn garden_controller_manager_takes_no_other_namespace(garden: &Garden) {
    let namespaces: Api<Namespace> = Api::all(garden.manager.clone());
    for name in ["garden", "gardener-system-seed-lease"] {
        let deleted = namespaces.delete(name, &DeleteParams::default()).await;
        refused(deleted.map(drop), "may not delete namespace");
    }
    let words = "may not give namespace";
    for (name, change) in [
        (
            "kube-system",
            json!({"labels": {"project.gardener.cloud/name": "dev"}}),
        ),
        ("kube-system", json!({"labels": {"gardener.cloud/role": "seed"}})),
        // The mark is the proof that garden-controller-manager created the namespace.
        (
            "kube-system",
            json!({"annotations": {"project.gardener.cloud/made-for-uid": "u"}}),
        ),
        (
            "kube-system",
            json!({"annotations": {"project.gardener.cloud/made-for-uid": "u"},
                "labels": {"project.gardener.cloud/name": "dev", "gardener.cloud/role": "project"}}),
        ),
        (
            NAMESPACE,
            json!({"labels": {"project.gardener.cloud/name": "other"}}),
        ),
        (
            NAMESPACE,
            json!({"annotations": {"confirmation.gardener.cloud/deletion": "true"}}),
        ),
    ] {
        let patch = json!({"metadata": change});
        refused(garden.patch(&namespaces, name, patch).await, words);
    }
    it_owns_no_other_namespace(garden, &namespaces).await;
}

/// The garbage collector deletes a namespace whose owner does not exist.
async fn it_owns_no_other_namespace(garden: &Garden, namespaces: &Api<Namespace>) {
    let of_seed = "seed-seed-c";
    let metadata = json!({"name": of_seed, "labels": {"gardener.cloud/role": "seed"}});
    garden
        .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
        .await
        .unwrap();
    let owned_by = |kind: &str, name: &str| {
        let owner =
            json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "name": name, "uid": "u"});
        json!({"metadata": {"ownerReferences": [owner]}})
    };
    for (name, patch) in [
        ("kube-system", owned_by("Seed", "seed-c")),
        (NAMESPACE, owned_by("Project", "dev")),
        (of_seed, owned_by("Seed", "seed-b")),
        (of_seed, owned_by("Project", "seed-c")),
        (of_seed, json!({"metadata": {"finalizers": ["x/y"]}})),
    ] {
        refused(
            garden.patch(namespaces, name, patch).await,
            "may not change owners or finalizers of namespace",
        );
    }
    allowed(garden::try_patch(namespaces, of_seed, &owned_by("Seed", "seed-c")).await);
    it_restores_labels_of_its_own_namespaces(garden, namespaces).await;
}

/// Lost labels come back in a namespace with the mark of its creation, and in no other namespace.
async fn it_restores_labels_of_its_own_namespaces(garden: &Garden, namespaces: &Api<Namespace>) {
    let mark = json!({"project.gardener.cloud/made-for-uid": "u"});
    for (name, annotations) in [("garden-made", mark), ("garden-given", json!({}))] {
        let metadata = json!({"name": name, "annotations": annotations});
        garden
            .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
            .await
            .unwrap();
    }
    let labels = json!({"project.gardener.cloud/name": "made", "gardener.cloud/role": "project"});
    let restored = json!({"metadata": {"labels": labels}});
    let words = "may not give namespace";
    refused(
        garden::try_patch(namespaces, "garden-given", &restored).await,
        words,
    );
    allowed(garden.patch(namespaces, "garden-made", restored).await);
    for change in [
        json!({"labels": {"project.gardener.cloud/name": "other"}}),
        json!({"labels": {"project.gardener.cloud/name": null}}),
        json!({"annotations": {"project.gardener.cloud/made-for-uid": null}}),
    ] {
        let patch = json!({"metadata": change});
        refused(garden::try_patch(namespaces, "garden-made", &patch).await, words);
    }
}

/// Kubernetes revokes no certificate. An operator refuses the registration of a removed seed by a label.
pub async fn a_removed_seed_registers_no_seed_again(garden: &Garden) {
    let group = ["gardener.cloud:system:seeds"];
    let gone = garden
        .client("gardener.cloud:system:seed:seed-gone", &group)
        .await;
    let ungrouped = garden.client("gardener.cloud:system:seed:seed-gone", &[]).await;
    let later = garden
        .client("gardener.cloud:system:seed:seed-later", &group)
        .await;
    let register = async |client: &kube::Client, name: &'static str| {
        let seeds: Api<Seed> = Api::all(client.clone());
        garden::try_apply(&seeds, name, garden::seed(name)).await
    };
    let words = "may not register Seed seed-gone: namespace seed-seed-gone has label";
    // The label is there since the garden was started.
    refused(register(&gone, "seed-gone").await, words);
    refused(register(&ungrouped, "seed-gone").await, "cannot patch resource");
    allowed(register(&later, "seed-later").await);
    let manager: Api<Namespace> = Api::all(garden.manager.clone());
    let without = json!({"metadata": {"labels": {"gardener.cloud/seed-registration": null}}});
    refused(
        garden.patch(&manager, "seed-seed-gone", without.clone()).await,
        "change label gardener.cloud/seed-registration",
    );
    let operators: Api<Namespace> = Api::all(garden.administrator());
    garden.patch(&operators, "seed-seed-gone", without).await.unwrap();
    let seeds: Api<Seed> = Api::all(gone.clone());
    until_allowed(|| garden::try_apply(&seeds, "seed-gone", garden::seed("seed-gone"))).await;
    allowed(register(&gone, "seed-gone").await);
}

/// `null` names no seed: a Shoot on a seed is never without the name of a seed.
pub async fn a_seed_name_of_null_is_no_name(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot("placed", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let emptied = json!([{"op": "replace", "path": "/spec/seedName", "value": null}]);
    let patch: Patch<Shoot> = Patch::Json(serde_json::from_value(emptied).unwrap());
    let outcome = shoots.patch("placed", &PatchParams::default(), &patch).await;
    refused(outcome.map(drop), "cannot be removed once");
}

/// A RoleBinding from before the policy has the name of the binding of a seed, and a different role. Nobody
/// can change the roleRef, so the seed would never get its rights.
pub async fn a_planted_binding_blocks_no_seed(garden: &Garden) {
    let _controllers = grant_rights(garden);
    let bindings: Api<RoleBinding> = garden.admin(NAMESPACE);
    let name = "gardener.cloud:seed:seed-c";
    let planted = binding(name, "ClusterRole", "view", &json!({}));
    bindings.create(&PostParams::default(), &planted).await.unwrap();
    garden
        .shoot("blocked", "seed-c", Some("seed-c"), ("Create", "Succeeded"))
        .await;
    let replaced = until_bound(&bindings, name, "gardener.cloud:seed:seed-c:garden-dev").await;
    let subjects = replaced.subjects.unwrap_or_default();
    let users: Vec<_> = subjects.iter().map(|subject| subject.name.as_str()).collect();
    assert_eq!(users, ["gardener.cloud:system:seed:seed-c"]);
}

/// A restore tool labels each object that the tool writes. garden-controller-manager may write no role of a
/// seed with a further label, so the role would never follow the shoots.
pub async fn a_further_label_blocks_no_seed(garden: &Garden) {
    let _controllers = grant_rights(garden);
    let roles: Api<ClusterRole> = Api::all(garden.administrator());
    let name = "gardener.cloud:seed:seed-c:garden-dev";
    let succeeded = ("Create", "Succeeded");
    garden.shoot("early", "seed-c", Some("seed-c"), succeeded).await;
    until_named(&roles, name, "early").await;
    let labelled = json!({"metadata": {"labels": {"restored-by": "x"}}});
    garden.patch(&roles, name, labelled).await.unwrap();
    garden.shoot("late", "seed-c", Some("seed-c"), succeeded).await;
    let role = until_named(&roles, name, "late").await;
    let labels: Vec<_> = role.metadata.labels.unwrap_or_default().into_keys().collect();
    assert_eq!(labels, ["gardener.cloud/role"]);
}

/// Waits until the ClusterRole names an object.
async fn until_named(roles: &Api<ClusterRole>, name: &str, object: &str) -> ClusterRole {
    eventually(&format!("{name} names {object}"), SOON, || async {
        let found = roles.get(name).await.map_err(|error| error.to_string())?;
        let granted = found.rules.clone().unwrap_or_default();
        let mut objects = granted
            .iter()
            .flat_map(|rule| rule.resource_names.iter().flatten());
        if objects.any(|found| found == object) {
            Ok(found)
        } else {
            Err(format!("{granted:?}"))
        }
    })
    .await
    .unwrap()
}

/// An administrator takes a namespace from a project: the seed keeps no right to the keys in the namespace.
pub async fn a_namespace_without_a_project_has_no_rights_of_seeds(garden: &Garden) {
    let _controllers = grant_rights(garden);
    let (namespace, project) = ("garden-left", "project.gardener.cloud/name");
    let labels = json!({project: "left", "gardener.cloud/role": "project"});
    let metadata = json!({"name": namespace, "labels": labels});
    garden
        .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
        .await
        .unwrap();
    garden
        .shoot_in(
            namespace,
            "left",
            "seed-a",
            Some("seed-a"),
            ("Create", "Succeeded"),
        )
        .await;
    let bindings: Api<RoleBinding> = garden.admin(namespace);
    let roles: Api<ClusterRole> = Api::all(garden.administrator());
    let (name, role) = (
        "gardener.cloud:seed:seed-a",
        "gardener.cloud:seed:seed-a:garden-left",
    );
    until_bound(&bindings, name, role).await;
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let unlabelled = json!({"metadata": {"labels": {project: null}}});
    garden.patch(&namespaces, namespace, unlabelled).await.unwrap();
    eventually("the grants are gone", SOON, || async {
        let error = |error: kube::Error| error.to_string();
        let bound = bindings.get_opt(name).await.map_err(error)?.is_some();
        let granted = roles.get_opt(role).await.map_err(error)?.is_some();
        match (bound, granted) {
            (false, false) => Ok(()),
            there => Err(format!("{there:?}")),
        }
    })
    .await
    .unwrap();
}

/// Waits until the RoleBinding refers to this role.
async fn until_bound(bindings: &Api<RoleBinding>, name: &str, role: &str) -> RoleBinding {
    eventually(&format!("{name} binds {role}"), SOON, || async {
        let found = bindings.get(name).await.map_err(|error| error.to_string())?;
        if found.role_ref.name == role {
            Ok(found)
        } else {
            Err(found.role_ref.name)
        }
    })
    .await
    .unwrap()
}

/// RBAC binds the rights of a seed to the user name, so a policy for the group alone can be escaped.
#[test]
fn each_policy_for_seeds_applies_to_the_prefix_or_the_group() {
    let group = "'gardener.cloud:system:seeds' in request.userInfo.groups";
    let either = format!("{group} || request.userInfo.username.startsWith('gardener.cloud:system:seed:')");
    let mut policies = 0;
    for (file, text) in garden::files_of_policies() {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let by_group = text.matches(group).count();
        assert_eq!(by_group, text.matches(either.as_str()).count(), "{file}");
        policies += by_group;
    }
    assert!(policies > 10, "only {policies} policies name the group of seeds");
}

/// Each policy that names the account of garden-controller-manager also applies to accounts with its rights.
#[test]
fn each_policy_for_garden_controller_manager_applies_to_the_name_or_the_right() {
    let name = "request.userInfo.username.matches('^system:serviceaccount:[^:]+:garden-controller-manager$')";
    let ask = "authorizer.group('core.gardener.cloud').resource('shoots').subresource('ownership')";
    let either =
        format!("{name} || {ask}.check('meet-policies').allowed() && !{ask}.check('repair').allowed()");
    let mut policies = 0;
    for (file, text) in garden::files_of_policies() {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let by_name = text.matches(name).count();
        assert_eq!(by_name, text.matches(either.as_str()).count(), "{file}");
        policies += by_name;
    }
    assert!(
        policies > 5,
        "only {policies} policies name garden-controller-manager"
    );
}

/// A member of a project may create a ServiceAccount of any name. The policies for garden-controller-manager
/// match the name, and only restrict.
#[test]
fn no_policy_exempts_an_account_by_name() {
    for (file, text) in garden::files_of_policies() {
        let names_accounts = text.contains("system:serviceaccount");
        let restricts = file.ends_with("garden-controller-manager.yaml");
        assert!(!names_accounts || restricts, "{file} names an account");
    }
}
