//! A seed reads the Secrets of its own shoots and its own credentials, each for as long as there is a reason
//! (threats.md 6, 8, 19).

use std::{future::Future, pin::Pin, time::Duration};

use api::gardencore::{BackupEntry, Seed, Shoot};
use k8s_openapi::api::{core::v1::Secret, rbac::v1::ClusterRole};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, refused},
    grant_rights,
};

const CANNOT_READ: &str = "cannot get resource \"secrets\"";
/// Namespace of a project that was deleted and created again.
const LATE: &str = "garden-late";
/// Namespace of a further project.
const FAR: &str = "garden-far";
/// Many times a second, also on a busy machine.
const SOON: Duration = Duration::from_secs(60);
const OF_A: &str = "seed-seed-a";
const OF_B: &str = "seed-seed-b";

fn secrets(client: &Client, namespace: &str) -> Api<Secret> {
    Api::namespaced(client.clone(), namespace)
}

type Reading = Pin<Box<dyn Future<Output = Result<(), kube::Error>> + Send>>;

fn read(client: &Client, namespace: &str, name: &'static str) -> Reading {
    let api = secrets(client, namespace);
    Box::pin(async move { api.get(name).await.map(drop) })
}

async fn becomes_readable(client: &Client, namespace: &str, name: &'static str) {
    garden::until_allowed(|| read(client, namespace, name)).await;
    allowed(read(client, namespace, name).await);
}

async fn becomes_unreadable(client: &Client, namespace: &str, name: &'static str) {
    garden::until_refused(CANNOT_READ, || read(client, namespace, name)).await;
    refused(read(client, namespace, name).await, CANNOT_READ);
}

async fn namespace(garden: &Garden, name: &str, labels: &Value) {
    let metadata = json!({"name": name, "labels": labels});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    garden.bring(&namespace).await.unwrap();
}

async fn secret(garden: &Garden, namespace: &str, name: &str) {
    let metadata = json!({"name": name, "namespace": namespace});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
    garden.bring(&secret).await.unwrap();
}

async fn binding(garden: &Garden, name: &str, namespace: &str, secret: &str) {
    let reference = json!({"apiVersion": "v1", "kind": "Secret", "namespace": namespace, "name": secret});
    let binding = json!({
        "apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "provider": {"type": "local"}, "credentialsRef": reference,
    });
    garden.bring(&binding).await.unwrap();
}

fn bindings(garden: &Garden) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("security.gardener.cloud", "v1alpha1", "CredentialsBinding");
    let kind = ApiResource::from_gvk_with_plural(&kind, "credentialsbindings");
    Api::namespaced_with(garden.administrator(), NAMESPACE, &kind)
}

/// A Shoot with the binding of the same name as the Shoot.
async fn shoot(garden: &Garden, name: &str, seed: &str, status: Option<Value>) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let mut body = garden::shoot_with_pools(name, "local", &json!([]));
    body["spec"]["seedName"] = json!(seed);
    body["spec"]["credentialsBindingName"] = json!(name);
    garden.apply(&shoots, name, body).await.unwrap();
    if let Some(status) = status {
        garden.status(&shoots, name, status).await;
    }
}

/// Shoots of both seeds, each with a binding and a Secret.
async fn bound_shoots(garden: &Garden) {
    namespace(
        garden,
        FAR,
        &json!({"project.gardener.cloud/name": "far", "gardener.cloud/role": "project"}),
    )
    .await;
    for (name, seed, host, home) in [
        ("bound", "seed-a", Some("seed-a"), NAMESPACE),
        ("other", "seed-b", Some("seed-b"), NAMESPACE),
        ("incoming", "seed-a", Some("seed-b"), NAMESPACE),
        ("wished", "seed-a", None, NAMESPACE),
        ("remote", "seed-a", Some("seed-a"), FAR),
        ("misplaced", "seed-a", Some("seed-a"), "garden"),
    ] {
        secret(garden, home, name).await;
        binding(garden, name, home, name).await;
        shoot(garden, name, seed, host.map(|host| json!({"seedName": host}))).await;
    }
}

