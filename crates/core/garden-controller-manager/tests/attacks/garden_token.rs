//! A seed that creates or changes Secrets in the garden can get a token of any service account of the garden.

use api::gardencore::Shoot;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, refused},
    grant_rights,
};

const TOKEN: &str = "kubernetes.io/service-account-token";

fn token(name: &str) -> Secret {
    let metadata = json!({"name": name, "annotations": {"kubernetes.io/service-account.name": "default"}});
    serde_json::from_value(json!({"metadata": metadata, "type": TOKEN})).unwrap()
}

async fn create(client: &Client, namespace: &str, secret: &Secret) -> Result<(), kube::Error> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    secrets.create(&PostParams::default(), secret).await.map(|_| ())
}

/// The path to cluster-admin: the token controller fills the Secret, and the gardenlet reads the Secret.
pub async fn no_seed_gets_a_token_of_the_garden(garden: &Garden) {
    let cannot = "cannot create resource \"secrets\"";
    for namespace in ["kube-system", "garden", NAMESPACE] {
        refused(
            create(&garden.seed_a, namespace, &token("x.kubeconfig")).await,
            cannot,
        );
    }
    // Nor after a user has granted gardenlets more than the chart does.
    garden.grant_gardenlets("", "secrets", "create").await;
    let policy =
        "may not create Secret x.kubeconfig: garden-controller-manager makes the Secrets that it fills";
    garden::until_refused(policy, || {
        garden::try_create(
            &Api::<Secret>::namespaced(garden.seed_a.clone(), NAMESPACE),
            token("x.kubeconfig"),
        )
    })
    .await;
    for namespace in ["kube-system", "garden", NAMESPACE] {
        refused(
            create(&garden.seed_a, namespace, &token("x.kubeconfig")).await,
            policy,
        );
    }
    // A token that is there is no kubeconfig.
    garden
        .shoot("tokens", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden.secret("tokens.kubeconfig", TOKEN).await;
    let a: Api<Secret> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let data = json!({"data": {"kubeconfig": "eA=="}});
    let words = "it is none that garden-controller-manager made for a Shoot (type Opaque";
    let _controllers = grant_rights(garden);
    garden::until_refused(words, || garden::try_patch(&a, "tokens.kubeconfig", &data)).await;
    refused(garden.patch(&a, "tokens.kubeconfig", data).await, words);
}

pub async fn a_seed_fills_only_what_is_of_its_own_shoots(garden: &Garden) {
    let shoots = [
        ("filled", "seed-a", "seed-a"),
        ("theirs", "seed-b", "seed-b"),
        ("going", "seed-b", "seed-a"),
    ];
    for (name, spec, host) in shoots {
        garden
            .shoot(name, spec, Some(host), ("Reconcile", "Succeeded"))
            .await;
        garden.secret(&format!("{name}.kubeconfig"), "Opaque").await;
    }
    garden.secret("cloud", "Opaque").await;
    let a: Api<Secret> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<Secret> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let fill = || {
        json!({"data": {"kubeconfig": "eA==", "ca.crt": "eA=="},
            "metadata": {"labels": {"checksum-of-config": "c", "valid-until-time": "1"}}})
    };
    // The policies hold also where gardenlets have more rights than garden-controller-manager grants.
    garden.grant_gardenlets("", "secrets", "patch").await;
    garden::until_allowed(|| garden::try_patch(&a, "going.kubeconfig", &fill())).await;
    let not_yet = "the shoot going is on seed \"seed-a\"";
    garden::until_refused(not_yet, || garden::try_patch(&b, "going.kubeconfig", &fill())).await;
    allowed(garden.patch(&a, "filled.kubeconfig", fill()).await);
    allowed(garden.patch(&a, "going.kubeconfig", fill()).await);
    refused(
        garden.patch(&a, "theirs.kubeconfig", fill()).await,
        "the shoot theirs is on seed \"seed-b\"",
    );
    // The destination of a shoot has no rights before the hand-over.
    refused(
        garden.patch(&b, "going.kubeconfig", fill()).await,
        "the shoot going is on seed \"seed-a\"",
    );
    refused(
        garden.patch(&a, "cloud", fill()).await,
        "it writes only Secrets <shoot>.kubeconfig of projects",
    );
    for (change, words) in [
        (
            json!({"data": {"token": "eA=="}}),
            "may not change the data of Secret filled.kubeconfig but for",
        ),
        (
            json!({"metadata": {"labels": {"gardener.cloud/role": "x"}}}),
            "of its metadata it writes only labels",
        ),
        (
            json!({"metadata": {"annotations": {"x": "y"}}}),
            "of its metadata it writes only labels",
        ),
        (
            json!({"metadata": {"finalizers": ["x/y"]}}),
            "of its metadata it writes only labels",
        ),
        (
            json!({"metadata": {"ownerReferences": null}}),
            "of its metadata it writes only labels",
        ),
    ] {
        refused(garden.patch(&a, "filled.kubeconfig", change).await, words);
    }
    refused(
        a.list(&ListParams::default()).await.map(|_| ()),
        "cannot list resource \"secrets\"",
    );
    garden.grant_gardenlets("", "secrets", "delete").await;
    garden::until_allowed(|| garden::try_delete(&a, "filled.kubeconfig")).await;
    refused(
        a.delete("theirs.kubeconfig", &DeleteParams::default())
            .await
            .map(|_| ()),
        "the shoot theirs is on seed \"seed-b\"",
    );
    allowed(
        a.delete("filled.kubeconfig", &DeleteParams::default())
            .await
            .map(|_| ()),
    );
}

/// No host could replace the data of an immutable Secret, so a planted program would stay after each move.
pub async fn a_seed_makes_no_kubeconfig_immutable(garden: &Garden) {
    garden
        .shoot("frozen", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden.secret("frozen.kubeconfig", "Opaque").await;
    garden.grant_gardenlets("", "secrets", "patch").await;
    let a: Api<Secret> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let fill = json!({"data": {"kubeconfig": "eA=="}});
    garden::until_allowed(|| garden::try_patch(&a, "frozen.kubeconfig", &fill)).await;
    let words = "may not make Secret frozen.kubeconfig immutable";
    for change in [
        json!({"immutable": true}),
        json!({"immutable": true, "data": {"kubeconfig": "eQ=="}}),
    ] {
        refused(garden.patch(&a, "frozen.kubeconfig", change).await, words);
    }
    for same in [json!({"immutable": null}), json!({"immutable": false}), fill] {
        allowed(garden.patch(&a, "frozen.kubeconfig", same).await);
    }
}

/// The right of garden-controller-manager to create Secrets is no path to a token either.
pub async fn garden_controller_manager_makes_no_tokens_either(garden: &Garden) {
    let words = "it makes only empty Secrets <shoot>.kubeconfig of type Opaque, owned by their Shoot";
    refused(
        create(&garden.manager, "kube-system", &token("x.kubeconfig")).await,
        words,
    );
    let secret = |body: Value| -> Secret { serde_json::from_value(body).unwrap() };
    let owners =
        json!([{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": "x", "uid": "u"}]);
    let metadata = json!({"name": "x.kubeconfig", "ownerReferences": owners});
    let filled = secret(json!({"metadata": metadata, "data": {"kubeconfig": "eA=="}}));
    refused(create(&garden.manager, NAMESPACE, &filled).await, words);
    allowed(create(&garden.manager, NAMESPACE, &secret(json!({"metadata": metadata}))).await);
    // A dry run in the namespace of a seed shows whether a Secret has the name, and creates nothing.
    let home = "seed-seed-c";
    let of_seed: Api<Secret> = Api::namespaced(garden.manager.clone(), home);
    let empty = || secret(json!({"metadata": {"name": "x"}}));
    allowed(garden::try_create(&of_seed, empty()).await);
    refused(create(&garden.manager, home, &empty()).await, words);
    let full = secret(json!({"metadata": {"name": "x"}, "data": {"key": "eA=="}}));
    for body in [full, token("x")] {
        refused(garden::try_create(&of_seed, body).await, words);
    }
    let of_project: Api<Secret> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    refused(garden::try_create(&of_project, empty()).await, words);
    let secrets: Api<Secret> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    refused(
        secrets.get("x.kubeconfig").await.map(|_| ()),
        "cannot get resource \"secrets\"",
    );
    let shoots: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    allowed(shoots.list(&ListParams::default()).await.map(|_| ()));
}
