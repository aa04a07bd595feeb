//! The keys for the destination of a preparation: only the host makes the object, and only for a valid grant.
//! The destination reads this object, and no further object of the shoot, until the grant ends.

use std::time::Duration;

use api::gardencore::{InternalSecret, Shoot, ShootState};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    garden::{Attempt, Garden, NAMESPACE, allowed, refused, try_create, until_allowed, until_refused},
    grant_rights,
    preparation::{grant, on_seed_a, shoots_of},
};

const CANNOT_READ: &str = "cannot get resource";
const NO_GRANT: &str = "no valid grant lets a seed prepare for the shoot";
/// The begin of each refusal of a write. Two policies may refuse a write, in no order.
const MAY_NOT: &str = "may not write InternalSecret";
/// Longer than garden-controller-manager takes for a change on a slow machine.
const SOON: Duration = Duration::from_secs(60);
/// Epoch and expiry of the grants of these scenarios.
const GRANT: &str = "1-32472144000";

fn keys_of(client: &kube::Client) -> Api<InternalSecret> {
    Api::namespaced(client.clone(), NAMESPACE)
}

fn name(shoot: &str) -> String {
    format!("{shoot}.preparation-{GRANT}")
}

/// The object as the source makes the object, with a value of a single key.
fn document(shoot: &str, uid: &str) -> Value {
    let owner =
        json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": shoot, "uid": uid});
    json!({
        "metadata": {"name": name(shoot), "ownerReferences": [owner]},
        "type": "gardener.cloud/shoot-preparation", "immutable": true, "data": {"ca-etcd_ca.crt": "eA=="},
    })
}

fn object(document: Value) -> InternalSecret {
    serde_json::from_value(document).unwrap()
}

fn try_get(api: &Api<InternalSecret>, name: &str) -> Attempt {
    let (api, name) = (api.clone(), name.to_owned());
    Box::pin(async move { api.get(&name).await.map(drop) })
}

async fn seed_c(garden: &Garden) -> kube::Client {
    garden
        .client(
            "gardener.cloud:system:seed:seed-c",
            &["gardener.cloud:system:seeds"],
        )
        .await
}

/// garden-controller-manager runs, and grants the destination the right to one object.
pub async fn a_destination_reads_the_object_of_its_grant_alone(garden: &Garden) {
    let uid = on_seed_a(garden, "keyed").await;
    garden.secret("keyed.kubeconfig", "Opaque").await;
    garden.secret("keyed-cloud", "Opaque").await;
    let _controllers = grant_rights(garden);
    let (a, b, c) = (
        keys_of(&garden.seed_a),
        keys_of(&garden.seed_b),
        keys_of(&seed_c(garden).await),
    );
    let manager = shoots_of(&garden.manager);
    let made = || object(document("keyed", &uid));
    until_refused(NO_GRANT, || try_create(&a, made())).await;
    refused(try_create(&a, made()).await, NO_GRANT);
    allowed(
        garden
            .patch_status(&manager, "keyed", grant(&uid, &json!({})))
            .await,
    );
    until_allowed(|| try_create(&a, made())).await;
    allowed(a.create(&PostParams::default(), &made()).await.map(drop));
    let keyed = name("keyed");
    until_allowed(|| try_get(&b, &keyed)).await;
    allowed(try_get(&b, &keyed).await);
    refused(try_get(&c, &keyed).await, CANNOT_READ);
    nothing_else_is_readable(garden, &b).await;
    for api in [&a, &b] {
        let body = json!({"metadata": {"labels": {"x": "y"}}});
        refused(garden.patch(api, &keyed, body).await, "cannot patch resource");
    }
    refused(
        b.delete(&keyed, &DeleteParams::default()).await.map(drop),
        "\"keyed.preparation-1-32472144000\" is forbidden",
    );
    // The grant ends with the request.
    let none = json!({"liveMigration": null});
    allowed(garden.patch_status(&manager, "keyed", none).await);
    until_refused(CANNOT_READ, || try_get(&b, &keyed)).await;
    refused(try_get(&b, &keyed).await, CANNOT_READ);
    until_deleted(garden, &keyed).await;
    until_refused(NO_GRANT, || try_create(&a, made())).await;
    refused(try_create(&a, made()).await, NO_GRANT);
}

async fn nothing_else_is_readable(garden: &Garden, b: &Api<InternalSecret>) {
    for other in [
        "keyed.preparation-1-32472144001",
        "keyed.preparation-2-32472144000",
        "keyed.state-1-0",
        "keyed",
    ] {
        refused(try_get(b, other).await, CANNOT_READ);
    }
    refused(
        b.list(&ListParams::default()).await.map(drop),
        "cannot list resource",
    );
    let states: Api<ShootState> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    refused(states.get("keyed").await.map(drop), CANNOT_READ);
    let secrets: Api<Secret> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    for secret in ["keyed.kubeconfig", "keyed-cloud"] {
        refused(secrets.get(secret).await.map(drop), CANNOT_READ);
    }
}