pub async fn a_seed_reads_the_secrets_of_its_own_shoots_alone(garden: &Garden) {
    bound_shoots(garden).await;
    for name in ["unrelated", "bound.kubeconfig", "other.kubeconfig"] {
        secret(garden, NAMESPACE, name).await;
    }
    let _controllers = grant_rights(garden);
    let (a, b) = (&garden.seed_a, &garden.seed_b);
    for (client, namespace, name) in [
        (a, NAMESPACE, "bound"),
        (a, NAMESPACE, "bound.kubeconfig"),
        (a, FAR, "remote"),
        (b, NAMESPACE, "other"),
        (b, NAMESPACE, "incoming"),
        (b, NAMESPACE, "other.kubeconfig"),
    ] {
        becomes_readable(client, namespace, name).await;
    }
    for (client, namespace, name) in [
        (a, NAMESPACE, "other"),
        (a, NAMESPACE, "other.kubeconfig"),
        // Not only because spec.seedName names the seed.
        (a, NAMESPACE, "incoming"),
        (a, NAMESPACE, "wished"),
        (a, NAMESPACE, "unrelated"),
        // A namespace of no project.
        (a, "garden", "misplaced"),
        (a, "kube-system", "unrelated"),
        (b, NAMESPACE, "bound"),
        (b, FAR, "remote"),
    ] {
        refused(read(client, namespace, name).await, CANNOT_READ);
    }
    let all = secrets(a, NAMESPACE).list(&ListParams::default()).await;
    refused(all.map(drop), "cannot list resource \"secrets\"");
    let change = json!({"data": {"x": "eA=="}});
    let patched = garden.patch(&secrets(a, NAMESPACE), "bound", change).await;
    refused(patched, "\"bound\" is forbidden");
    a_right_ends_with_its_reason(garden).await;
}

/// A hand-over takes the right to the Secret along, and so does the end of the binding.
async fn a_right_ends_with_its_reason(garden: &Garden) {
    let (a, b) = (&garden.seed_a, &garden.seed_b);
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .status(&shoots, "bound", json!({"seedName": "seed-b"}))
        .await;
    becomes_readable(b, NAMESPACE, "bound").await;
    becomes_unreadable(a, NAMESPACE, "bound").await;
    becomes_unreadable(a, NAMESPACE, "bound.kubeconfig").await;
    garden
        .status(&shoots, "remote", json!({"seedName": "seed-b"}))
        .await;
    becomes_readable(b, FAR, "remote").await;
    becomes_unreadable(a, FAR, "remote").await;
    let bindings = bindings(garden);
    // A finalizer keeps the binding, and no right.
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let kept = finalizers(json!(["example.org/kept"]));
    garden.patch(&bindings, "bound", kept).await.unwrap();
    bindings.delete("bound", &DeleteParams::default()).await.unwrap();
    becomes_unreadable(b, NAMESPACE, "bound").await;
    let left = bindings.get("bound").await.unwrap();
    assert!(left.metadata.deletion_timestamp.is_some());
    let released = finalizers(Value::Null);
    garden.patch(&bindings, "bound", released).await.unwrap();
}

/// A binding outlives the namespace of the Secret. The author has no rights in a later namespace of the same
/// name.
pub async fn a_binding_from_before_the_namespace_of_its_secret_gives_no_right(garden: &Garden) {
    binding(garden, "outlived", LATE, "outlived").await;
    let bindings = bindings(garden);
    let created = bindings.get("outlived").await.unwrap().metadata;
    let created = created.creation_timestamp.unwrap().0;
    // The API server stores whole seconds.
    eventually("the next second", SOON, || async {
        let now = runtime::clock::now();
        if now.as_second() > created.as_second() {
            return Ok(());
        }
        Err(format!("{now}"))
    })
    .await
    .unwrap();
    let labels = json!({"project.gardener.cloud/name": "late", "gardener.cloud/role": "project"});
    namespace(garden, LATE, &labels).await;
    binding(garden, "renewed", LATE, "renewed").await;
    for name in ["outlived", "renewed"] {
        secret(garden, LATE, name).await;
        shoot(garden, name, "seed-a", Some(json!({"seedName": "seed-a"}))).await;
    }
    let _controllers = grant_rights(garden);
    let seed = &garden.seed_a;
    // A single ClusterRole names both Secrets.
    becomes_readable(seed, LATE, "renewed").await;
    refused(read(seed, LATE, "outlived").await, CANNOT_READ);
    // The policy checks the author of a new binding.
    bindings
        .delete("outlived", &DeleteParams::default())
        .await
        .unwrap();
    binding(garden, "outlived", LATE, "outlived").await;
    becomes_readable(seed, LATE, "outlived").await;
}

