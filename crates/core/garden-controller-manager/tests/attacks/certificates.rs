//! The owner of a stolen gardenlet certificate, after an operator has withdrawn the certificate. Kubernetes
//! revokes no certificate, so all rights follow from bindings to the user name.

use std::{future::Future, pin::Pin};

use api::gardencore::{Seed, Shoot};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Namespace, Secret},
    rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding},
};
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, refused},
    grant_rights,
};

const SEED: &str = "stolen";
const USER: &str = "gardener.cloud:system:seed:stolen";
const LEASES: &str = "gardener-system-seed-lease";
const CANNOT_READ: &str = "cannot get resource \"secrets\"";
const RBAC: &str = "rbac.authorization.k8s.io";

type Reading = Pin<Box<dyn Future<Output = Result<(), kube::Error>> + Send>>;

fn read(secrets: &Api<Secret>, name: &'static str) -> Reading {
    let secrets = secrets.clone();
    Box::pin(async move { secrets.get(name).await.map(drop) })
}

/// A binding of docs/operate/install.md.
fn binding(namespace: Option<&str>, role: &str) -> Value {
    let kind = if namespace.is_some() {
        "Role"
    } else {
        "ClusterRole"
    };
    let mut metadata = json!({"name": USER});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": USER}],
    })
}

/// A Seed with a shoot and credentials of its own, and the bindings of its gardenlet.
async fn bring_seed(garden: &Garden) {
    garden.bring(&garden::seed(SEED)).await.unwrap();
    for document in [
        binding(None, "gardener.cloud:system:seeds"),
        binding(Some(LEASES), "gardener.cloud:system:seed-leases"),
        binding(Some("default"), "gardener.cloud:system:seed-events"),
        garden::seed_namespace(SEED),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dns", "namespace": "seed-stolen"}}),
    ] {
        garden.bring(&document).await.unwrap();
    }
    garden
        .shoot("robbed", SEED, Some(SEED), ("Reconcile", "Succeeded"))
        .await;
    garden.secret("robbed.kubeconfig", "Opaque").await;
}

