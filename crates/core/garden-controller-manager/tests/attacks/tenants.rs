//! Writes of a Shoot by which a tenant would choose what runs in a seed, or leave a control plane behind.

use api::gardencore::Shoot;
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::garden::{self, Garden, IN_DELETION, NAMESPACE, allowed, refused, try_apply, until_allowed};

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
    garden::until_refused(words, || try_apply(&editor, "offered", make("offered", image))).await;
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
    garden::until_refused(words, || try_apply(&editor, "former", make("former", "1.34.7"))).await;
    refused(
        garden.apply(&editor, "former", make("former", "1.34.7")).await,
        words,
    );
    let edited = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"purpose": "testing"}});
    allowed(garden.patch(&editor, "offered", edited).await);
    allowed(upgrade("1.35.1").await);
    // A read of such a name would be a watch without an end, and hold a worker of garden-controller-manager.
    for name in ["?watch=true&timeoutSeconds=2000000000", "a/b", ".."] {
        let query = json!({"spec": {"cloudProfile": {"name": name, "kind": "CloudProfile"}}});
        refused(
            garden.patch(&editor, "offered", query).await,
            "spec.cloudProfile.name",
        );
    }
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

/// Processes of the suite repeat these texts in Events and constraints.
pub async fn no_free_text_of_a_shoot_has_a_control_character(garden: &Garden) {
    let editor: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await.unwrap(), NAMESPACE);
    let words = "should match '^[ -~]*$'";
    let forged = "x\n  Warning  ForceRestoreRefused  2s  garden-controller-manager  seed-a still answers";
    for text in [forged, "a\u{1b}]0;x\u{7}", "a\u{202e}b"] {
        for place in [
            "/region",
            "/networking/type",
            "/provider/type",
            "/extensions/0/type",
            "/dns/providers/0/type",
            "/dns/providers/0/secretName",
            "/provider/workers/0/name",
            "/provider/workers/0/zones/0",
            "/provider/workers/0/machine/type",
            "/provider/workers/0/machine/image/name",
            "/provider/workers/0/machine/image/version",
            "/provider/workers/0/volume/type",
            "/provider/workers/0/cri/containerRuntimes/0/type",
        ] {
            // The name of a pool has at most 15 characters, and the name of a zone has at most 63.
            let text = if place.ends_with("workers/0/name") || place.ends_with("zones/0") {
                "a\nb"
            } else {
                text
            };
            let mut body = garden::shoot_with_pools(
                "forged",
                "offer",
                &json!([{
                    "name": "a", "minimum": 1, "maximum": 1, "zones": ["a"], "volume": {"type": "x", "size": "1Gi"},
                    "machine": {"type": "any", "image": {"name": "x", "version": "1"}},
                    "cri": {"name": "containerd", "containerRuntimes": [{"type": "x"}]},
                }]),
            );
            body["spec"]["extensions"] = json!([{"type": "x"}]);
            body["spec"]["dns"] = json!({"providers": [{"type": "x", "secretName": "x"}]});
            *body["spec"].pointer_mut(place).unwrap() = json!(text);
            refused(garden.apply(&editor, "forged", body).await, words);
        }
    }
}

/// Without the Shoot, no process removes the control plane, and no quota counts the control plane.
pub async fn a_shoot_stays_until_its_seed_has_removed_the_control_plane(garden: &Garden) {
    let editor: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await.unwrap(), NAMESPACE);
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let of_seed = |seed: &kube::Client| Api::<Shoot>::namespaced(seed.clone(), NAMESPACE);
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    garden
        .shoot("clinging", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let both = json!(["gardener", "example.org/own"]);
    allowed(garden.patch(&shoots, "clinging", finalizers(both)).await);
    until_allowed(|| garden::try_patch(&editor, "clinging", &confirmed)).await;
    let words =
        "finalizer gardener of Shoot clinging cannot be removed, because the control plane is on seed";
    for list in [Value::Null, json!([]), json!(["example.org/own"])] {
        refused(garden.patch(&editor, "clinging", finalizers(list)).await, words);
    }
    allowed(garden.patch(&editor, "clinging", confirmed.clone()).await);
    let deleted = editor.delete("clinging", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
    for list in [Value::Null, json!(["example.org/own"])] {
        refused(garden.patch(&editor, "clinging", finalizers(list)).await, words);
    }
    // A finalizer of the user is the user's.
    allowed(
        garden
            .patch(&editor, "clinging", finalizers(json!(["gardener"])))
            .await,
    );
    // The destination of a move or takeover ends the deletion, and the former host does not.
    garden
        .status(&shoots, "clinging", json!({"seedName": "seed-b"}))
        .await;
    let (former, host) = (of_seed(&garden.seed_a), of_seed(&garden.seed_b));
    let removed = finalizers(Value::Null);
    refused(
        garden.patch(&former, "clinging", removed.clone()).await,
        "clinging",
    );
    allowed(garden.patch(&host, "clinging", removed).await);

    // No seed has taken this Shoot, so the Shoot has no control plane.
    garden.shoot("untaken", "seed-a", None, ("", "")).await;
    garden.finalizer(&shoots, "untaken").await;
    allowed(garden.patch(&editor, "untaken", confirmed).await);
    let deleted = editor.delete("untaken", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
    allowed(garden.patch(&editor, "untaken", finalizers(Value::Null)).await);
}

/// A user may remove the finalizer from a Shoot that no seed has taken, also between two writes of the
/// gardenlet that takes the Shoot.
pub async fn no_seed_takes_a_shoot_without_the_finalizer(garden: &Garden) {
    let editor: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await.unwrap(), NAMESPACE);
    let gardenlet: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    garden.shoot("raced", "seed-a", None, ("", "")).await;
    let kept = json!({"metadata": {"finalizers": ["gardener"]}});
    let removed = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&gardenlet, "raced", kept.clone()).await);
    until_allowed(|| garden::try_patch(&editor, "raced", &removed)).await;
    allowed(garden.patch(&editor, "raced", removed.clone()).await);
    let uid = gardenlet.get("raced").await.unwrap().metadata.uid;
    let taken = json!({"seedName": "seed-a", "technicalID": "shoot--dev--raced", "uid": uid});
    refused(
        garden.patch_status(&gardenlet, "raced", taken.clone()).await,
        "may not take Shoot raced without finalizer gardener",
    );
    allowed(garden.patch(&gardenlet, "raced", kept).await);
    allowed(garden.patch_status(&gardenlet, "raced", taken).await);
    // The taken Shoot keeps the finalizer.
    refused(
        garden.patch(&editor, "raced", removed).await,
        "finalizer gardener of Shoot raced cannot be removed",
    );
    let observed = json!({"observedGeneration": 1});
    allowed(garden.patch_status(&gardenlet, "raced", observed).await);
}

/// Otherwise the members of a project keep the Project by new Shoots.
pub async fn a_project_in_deletion_gets_no_shoot(garden: &Garden) {
    let editor: Api<Shoot> =
        Api::namespaced(garden.editor_of_shoots(IN_DELETION).await.unwrap(), IN_DELETION);
    let words = "Project departing is being deleted, so that namespace garden-departing takes no new Shoot";
    let late = || garden::shoot_with_pools("belated", "local", &json!([]));
    garden::until_refused(words, || try_apply(&editor, "belated", late())).await;
    refused(garden.apply(&editor, "belated", late()).await, words);
    // A different Project is not concerned.
    let others: Api<Shoot> = garden.admin(NAMESPACE);
    allowed(try_apply(&others, "belated", late()).await);
}
