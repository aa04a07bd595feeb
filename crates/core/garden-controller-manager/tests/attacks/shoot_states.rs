//! The keys of all shoots are in the garden, all the time: each seed gets at those of the shoots that it has
//! (R7-25, threats.md 6).

use api::gardencore::{InternalSecret, Shoot, ShootState, ShootStateSpec};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    floods::chunks_above_the_bounds,
    garden::{self, Garden, NAMESPACE, allowed, refused},
    grant_rights,
};

const CANNOT_READ: &str = "cannot get resource";

fn states(client: &kube::Client) -> Api<ShootState> {
    Api::namespaced(client.clone(), NAMESPACE)
}

fn chunks(client: &kube::Client) -> Api<InternalSecret> {
    Api::namespaced(client.clone(), NAMESPACE)
}

fn fill() -> Value {
    json!({"spec": {"gardener": [{"name": "ca", "type": "secret", "data": {"data": {}}}]},
        "metadata": {"annotations": {"gardener.cloud/timestamp": "2026-01-01T00:00:00Z"}}})
}

/// Shoots of both seeds, and the controller that grants the rights of seeds, until the set is dropped. The
/// seeds may fill their ShootStates.
pub async fn owned_shoots(garden: &Garden) -> JoinSet<()> {
    for (name, spec, host) in [
        ("filled", "seed-a", "seed-a"),
        ("theirs", "seed-b", "seed-b"),
        ("going", "seed-b", "seed-a"),
    ] {
        garden
            .shoot(name, spec, Some(host), ("Reconcile", "Succeeded"))
            .await;
    }
    let controllers = grant_rights(garden);
    let (a, b) = (states(&garden.seed_a), states(&garden.seed_b));
    for (client, name) in [(&a, "filled"), (&a, "going"), (&b, "theirs")] {
        garden::until_allowed(|| garden::try_patch(client, name, &fill())).await;
    }
    controllers
}

/// garden-controller-manager runs: what it gives is what seeds have.
pub async fn a_shoot_state_is_of_the_seed_that_has_the_shoot(garden: &Garden) {
    let _controllers = owned_shoots(garden).await;
    let (a, b) = (states(&garden.seed_a), states(&garden.seed_b));
    for name in ["filled", "going"] {
        garden::until_allowed(|| garden::try_patch(&a, name, &fill())).await;
        allowed(garden.patch(&a, name, fill()).await);
        allowed(a.get(name).await.map(drop));
        refused(b.get(name).await.map(drop), CANNOT_READ);
    }
    garden::until_allowed(|| garden::try_patch(&b, "theirs", &fill())).await;
    refused(a.get("theirs").await.map(drop), CANNOT_READ);
    refused(
        a.list(&ListParams::default()).await.map(drop),
        "cannot list resource",
    );
    for change in [
        json!({"metadata": {"finalizers": ["x/y"]}}),
        json!({"metadata": {"ownerReferences": null}}),
        json!({"metadata": {"labels": {"x": "y"}}}),
        json!({"metadata": {"annotations": {"gardener.cloud/timestamp": "2".repeat(65)}}}),
    ] {
        refused(
            garden.patch(&a, "filled", change).await,
            "it writes only annotation gardener.cloud/timestamp",
        );
    }
    let state = ShootState::new("mine", ShootStateSpec::default());
    refused(
        a.create(&PostParams::default(), &state).await.map(drop),
        "cannot create resource",
    );
    refused(
        a.delete("filled", &DeleteParams::default()).await.map(drop),
        "cannot delete resource",
    );
}

async fn chunk(garden: &Garden, name: &str, state: &str) -> InternalSecret {
    let state = states(&garden.administrator()).get(state).await.unwrap();
    let owner = kube::Resource::owner_ref(&state, &()).unwrap();
    serde_json::from_value(json!({
        "metadata": {"name": name, "ownerReferences": [owner]},
        "type": "gardener.cloud/shoot-state", "immutable": true, "data": {"chunk": "eA=="},
    }))
    .unwrap()
}

