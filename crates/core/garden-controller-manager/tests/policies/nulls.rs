//! `null` in a nullable field is the same as an absent field, and blocks no later write.

use api::gardencore::{Seed, Shoot};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, Object, allowed, refused};

/// Adds or replaces the value at the path. A merge patch and an apply could remove `null`.
async fn add<K: Object>(api: &Api<K>, name: &str, path: &str, value: Value) -> Result<(), kube::Error> {
    let operations = json!([{"op": "add", "path": path, "value": value}]);
    let body: Patch<()> = Patch::Json(serde_json::from_value(operations).unwrap());
    api.patch(name, &PatchParams::default(), &body).await.map(drop)
}

/// Writes of metadata alone.
async fn change_finalizers<K: Object>(garden: &Garden, api: &Api<K>, name: &str) {
    for finalizers in [json!(["x/y"]), json!(null)] {
        let body = json!({"metadata": {"finalizers": finalizers}});
        allowed(garden.patch(api, name, body).await);
    }
}

pub async fn a_null_of_a_shoot_names_no_secret_and_no_domain(garden: &Garden) {
    let mut seed = garden::seed("domains");
    let domain =
        json!({"type": "local", "domain": "nulls.test", "credentialsRef": {"kind": "Secret", "name": "dns"}});
    seed["spec"]["dns"] = json!({"defaults": [domain]});
    garden.bring(&seed).await.unwrap();
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    // Without a host, so that policy shoot-domain alone refuses a domain.
    garden.shoot("nulls", "seed-a", None, ("", "")).await;
    let provider = json!({"type": "local", "primary": null, "secretName": null, "credentialsRef": null});
    for dns in [
        Value::Null,
        json!({"domain": null}),
        json!({"domain": null, "providers": [provider]}),
        json!({"domain": null, "providers": [provider, provider]}),
    ] {
        allowed(add(&shoots, "nulls", "/spec/dns", dns).await);
        change_finalizers(garden, &shoots, "nulls").await;
    }
    let editor: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await.unwrap(), NAMESPACE);
    let named = json!({"type": "local", "primary": true, "secretName": "zone", "credentialsRef": null});
    refused(
        add(&editor, "nulls", "/spec/dns/providers", json!([provider, named])).await,
        "names Secret garden-dev/zone in spec.dns.providers, which editor-of-shoots may not read",
    );
    // The Seed is a parameter of the policy. The API server watches parameters.
    let (domain, words) = ("other.dev.nulls.test", "can only have nulls.dev.nulls.test");
    let other = json!({"spec": {"dns": {"domain": domain}}});
    garden::until_refused(words, || garden::try_patch(&shoots, "nulls", &other)).await;
    refused(
        add(&shoots, "nulls", "/spec/dns/domain", json!(domain)).await,
        words,
    );
}

pub async fn a_null_of_a_seed_names_no_secret(garden: &Garden) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    garden.bring(&garden::seed("nulls")).await.unwrap();
    let reference = json!({"kind": "Secret", "name": null, "namespace": null});
    let domain = json!({"type": "local", "domain": "nulls.example", "credentialsRef": reference});
    for (path, value) in [
        (
            "/spec/backup",
            json!({"provider": "local", "credentialsRef": null}),
        ),
        ("/spec/backup/credentialsRef", reference.clone()),
        ("/spec/dns/defaults", json!([domain])),
        ("/spec/backup/credentialsRef/name", json!("backup")),
    ] {
        allowed(add(&seeds, "nulls", path, value).await);
        change_finalizers(garden, &seeds, "nulls").await;
    }
    refused(
        add(
            &seeds,
            "nulls",
            "/spec/backup/credentialsRef/namespace",
            json!("garden"),
        )
        .await,
        "may not name Secret garden/backup",
    );
}