/// The certificate alone could refuse all takeovers from the seed, by renewals of the Lease.
pub async fn a_withdrawn_certificate_has_no_rights(garden: &Garden) {
    bring_seed(garden).await;
    let _controllers = grant_rights(garden);
    // Without the group, to which the test environment binds the roles, too.
    let thief = garden.client(USER, &[]).await;
    let seeds: Api<Seed> = Api::all(thief.clone());
    let shoots: Api<Shoot> = Api::namespaced(thief.clone(), NAMESPACE);
    let leases: Api<Lease> = Api::namespaced(thief.clone(), LEASES);
    let own: Api<Secret> = Api::namespaced(thief.clone(), "seed-stolen");
    let secrets: Api<Secret> = Api::namespaced(thief.clone(), NAMESPACE);
    let lease =
        || json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": SEED}});
    garden::until_allowed(|| read(&own, "dns")).await;
    garden::until_allowed(|| read(&secrets, "robbed.kubeconfig")).await;
    allowed(read(&secrets, "robbed.kubeconfig").await);
    allowed(garden.apply(&leases, SEED, lease()).await);
    allowed(shoots.get("robbed").await.map(drop));

    // The commands of docs/operate/runbooks.md.
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let withdrawn = json!({"metadata": {"labels": {"gardener.cloud/seed-access": "withdrawn"}}});
    garden.patch(&namespaces, "seed-stolen", withdrawn).await.unwrap();
    let everywhere: Api<ClusterRoleBinding> = Api::all(garden.administrator());
    everywhere.delete(USER, &DeleteParams::default()).await.unwrap();
    for namespace in [LEASES, "default"] {
        let bindings: Api<RoleBinding> = garden.admin(namespace);
        bindings.delete(USER, &DeleteParams::default()).await.unwrap();
    }
    garden::until_refused(CANNOT_READ, || read(&own, "dns")).await;
    garden::until_refused(CANNOT_READ, || read(&secrets, "robbed.kubeconfig")).await;
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    garden::until_refused("cannot patch resource \"seeds\"", || {
        garden::try_patch(&seeds, SEED, &label)
    })
    .await;
    garden::until_refused("cannot patch resource \"leases\"", || {
        garden::try_apply(&leases, SEED, lease())
    })
    .await;
    refused(read(&own, "dns").await, CANNOT_READ);
    refused(read(&secrets, "robbed.kubeconfig").await, CANNOT_READ);
    refused(
        garden.patch(&seeds, SEED, label).await,
        "cannot patch resource \"seeds\"",
    );
    refused(
        garden.apply(&leases, SEED, lease()).await,
        "cannot patch resource \"leases\"",
    );
    refused(
        shoots.get("robbed").await.map(drop),
        "cannot get resource \"shoots\"",
    );

    // A change of the project gives no right back.
    garden
        .shoot("robbed-later", SEED, Some(SEED), ("Reconcile", "Succeeded"))
        .await;
    garden.secret("robbed-later.kubeconfig", "Opaque").await;
    garden
        .shoot("of-a", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden.secret("of-a.kubeconfig", "Opaque").await;
    let of_a: Api<Secret> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    garden::until_allowed(|| read(&of_a, "of-a.kubeconfig")).await;
    refused(
        secrets.get("robbed-later.kubeconfig").await.map(drop),
        CANNOT_READ,
    );
    // The withdrawal outlives the Seed: the namespace stays.
    let deleted = namespaces.delete("seed-stolen", &DeleteParams::default()).await;
    refused(deleted.map(drop), "withdraws the access of the seed");
}

/// The namespace of a removed Seed ends with the Seed. A Shoot or a BackupEntry may have the name of the
/// Seed for longer.
pub async fn a_removed_seed_gets_no_right(garden: &Garden) {
    const REMOVED: &str = "removed";
    let _controllers = grant_rights(garden);
    let roles: Api<ClusterRole> = Api::all(garden.administrator());
    let name = "gardener.cloud:seed:removed:garden-dev";
    let succeeded = ("Reconcile", "Succeeded");
    // The rights come with the namespace.
    garden.shoot("left-over", REMOVED, Some(REMOVED), succeeded).await;
    garden.bring(&garden::seed_namespace(REMOVED)).await.unwrap();
    garden::until_allowed(|| find(&roles, name)).await;
    allowed(find(&roles, name).await);
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let deleted = namespaces.delete("seed-removed", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
    garden::until_refused("not found", || find(&roles, name)).await;

    // A change of the project gives no right back.
    garden
        .shoot("left-later", REMOVED, Some(REMOVED), succeeded)
        .await;
    garden.shoot("beside", "seed-a", Some("seed-a"), succeeded).await;
    garden.secret("beside.kubeconfig", "Opaque").await;
    let of_a: Api<Secret> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    garden::until_allowed(|| read(&of_a, "beside.kubeconfig")).await;
    refused(roles.get(name).await.map(drop), "not found");
}

fn find(roles: &Api<ClusterRole>, name: &'static str) -> Reading {
    let roles = roles.clone();
    Box::pin(async move { roles.get(name).await.map(drop) })
}

/// A right of the group cannot be taken from a single certificate.
#[test]
fn the_chart_binds_no_right_to_all_gardenlets() {
    let charts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../charts/garden");
    let read_chart = |file: &str| std::fs::read_to_string(format!("{charts}/{file}")).unwrap();
    assert!(read_chart("values.yaml").contains("\n  bindGroup: false\n"));
    let bindings = read_chart("templates/gardenlets-bindings.yaml");
    assert!(bindings.starts_with("{{- if ((.Values.gardenlets).bindGroup) }}\n"));
    for (file, document) in garden::rights_of_charts() {
        let subjects = document["subjects"].as_array().into_iter().flatten();
        let of_group = subjects.filter(|subject| subject["kind"] == "Group").count();
        assert!(
            of_group == 0 || file.ends_with("gardenlets-bindings.yaml"),
            "{file}: {document}"
        );
    }
}