pub async fn a_chunk_is_of_the_seed_that_has_the_shoot(garden: &Garden) {
    let _controllers = owned_shoots(garden).await;
    allowed(garden.patch(&states(&garden.seed_a), "filled", fill()).await);
    let (a, b) = (chunks(&garden.seed_a), chunks(&garden.seed_b));
    let params = PostParams::default();
    let honest = chunk(garden, "filled.state-1-0", "filled").await;
    allowed(a.create(&params, &honest).await.map(drop));
    garden::until_allowed(|| {
        let a = a.clone();
        Box::pin(async move { a.get("filled.state-1-0").await.map(drop) })
    })
    .await;
    allowed(a.get("filled.state-1-0").await.map(drop));
    refused(b.get("filled.state-1-0").await.map(drop), CANNOT_READ);
    a_deleted_chunk_is_gone(&a).await;
    refused(
        a.list(&ListParams::default()).await.map(drop),
        "cannot list resource",
    );
    refused(
        garden
            .patch(&a, "filled.state-1-0", json!({"data": {"chunk": "eQ=="}}))
            .await,
        "cannot patch resource",
    );
    // Of two policies that refuse it, either may be the first.
    let only = "may not write InternalSecret";
    for (name, state) in [
        ("theirs.state-1-0", "theirs"),
        ("theirs.state-1-0", "filled"),
        ("nobody.state-1-0", "filled"),
        ("filled.ca-client", "filled"),
    ] {
        let planted = chunk(garden, name, state).await;
        refused(a.create(&params, &planted).await.map(drop), only);
    }
    refused(
        b.delete("filled.state-1-0", &DeleteParams::default())
            .await
            .map(drop),
        only,
    );
    let shape = "it makes only immutable ones of type gardener.cloud/shoot-state";
    for (at, value) in [
        ("/type", json!("Opaque")),
        ("/immutable", json!(false)),
        ("/data", json!({"ca.crt": "eA=="})),
        ("/metadata/ownerReferences/0/name", json!("theirs")),
        ("/metadata/ownerReferences/0/kind", json!("Shoot")),
        // garden-controller-manager keeps the references of all chunks.
        ("/metadata/ownerReferences/0/uid", json!("u".repeat(100_000))),
        ("/metadata/ownerReferences", json!([])),
    ] {
        let mut planted = serde_json::to_value(&honest).unwrap();
        planted["metadata"]["name"] = json!("filled.state-1-1");
        *planted.pointer_mut(at).unwrap() = value;
        let planted = serde_json::from_value(planted).unwrap();
        refused(a.create(&params, &planted).await.map(drop), shape);
    }
    a_chunk_has_bounds(&garden.seed_a, &honest).await;
    // Nor where somebody gave gardenlets more than garden-controller-manager does: what counts is who has the
    // shoot.
    let core = "core.gardener.cloud";
    garden.grant_gardenlets(core, "shootstates", "patch").await;
    let theirs = chunk(garden, "theirs.state-1-0", "theirs").await;
    let words = "the shoot theirs is on seed \"seed-b\"";
    // RBAC refuses with other words until the API server knows the right.
    garden::until_refused(words, || {
        garden::try_patch(&states(&garden.seed_a), "theirs", &fill())
    })
    .await;
    garden::until_refused(words, || garden::try_create(&a, theirs.clone())).await;
    refused(a.create(&params, &theirs).await.map(drop), words);
    refused(
        garden.patch(&states(&garden.seed_a), "theirs", fill()).await,
        words,
    );
    garden.state("nobody").await;
    refused(
        garden.patch(&states(&garden.seed_a), "nobody", fill()).await,
        "it is none that garden-controller-manager made",
    );
    a_hand_over_takes_them_along(garden).await;
}

async fn a_chunk_has_bounds(client: &kube::Client, honest: &InternalSecret) {
    // Not typed: a chunk that is no base64 has no InternalSecret.
    let resource = ApiResource::erase::<InternalSecret>(&());
    let a: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &resource);
    let params = PostParams::default();
    for planted in chunks_above_the_bounds(&serde_json::to_value(honest).unwrap()) {
        let planted: DynamicObject = serde_json::from_value(planted).unwrap();
        refused(
            a.create(&params, &planted).await.map(drop),
            "data.chunk has at most 1048576 characters in base64",
        );
    }
}

