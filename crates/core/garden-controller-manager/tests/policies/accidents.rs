//! Accidental deletions in the garden, and annotations without effect.

use api::gardencore::BackupEntry;
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::garden::{
    Garden, WITH_A_SHOOT, WITH_BACKUPS, allowed, refused, try_delete, until_allowed, until_refused,
};

/// Case 10: also an administrator has to confirm, and a namespace without Shoots and backups is free.
pub async fn a_namespace_with_shoots_or_backups_stays(garden: &Garden) {
    let all: Api<Namespace> = Api::all(garden.administrator());
    let unconfirmed = "annotate the namespace with confirmation.gardener.cloud/deletion=true";
    for (name, kind) in [(WITH_A_SHOOT, "Shoot"), (WITH_BACKUPS, "BackupEntry")] {
        refused(
            try_delete(&all, name).await,
            &format!("namespace {name} holds {kind} only"),
        );
        // The manager deletes the namespace of a Project as soon as the namespace is empty, and not before.
        let managers: Api<Namespace> = Api::all(garden.manager.clone());
        refused(
            try_delete(&managers, name).await,
            &format!("namespace {name} holds {kind} only"),
        );
        confirm(garden, &all, name, json!("yes")).await;
        refused(try_delete(&all, name).await, unconfirmed);
        confirm(garden, &all, name, json!("true")).await;
        allowed(try_delete(&all, name).await);
        confirm(garden, &all, name, Value::Null).await;
        until_refused(unconfirmed, || try_delete(&all, name)).await;
    }
    let empty = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "empty"}});
    garden.bring(&empty).await.unwrap();
    allowed(try_delete(&all, "empty").await);

    let entries: Api<BackupEntry> = garden.admin(WITH_BACKUPS);
    entries.delete("only", &DeleteParams::default()).await.unwrap();
    until_allowed(|| try_delete(&all, WITH_BACKUPS)).await;
    allowed(try_delete(&all, WITH_BACKUPS).await);
}

/// A deletion of the definition would delete all Shoots, bypassing the policy that protects each Shoot.
pub async fn a_definition_of_the_garden_stays(garden: &Garden) {
    let all: Api<CustomResourceDefinition> = Api::all(garden.administrator());
    for name in [
        "shoots.core.gardener.cloud",
        "credentialsbindings.security.gardener.cloud",
    ] {
        refused(
            try_delete(&all, name).await,
            &format!("CustomResourceDefinition {name} is protected"),
        );
        confirm(garden, &all, name, json!("true")).await;
        allowed(try_delete(&all, name).await);
        confirm(garden, &all, name, Value::Null).await;
    }
}

async fn confirm<K: crate::garden::Object>(garden: &Garden, api: &Api<K>, name: &str, value: Value) {
    let body = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": value}}});
    garden.patch(api, name, body).await.unwrap();
}
