//! An attacker fills `metadata.managedFields` or `metadata.generateName` up to the largest request that etcd
//! takes. Each further write of the object would be refused, an approval, a hand-over and a deletion included.

use api::gardencore::{SecretBinding, Seed, Shoot};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, refused},
    grant_rights,
    large::shoots,
    reports::moving,
};

const SHOOT: &str = "crowded";
const SECRET: &str = "crowded.kubeconfig";
const WORDS: &str = "metadata.managedFields has more than";
/// Bounds of policy `readable-times`.
const ALLOWED_FOR_USERS: usize = 32;
const ALLOWED_FOR_SEEDS: usize = 48;
const ALLOWED_FOR_OPERATORS: usize = 64;
const VERSION: &str = "core.gardener.cloud/v1beta1";

/// The API server bounds the field at a creation alone.
pub async fn nobody_fills_the_name_for_generation(garden: &Garden) {
    const WORDS: &str = "metadata.generateName has more than 253 characters";
    let (shoot, binding) = ("generated", "generated-binding");
    garden
        .shoot(shoot, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let administrators = shoots(&garden.administrator());
    let user = shoots(&garden.editor_of_shoots(NAMESPACE).await.unwrap());
    let gardenlet = shoots(&garden.seed_a);
    let name = |length: usize| json!({"metadata": {"generateName": "a".repeat(length)}});
    garden::until_allowed(|| garden::try_patch(&user, shoot, &name(253))).await;
    garden::until_refused(WORDS, || garden::try_patch(&user, shoot, &name(254))).await;
    for api in [&user, &gardenlet, &administrators] {
        refused(garden::try_patch(api, shoot, &name(254)).await, WORDS);
        refused(garden::try_patch(api, shoot, &name(1_000_000)).await, WORDS);
    }
    let bindings: Api<SecretBinding> = garden.admin(NAMESPACE);
    let body =
        json!({"metadata": {"name": binding}, "provider": {"type": "local"}, "secretRef": {"name": "own"}});
    let body: SecretBinding = serde_json::from_value(body).unwrap();
    let created = bindings.create(&PostParams::default(), &body).await;
    allowed(created.map(drop));
    refused(
        garden::try_patch(&bindings, binding, &name(1_000_000)).await,
        WORDS,
    );
    let seeds: Api<Seed> = Api::all(garden.seed_a.clone());
    refused(garden::try_patch(&seeds, "seed-a", &name(1_000_000)).await, WORDS);
    let removed = json!({"metadata": {"generateName": null}});
    allowed(garden.patch(&user, shoot, removed).await);
}

/// The user also has the right to move Shoots, which a project gives to its members. Further scenarios give
/// the same user this right, so the outcome depends on no order.
pub async fn managed_fields_leave_room_for_others(garden: &Garden) {
    garden
        .shoot(SHOOT, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let user = shoots(&garden.editor_of_shoots(NAMESPACE).await.unwrap());
    garden.allow_moves_to_editor(NAMESPACE).await.unwrap();
    let to_b = json!({"spec": {"seedName": "seed-b"}});
    garden::until_allowed(|| garden::try_patch(&user, SHOOT, &to_b)).await;
    allowed(garden::try_patch(&user, SHOOT, &to_b).await);
    let gardenlet = shoots(&garden.seed_a);

    for (attacker, body) in [
        (&user, with_size(VERSION, "f:spec", 20_000)),
        (&user, with_entries(ALLOWED_FOR_USERS + 1)),
        (&user, with_text(VERSION, "f:spec", &"<".repeat(22_000))),
        (&gardenlet, with_size(VERSION, "f:spec", 20_000)),
        (&gardenlet, with_entries(ALLOWED_FOR_SEEDS + 1)),
        (&gardenlet, with_text(VERSION, "f:spec", &"<".repeat(66_000))),
    ] {
        refused(garden.patch(attacker, SHOOT, body).await, WORDS);
    }
    a_seed_fills_no_secret(garden).await;

    // A user fills the object as far as allowed: the seed and garden-controller-manager still write.
    allowed(garden.patch(&user, SHOOT, with_entries(ALLOWED_FOR_USERS)).await);
    let label = json!({"metadata": {"labels": {"shoot.gardener.cloud/status": "progressing"}}});
    allowed(garden.patch(&gardenlet, SHOOT, label).await);
    // A seed fills the object as far as allowed: an operator and garden-controller-manager still write.
    allowed(
        garden
            .patch(&gardenlet, SHOOT, with_entries(ALLOWED_FOR_SEEDS))
            .await,
    );
    let note = json!({"metadata": {"annotations": {"note": "x"}}});
    refused(garden.patch(&user, SHOOT, note.clone()).await, WORDS);
    // The operator may have a shoot taken over, and may not decide about the ownership of all shoots.
    let verbs = ["get", "patch", "force-restore"];
    let operator = garden
        .user_of_shoots("operator-of-crowded", NAMESPACE, &verbs)
        .await;
    let operator = shoots(&operator.unwrap());
    garden::until_allowed(|| garden::try_patch(&operator, SHOOT, &note)).await;
    allowed(garden.patch(&operator, SHOOT, note.clone()).await);
    let many = with_entries(ALLOWED_FOR_OPERATORS + 1);
    refused(garden.patch(&operator, SHOOT, many).await, WORDS);
    let manager = shoots(&garden.manager);
    allowed(
        garden
            .patch_status(&manager, SHOOT, json!({"constraints": []}))
            .await,
    );
    // The remedy in the message of the policy, for a user.
    let emptied = json!({"metadata": {"managedFields": [{}]}});
    allowed(garden.patch(&user, SHOOT, emptied).await);
    let changed = json!({"metadata": {"annotations": {"note": "y"}}});
    allowed(garden.patch(&user, SHOOT, changed).await);

    // The bound counts the bytes of etcd: six for each sign.
    let text = with_text(VERSION, "f:spec", &"<".repeat(21_000));
    allowed(garden.patch(&user, SHOOT, text).await);
    let label = json!({"metadata": {"labels": {"shoot.gardener.cloud/status": "healthy"}}});
    allowed(garden.patch(&gardenlet, SHOOT, label).await);
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    garden.patch(&admin, SHOOT, confirmed).await.unwrap();
    admin.delete(SHOOT, &DeleteParams::default()).await.unwrap();
}

/// The approval repeats the specification in the status, and the API server records each key. The remedy in
/// the message of the policy lets the author of a Shoot at the bound edit the Shoot, and cancel the move.
pub async fn an_approved_move_takes_edits(garden: &Garden) {
    let name = "jammed";
    moving(garden, name, ("Reconcile", "Succeeded")).await;
    let user = shoots(&garden.editor_of_shoots(NAMESPACE).await.unwrap());
    garden.allow_moves_to_editor(NAMESPACE).await.unwrap();
    let to_a = json!({"spec": {"seedName": "seed-a"}});
    garden::until_allowed(|| garden::try_patch(&user, name, &to_a)).await;

    let text = with_text(VERSION, "f:spec", &"<".repeat(21_000));
    allowed(garden.patch(&user, name, text).await);
    let spec = json!({("x".repeat(6000)): "y"});
    let approved = json!({"migration": {"spec": spec}});
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    garden.status(&admin, name, approved).await;
    let note = json!({"metadata": {"annotations": {"note": "x"}}});
    refused(garden.patch(&user, name, note.clone()).await, WORDS);
    let emptied = json!({"metadata": {"managedFields": [{}]}});
    allowed(garden.patch(&user, name, emptied).await);
    allowed(garden.patch(&user, name, note).await);
    allowed(garden.patch(&user, name, to_a).await);
}

/// The next host of the shoot writes the same Secret.
async fn a_seed_fills_no_secret(garden: &Garden) {
    garden.secret(SECRET, "Opaque").await;
    let _controllers = grant_rights(garden);
    let secrets: Api<Secret> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let content = json!({"data": {"kubeconfig": "eA=="}});
    garden::until_allowed(|| garden::try_patch(&secrets, SECRET, &content)).await;
    allowed(garden.patch(&secrets, SECRET, content).await);
    let large = with_size("v1", "f:data", 20_000);
    // By two policies, in no order.
    refused(garden.patch(&secrets, SECRET, large).await, "denied request");
}

fn with_entries(count: usize) -> Value {
    let entries = (0..count).map(|number| entry(VERSION, &format!("m{number}"), &json!({"f:spec": {}})));
    json!({"metadata": {"managedFields": entries.collect::<Vec<_>>()}})
}

/// A single entry with so many fields.
fn with_size(version: &str, parent: &str, fields: usize) -> Value {
    let fields = (0..fields).map(|number| (format!("f:field-{number:05}"), json!({})));
    let fields: serde_json::Map<_, _> = fields.collect();
    json!({"metadata": {"managedFields": [entry(version, "m", &json!({parent: fields}))]}})
}

/// A single entry with a single field of this name.
pub fn with_text(version: &str, parent: &str, name: &str) -> Value {
    let field = format!("f:{name}");
    json!({"metadata": {"managedFields": [entry(version, "m", &json!({parent: {field: {}}}))]}})
}

/// The API server merges entries of operation `Update` beyond ten, and keeps each entry of `Apply`.
pub fn entry(version: &str, manager: &str, fields: &Value) -> Value {
    json!({"manager": manager, "operation": "Apply", "apiVersion": version, "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": fields})
}