/// A reader tells a deleted chunk from a right that is not granted yet: no right names a deleted chunk.
async fn a_deleted_chunk_is_gone(a: &Api<InternalSecret>) {
    refused(a.get("filled.state-9-0").await.map(drop), CANNOT_READ);
    let dry_run = DeleteParams::default().dry_run();
    let deleted = a.delete("filled.state-9-0", &dry_run).await.map(drop);
    let is_gone = matches!(&deleted, Err(kube::Error::Api(status)) if status.is_not_found());
    assert!(is_gone, "{deleted:?}");
}

/// The highest number of the schema would end the writes of every later seed.
pub async fn the_numbers_of_attempts_rise_by_one(garden: &Garden) {
    garden
        .shoot("counted", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden.state("counted").await;
    let a = states(&garden.seed_a);
    let core = "core.gardener.cloud";
    garden.grant_gardenlets(core, "shootstates", "patch").await;
    let attempt = |number: i64| json!({"spec": {"chunkAttempt": {"number": number}}});
    garden::until_allowed(|| garden::try_patch(&a, "counted", &fill())).await;
    let words = "may not raise spec.chunkAttempt.number of ShootState counted by more than 1";
    for number in [2, 9_007_199_254_740_991] {
        refused(garden.patch(&a, "counted", attempt(number)).await, words);
    }
    for number in [1, 2, 2, 3] {
        allowed(garden.patch(&a, "counted", attempt(number)).await);
    }
    refused(garden.patch(&a, "counted", attempt(5)).await, words);
    allowed(
        garden
            .patch(&a, "counted", json!({"spec": {"chunkAttempt": null}}))
            .await,
    );
}

/// The former seed has had its keys; it gets no newer ones.
async fn a_hand_over_takes_them_along(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .status(&shoots, "filled", json!({"seedName": "seed-b"}))
        .await;
    let (a, b) = (chunks(&garden.seed_a), chunks(&garden.seed_b));
    garden::until_allowed(|| {
        let b = b.clone();
        Box::pin(async move { b.get("filled.state-1-0").await.map(drop) })
    })
    .await;
    garden::until_refused(CANNOT_READ, || {
        let a = a.clone();
        Box::pin(async move { a.get("filled.state-1-0").await.map(drop) })
    })
    .await;
    allowed(b.get("filled.state-1-0").await.map(drop));
    refused(a.get("filled.state-1-0").await.map(drop), CANNOT_READ);
    refused(states(&garden.seed_a).get("filled").await.map(drop), CANNOT_READ);
    let late = chunk(garden, "filled.state-2-0", "filled").await;
    let gone = garden::try_create(&a, late).await;
    refused(gone, "the shoot filled is on seed \"seed-b\"");
    allowed(
        b.delete("filled.state-1-0", &DeleteParams::default())
            .await
            .map(drop),
    );
    a_later_epoch_stays_written(garden).await;
}

/// The shoot comes back to the seed that had it first. What that one has slept over since names its former
/// epoch, or none.
async fn a_later_epoch_stays_written(garden: &Garden) {
    let in_epoch = |epoch: Option<i64>| {
        let mut body = fill();
        body["spec"]["epoch"] = json!(epoch);
        body
    };
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let (a, b) = (states(&garden.seed_a), states(&garden.seed_b));
    let too_high = "in ownership epoch 9007199254740991: the shoot is in epoch";
    refused(
        garden
            .patch(&b, "filled", in_epoch(Some(9_007_199_254_740_991)))
            .await,
        too_high,
    );
    garden
        .status(&shoots, "filled", json!({"ownership": {"epoch": 2}}))
        .await;
    garden::until_allowed(|| garden::try_patch(&b, "filled", &in_epoch(Some(2)))).await;
    allowed(garden.patch(&b, "filled", in_epoch(Some(2))).await);

    garden
        .status(
            &shoots,
            "filled",
            json!({"seedName": "seed-a", "ownership": {"epoch": 3}}),
        )
        .await;
    garden::until_allowed(|| garden::try_patch(&a, "filled", &in_epoch(Some(3)))).await;
    for late in [None, Some(1)] {
        refused(
            garden.patch(&a, "filled", in_epoch(late)).await,
            "epoch never falls",
        );
    }
    allowed(garden.patch(&a, "filled", in_epoch(Some(3))).await);
    refused(
        garden.patch(&a, "filled", in_epoch(Some(2))).await,
        "epoch never falls",
    );
    refused(
        garden.patch(&a, "filled", in_epoch(Some(4))).await,
        "in ownership epoch 4: the shoot is in epoch 3",
    );
}

/// The right of garden-controller-manager to grant rights leads to no further right.
pub async fn garden_controller_manager_gives_nobody_else_a_right(garden: &Garden) {
    let _controllers = owned_shoots(garden).await;
    let words = "it grants rights to seeds alone, and only to ShootStates, InternalSecrets and Secrets of one project or seed";
    let core = json!(["core.gardener.cloud"]);
    let roles: Api<ClusterRole> = Api::all(garden.manager.clone());
    let role = |name: &str, rules: Value| -> ClusterRole {
        serde_json::from_value(json!({"metadata": {"name": name}, "rules": rules})).unwrap()
    };
    let harmless = json!([{"apiGroups": core, "resources": ["shootstates"], "resourceNames": ["filled"], "verbs": ["get"]}]);
    for rules in [
        json!([]),
        json!([{"apiGroups": core, "resources": ["shootstates"], "verbs": ["get"]}]),
        json!([{"apiGroups": core, "resources": ["internalsecrets"], "verbs": ["get"]}]),
        json!([{"apiGroups": core, "resources": ["shoots"], "resourceNames": ["filled"], "verbs": ["get"]}]),
        json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]),
        json!([{"apiGroups": core, "resources": ["shootstates"], "resourceNames": [""], "verbs": ["get"]}]),
        json!([{"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "delete"]}]),
        harmless.clone(),
    ] {
        let made = role("gardener.cloud:seed:seed-x:garden-dev", rules);
        refused(roles.create(&PostParams::default(), &made).await.map(drop), words);
    }
    // A label that aggregates the rule into a role of every viewer.
    let mut aggregated = role("gardener.cloud:seed:seed-x:garden-dev", harmless.clone());
    let labels =
        json!({"gardener.cloud/role": "seed-rights", "rbac.authorization.k8s.io/aggregate-to-view": "true"});
    aggregated.metadata.labels = serde_json::from_value(labels).unwrap();
    refused(
        roles.create(&PostParams::default(), &aggregated).await.map(drop),
        words,
    );
    for name in ["x", "gardener.cloud:seed:seed-x", "gardener.cloud:system:seeds"] {
        let mut made = role(name, harmless.clone());
        made.metadata.labels = Some([("gardener.cloud/role".into(), "seed-rights".into())].into());
        refused(roles.create(&PostParams::default(), &made).await.map(drop), words);
    }
    refused(
        roles
            .delete("gardener.cloud:system:seeds", &DeleteParams::default())
            .await
            .map(drop),
        words,
    );
    let bindings: Api<RoleBinding> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    let name = "gardener.cloud:seed:seed-a";
    for (kind, user) in [
        ("User", "somebody"),
        ("User", "gardener.cloud:system:seed:seed-b"),
        ("Group", "gardener.cloud:system:seed:seed-a"),
    ] {
        let subjects =
            json!({"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user}]});
        refused(garden.patch(&bindings, name, subjects).await, words);
    }
    let elsewhere: Api<RoleBinding> = Api::namespaced(garden.manager.clone(), "garden");
    let bound: RoleBinding = serde_json::from_value(json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gardener.cloud:seed:seed-a:garden-dev"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "gardener.cloud:system:seed:seed-a"}],
    }))
    .unwrap();
    refused(
        elsewhere.create(&PostParams::default(), &bound).await.map(drop),
        "garden-controller-manager may not write RoleBinding",
    );
}
