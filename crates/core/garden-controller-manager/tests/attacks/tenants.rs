//! Fields of a Shoot by which a tenant would choose what runs in a seed.

use api::gardencore::Shoot;
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, allowed, refused, try_apply};

fn offer(versions: &Value) -> Value {
    let mut profile = garden::bounded_profile(10);
    profile["metadata"]["name"] = json!("offer");
    profile["spec"]["kubernetes"]["versions"] = versions.clone();
    profile
}

/// The version names the images of the control plane: a suffix could name any image by its digest.
pub async fn a_version_is_on_offer_or_stays(garden: &Garden) {
    let expired = json!({"version": "1.34.9", "classification": "expired"});
    let offered = json!([{"version": "1.34.4"}, {"version": "v1.34.7"}, expired, {"version": "1.35.1"}]);
    garden.bring(&offer(&offered)).await.unwrap();
    let editor: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await.unwrap(), NAMESPACE);
    let make = |name: &str, version: &str| {
        let mut body = garden::shoot_with_pools(name, "offer", &json!([]));
        body["spec"]["kubernetes"]["version"] = json!(version);
        body
    };
    let words = "is not on offer in CloudProfile offer";
    let image = "1.34.4-x@sha256:0123456789abcdef";
    garden::until_refused_with(words, || try_apply(&editor, "offered", make("offered", image))).await;
    for version in [image, "1.34.5", "1.34.9", "1.36", "1.3"] {
        refused(
            garden.apply(&editor, "offered", make("offered", version)).await,
            words,
        );
    }
    allowed(garden.apply(&editor, "minor", make("minor", "v1.34")).await);
    allowed(garden.apply(&editor, "offered", make("offered", "v1.34.4")).await);
    let upgrade = |version: &str| {
        let body = json!({"spec": {"kubernetes": {"version": version}}});
        garden.patch(&editor, "offered", body)
    };
    refused(upgrade("1.34.8").await, words);
    allowed(upgrade("1.34.7").await);
    // The present version stays when the offer ends, and the Shoot can be edited and deleted.
    garden
        .bring(&offer(&json!([{"version": "1.35.1"}])))
        .await
        .unwrap();
    garden::until_refused_with(words, || try_apply(&editor, "former", make("former", "1.34.7"))).await;
    refused(
        garden.apply(&editor, "former", make("former", "1.34.7")).await,
        words,
    );
    let edited = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"purpose": "testing"}});
    allowed(garden.patch(&editor, "offered", edited).await);
    allowed(upgrade("1.35.1").await);
    // A profile that does not exist offers nothing, and is no detour to a version of choice.
    let named = |profile: &str| json!({"name": profile, "kind": "CloudProfile"});
    let detour = json!({"spec": {"cloudProfile": named("missing"), "kubernetes": {"version": "1.35.9"}}});
    allowed(garden.patch(&editor, "offered", detour).await);
    let back = json!({"spec": {"cloudProfile": named("offer")}});
    refused(garden.patch(&editor, "offered", back).await, words);
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    allowed(garden.patch(&editor, "minor", confirmed).await);
    let deleted = editor.delete("minor", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
}