/// The credentials of a seed, and of the former seed whose bucket has the data of a shoot.
pub async fn a_seed_reads_its_own_credentials(garden: &Garden) {
    for (home, seed) in [(OF_A, "seed-a"), (OF_B, "seed-b")] {
        namespace(garden, home, &json!({"gardener.cloud/role": "seed"})).await;
        secret(garden, home, "backup").await;
        secret(garden, home, "dns").await;
        let mut bucket = garden::bucket(&format!("bucket-of-{seed}"), seed);
        // Each bucket names the Secret of seed-b: the bucket of seed-a names no own Secret.
        bucket["spec"]["credentialsRef"] = json!({"kind": "Secret", "namespace": OF_B, "name": "backup"});
        garden.bring(&bucket).await.unwrap();
    }
    let _controllers = grant_rights(garden);
    let (a, b) = (&garden.seed_a, &garden.seed_b);
    for (client, own, foreign) in [(a, OF_A, OF_B), (b, OF_B, OF_A)] {
        becomes_readable(client, own, "backup").await;
        becomes_readable(client, own, "dns").await;
        refused(read(client, foreign, "backup").await, CANNOT_READ);
        let all = secrets(client, own).list(&ListParams::default()).await;
        refused(all.map(drop), "cannot list resource \"secrets\"");
    }
    // A former seed that does not release its entry, and the entry of a restore from seed-b.
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    garden.entry("unreleased", "seed-b", "bucket-of-seed-b").await;
    garden
        .status(&entries, "unreleased", json!({"seedName": "seed-a"}))
        .await;
    let restored = "source-restored";
    garden.entry(restored, "seed-a", "bucket-of-seed-b").await;
    becomes_readable(a, OF_B, "backup").await;
    refused(read(a, OF_B, "dns").await, CANNOT_READ);
    // The deletion of the backups needs the credentials.
    garden.finalizer(&entries, restored).await;
    entries.delete(restored, &DeleteParams::default()).await.unwrap();
    allowed(read(a, OF_B, "backup").await);
    let released = json!({"metadata": {"finalizers": null}});
    garden.patch(&entries, restored, released).await.unwrap();
    becomes_unreadable(a, OF_B, "backup").await;
    // The bucket of seed-a names no Secret of seed-a, so a restore from seed-a gives seed-b no right.
    garden.entry("source-later", "seed-b", "bucket-of-seed-a").await;
    secret(garden, NAMESPACE, "later.kubeconfig").await;
    shoot(garden, "later", "seed-b", Some(json!({"seedName": "seed-b"}))).await;
    becomes_readable(b, NAMESPACE, "later.kubeconfig").await;
    refused(read(b, OF_A, "backup").await, CANNOT_READ);
}

/// The gardenlet writes its own Seed, and would get any Secret of the garden by the reference.
pub async fn a_seed_names_no_secret_outside_of_its_namespace(garden: &Garden) {
    let (gardenlet, seeds): (Api<Seed>, Api<Seed>) =
        (Api::all(garden.seed_a.clone()), Api::all(garden.administrator()));
    let backup = |namespace: &str| {
        let reference = json!({"kind": "Secret", "namespace": namespace, "name": "backup"});
        json!({"spec": {"backup": {"provider": "local", "credentialsRef": reference}}})
    };
    for foreign in ["garden", "kube-system", NAMESPACE, OF_B] {
        refused(
            garden.patch(&gardenlet, "seed-a", backup(foreign)).await,
            "a seed reads its own credentials only in namespace seed-seed-a",
        );
    }
    allowed(garden::try_patch(&gardenlet, "seed-a", &backup(OF_A)).await);
    // The rule also holds for administrators, who learn about the namespace by the refusal.
    let dns = |namespace: &str| {
        let reference = json!({"kind": "Secret", "namespace": namespace, "name": "dns"});
        let domain = json!({"type": "local", "domain": "c.example.test", "credentialsRef": reference});
        json!({"spec": {"dns": {"defaults": [domain]}}})
    };
    refused(
        garden.patch(&seeds, "seed-c", dns("garden")).await,
        "may not name Secret garden/dns",
    );
    allowed(garden::try_patch(&seeds, "seed-c", &dns("seed-seed-c")).await);
}