async fn until_deleted(garden: &Garden, name: &str) {
    let all: Api<InternalSecret> = garden.admin(NAMESPACE);
    eventually("the keys are deleted", SOON, || async {
        match all.get_metadata_opt(name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .unwrap();
}

/// No process withdraws these grants: the Shoot is a different object, or in a different residency.
pub async fn a_void_grant_gives_no_keys(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let _controllers = grant_rights(garden);
    let (a, b) = (keys_of(&garden.seed_a), keys_of(&garden.seed_b));
    let uid = on_seed_a(garden, "unkeyed").await;
    let keyed = name("unkeyed");
    let made = || object(document("unkeyed", &uid));
    let forbidden = "\"unkeyed.preparation-1-32472144000\" is forbidden";
    for void in [
        json!({"liveMigration": {"preparation": {"uid": "of-an-earlier-shoot"}}}),
        json!({"liveMigration": {"preparation": {"source": "seed-c"}}}),
        json!({"liveMigration": {"preparation": {"epoch": 2}}}),
        json!({"seedName": "seed-c"}),
        // The last change, because no epoch falls.
        json!({"ownership": {"epoch": 2}}),
    ] {
        let mut valid = grant(&uid, &json!({}));
        valid["seedName"] = json!("seed-a");
        garden.status(&admin, "unkeyed", valid).await;
        until_allowed(|| try_create(&a, made())).await;
        allowed(a.create(&PostParams::default(), &made()).await.map(drop));
        until_allowed(|| try_get(&b, &keyed)).await;
        allowed(try_get(&b, &keyed).await);
        garden.status(&admin, "unkeyed", void).await;
        until_refused(CANNOT_READ, || try_get(&b, &keyed)).await;
        refused(try_get(&b, &keyed).await, CANNOT_READ);
        until_deleted(garden, &keyed).await;
        // The policy of a host that has left the shoot, or no grant.
        until_refused(forbidden, || try_create(&a, made())).await;
        refused(try_create(&a, made()).await, forbidden);
    }
    let ended = json!({"seedName": "seed-a", "liveMigration": null});
    garden.status(&admin, "unkeyed", ended).await;
}

/// A hostile host, a hostile destination and a third seed plant keys.
pub async fn a_host_makes_the_keys_of_its_own_shoot_alone(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let uid = on_seed_a(garden, "planted").await;
    garden.status(&admin, "planted", grant(&uid, &json!({}))).await;
    // A shoot of seed-b with a grant for seed-a.
    let last = ("Reconcile", "Succeeded");
    garden
        .shoot("planted-theirs", "seed-b", Some("seed-b"), last)
        .await;
    let theirs = admin.get("planted-theirs").await.unwrap().metadata.uid.unwrap();
    let changes = json!({"source": "seed-b", "destination": "seed-a"});
    garden
        .status(&admin, "planted-theirs", grant(&theirs, &changes))
        .await;
    let _controllers = grant_rights(garden);
    let (a, b) = (keys_of(&garden.seed_a), keys_of(&garden.seed_b));
    until_allowed(|| try_create(&a, object(document("planted", &uid)))).await;
    allowed(try_create(&a, object(document("planted", &uid))).await);
    let of_theirs = || object(document("planted-theirs", &theirs));
    until_allowed(|| try_create(&b, of_theirs())).await;
    allowed(try_create(&b, of_theirs()).await);
    refused(try_create(&a, of_theirs()).await, MAY_NOT);
    refused(try_create(&b, object(document("planted", &uid))).await, MAY_NOT);
    let of_none = || object(document("planted-nowhere", &uid));
    refused(try_create(&a, of_none()).await, MAY_NOT);
    let named = |name: &str| {
        let mut document = document("planted", &uid);
        document["metadata"]["name"] = json!(name);
        object(document)
    };
    for name in [
        "planted.preparation-2-32472144000",
        "planted.preparation-1-32472144001",
        "planted.preparation-01-32472144000",
    ] {
        refused(try_create(&a, named(name)).await, NO_GRANT);
    }
    for name in ["planted.preparation-1", "planted.keys-1-32472144000", "planted"] {
        refused(try_create(&a, named(name)).await, MAY_NOT);
    }
    let shape = "for a preparation it makes only immutable ones";
    let large = json!({"ca-etcd_ca.crt": "eHh4".repeat(4097)});
    for (at, value, words) in [
        ("/metadata/ownerReferences/0/uid", json!("v"), NO_GRANT),
        ("/metadata/ownerReferences/0/kind", json!("ShootState"), shape),
        ("/metadata/ownerReferences", json!([]), shape),
        ("/type", json!("gardener.cloud/shoot-state"), shape),
        ("/immutable", json!(false), shape),
        ("/data", json!({"chunk": "eA=="}), shape),
        ("/data", json!({"ca-etcd_ca.key": "eA=="}), shape),
        ("/data", json!({"cloudprovider_accessKeyID": "eA=="}), shape),
        ("/data", large, "at most 16384 characters in base64"),
    ] {
        let mut planted = document("planted", &uid);
        *planted.pointer_mut(at).unwrap() = value;
        refused(try_create(&a, object(planted)).await, words);
    }
    let none = json!({"liveMigration": null});
    for shoot in ["planted", "planted-theirs"] {
        garden.status(&admin, shoot, none.clone()).await;
    }
}