/// The seed of a Shoot reads the Secret of the Shoot's DNS provider.
pub async fn the_author_of_a_shoot_may_read_the_secret_of_its_dns(garden: &Garden) {
    secret(garden, NAMESPACE, "zone").await;
    garden
        .shoot("named", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let editor: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await.unwrap(), NAMESPACE);
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    garden::until_allowed(|| garden::try_patch(&editor, "named", &label)).await;
    let reference = json!({"apiVersion": "v1", "kind": "Secret", "name": "zone"});
    let words = "names Secret garden-dev/zone in spec.dns.providers, which editor-of-shoots may not read";
    for provider in [
        json!({"type": "local", "secretName": "zone"}),
        json!({"type": "local", "credentialsRef": reference}),
    ] {
        let change = json!({"spec": {"dns": {"providers": [provider]}}});
        refused(garden.patch(&editor, "named", change).await, words);
    }
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let change = json!({"spec": {"dns": {"providers": [{"type": "local", "secretName": "zone"}]}}});
    allowed(garden.patch(&shoots, "named", change).await);
    // A reference that stays needs no right.
    allowed(garden.patch(&editor, "named", label).await);
    let _controllers = grant_rights(garden);
    becomes_readable(&garden.seed_a, NAMESPACE, "zone").await;
}

/// garden-controller-manager grants rights to Secrets that it cannot read. The policy alone bounds them.
pub async fn garden_controller_manager_grants_named_secrets_alone(garden: &Garden) {
    let roles: Api<ClusterRole> = Api::all(garden.manager.clone());
    let role = |name: &str, more: Value| -> ClusterRole {
        let labels = json!({"gardener.cloud/role": "seed-rights"});
        let mut body = json!({"metadata": {"name": name, "labels": labels}});
        json_patch::merge(&mut body, &more);
        serde_json::from_value(body).unwrap()
    };
    let granting = |resource: &str, names: Value, verbs: Value| json!({"rules": [{"apiGroups": [""], "resources": [resource], "resourceNames": names, "verbs": verbs}]});
    let (of_project, own) = (
        "gardener.cloud:seed:seed-x:garden-dev",
        "gardener.cloud:seed:seed-x:seed-seed-x",
    );
    for (name, rules) in [
        (of_project, granting("secrets", json!(["cloud"]), json!(["get"]))),
        (
            of_project,
            granting(
                "secrets",
                json!(["x.kubeconfig"]),
                json!(["get", "patch", "delete"]),
            ),
        ),
        (own, granting("secrets", json!([]), json!(["get"]))),
    ] {
        allowed(garden::try_create(&roles, role(name, rules)).await);
    }
    let words = "it grants rights to seeds alone";
    let mut aggregated = granting("secrets", json!(["cloud"]), json!(["get"]));
    let selector = json!({"matchLabels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}});
    aggregated["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
    for (name, rules) in [
        (of_project, granting("secrets", json!([]), json!(["get"]))),
        (
            "gardener.cloud:seed:seed-x:seed-seed-y",
            granting("secrets", json!([]), json!(["get"])),
        ),
        (own, granting("secrets", json!([]), json!(["get", "list"]))),
        (own, granting("pods", json!([]), json!(["get"]))),
        (
            of_project,
            granting("secrets", json!(["cloud"]), json!(["patch"])),
        ),
        (
            of_project,
            granting("secrets", json!(["cloud"]), json!(["watch"])),
        ),
        (
            of_project,
            granting("secrets", json!(["x.kubeconfig"]), json!(["*"])),
        ),
        (of_project, granting("secrets", json!([""]), json!(["get"]))),
        (of_project, aggregated),
    ] {
        refused(garden::try_create(&roles, role(name, rules)).await, words);
    }
    refused(read(&garden.manager, NAMESPACE, "cloud").await, CANNOT_READ);
}
