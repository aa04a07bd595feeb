//! A seed prepares for a shoot of a different seed only under a grant of garden-controller-manager. A hostile
//! seed without a grant, after the end of a grant, or with a wish for more, writes nothing.

use api::{
    constants::{MIGRATION_PREPARE, condition::PREPARED},
    gardencore::{Shoot, ShootState},
};
use k8s_openapi::api::{core::v1::Secret, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    garden::{Garden, NAMESPACE, allowed, event_in, refused, try_create, try_patch, until_allowed},
    grant_rights,
};

/// The begin of each refusal for seed-b. Two policies may refuse a write, in no order.
const REFUSED: &str = "the gardenlet of seed \"seed-b\" may not";

/// A Shoot on seed-a. Returns the uid.
pub(crate) async fn on_seed_a(garden: &Garden, name: &str) -> String {
    garden
        .shoot(name, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    shoots.get(name).await.unwrap().uid().unwrap()
}

/// A grant for seed-b, with these changes.
pub(crate) fn grant(uid: &str, changes: &Value) -> Value {
    let mut grant = json!({"uid": uid, "source": "seed-a", "destination": "seed-b", "epoch": 1,
        "expiry": "2999-01-01T00:00:00Z"});
    for (field, value) in changes.as_object().into_iter().flatten() {
        grant[field] = value.clone();
    }
    json!({"liveMigration": {"preparation": grant}})
}

/// A report of the seed that prepares.
fn report(type_: &str) -> Value {
    let now = "2026-01-01T00:00:00Z";
    json!({"liveMigration": {"conditions": [{"type": type_, "status": "False", "reason": "R", "message": "m",
        "lastTransitionTime": now, "lastUpdateTime": now}]}})
}

pub(crate) fn shoots_of(client: &kube::Client) -> Api<Shoot> {
    Api::namespaced(client.clone(), NAMESPACE)
}

/// A seed that has no grant reports nothing, and no seed grants the right.
pub async fn a_seed_without_a_grant_prepares_nothing(garden: &Garden) {
    let uid = on_seed_a(garden, "ungranted").await;
    let (a, b) = (shoots_of(&garden.seed_a), shoots_of(&garden.seed_b));
    let nameless = shoots_of(&garden.nameless);
    for status in [report(PREPARED), grant(&uid, &json!({}))] {
        refused(
            garden.patch_status(&b, "ungranted", status.clone()).await,
            REFUSED,
        );
        refused(
            garden.patch_status(&nameless, "ungranted", status).await,
            "may not",
        );
    }
    // A null is no grant, and ends in no error of an expression.
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    for value in [Value::Null, json!({}), json!({"preparation": null})] {
        let operations = json!([{"op": "add", "path": "/status/liveMigration", "value": value}]);
        let body: Patch<()> = Patch::Json(serde_json::from_value(operations).unwrap());
        let params = PatchParams::default();
        let written = admin.patch_status("ungranted", &params, &body).await;
        allowed(written.map(drop));
        refused(
            garden.patch_status(&b, "ungranted", report(PREPARED)).await,
            REFUSED,
        );
        let reconciled = json!({"observedGeneration": 1});
        allowed(garden.patch_status(&a, "ungranted", reconciled).await);
    }
    // The host neither gives the right nor reports in the name of a destination.
    refused(
        garden
            .patch_status(&a, "ungranted", grant(&uid, &json!({})))
            .await,
        "may not change status.liveMigration.preparation of Shoot ungranted",
    );
    refused(
        garden.patch_status(&a, "ungranted", report(PREPARED)).await,
        "may not change status.liveMigration.conditions of Shoot ungranted",
    );
}

pub async fn a_seed_with_a_grant_reports_one_condition(garden: &Garden) {
    let uid = on_seed_a(garden, "granted").await;
    let (b, manager) = (shoots_of(&garden.seed_b), shoots_of(&garden.manager));
    let c = garden
        .client(
            "gardener.cloud:system:seed:seed-c",
            &["gardener.cloud:system:seeds"],
        )
        .await;
    let c = shoots_of(&c);
    allowed(
        garden
            .patch_status(&manager, "granted", grant(&uid, &json!({})))
            .await,
    );
    allowed(garden.patch_status(&b, "granted", report(PREPARED)).await);
    refused(
        garden.patch_status(&c, "granted", report(PREPARED)).await,
        "the gardenlet of seed \"seed-c\" may not",
    );
    // A longer right, a right for a different residency, and a right for an ally.
    for changes in [
        json!({"expiry": "3999-01-01T00:00:00Z"}),
        json!({"epoch": 2}),
        json!({"source": "seed-c"}),
        json!({"destination": "seed-c"}),
        json!({"uid": "v"}),
    ] {
        let status = grant(&uid, &changes);
        refused(garden.patch_status(&b, "granted", status).await, REFUSED);
    }
    let mut long = report(PREPARED);
    long["liveMigration"]["conditions"][0]["message"] = json!("x".repeat(1025));
    let mut two = report(PREPARED);
    let second = report("Second")["liveMigration"]["conditions"][0].clone();
    let conditions = two["liveMigration"]["conditions"].as_array_mut();
    conditions.unwrap().push(second);
    let mut with_more = report(PREPARED);
    with_more["observedGeneration"] = json!(1);
    for status in [
        report("APIServerAvailable"),
        two,
        long,
        with_more,
        json!({"liveMigration": null}),
        json!({"seedName": "seed-b"}),
        json!({"conditions": []}),
        json!({"ownership": {"epoch": 2}}),
        json!({"formerSeeds": [{"name": "seed-b", "epoch": 1}]}),
    ] {
        refused(garden.patch_status(&b, "granted", status).await, REFUSED);
    }
    for metadata in [
        json!({"finalizers": ["gardener"]}),
        json!({"labels": {"shoot.gardener.cloud/status": "healthy"}}),
        json!({"annotations": {"x": "y"}}),
    ] {
        let body = json!({"metadata": metadata});
        refused(garden.patch(&b, "granted", body).await, REFUSED);
    }
    let spec = json!({"spec": {"purpose": "production"}});
    refused(garden.patch(&b, "granted", spec).await, REFUSED);
}

/// A withdrawn grant, and each change that voids a grant without a write of the grant.
pub async fn a_grant_that_has_ended_gives_no_right(garden: &Garden) {
    let uid = on_seed_a(garden, "lapsed").await;
    let (b, manager) = (shoots_of(&garden.seed_b), shoots_of(&garden.manager));
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    allowed(
        garden
            .patch_status(&manager, "lapsed", grant(&uid, &json!({})))
            .await,
    );
    allowed(garden.patch_status(&b, "lapsed", report(PREPARED)).await);
    allowed(
        garden
            .patch_status(&manager, "lapsed", json!({"liveMigration": null}))
            .await,
    );
    refused(garden.patch_status(&b, "lapsed", report(PREPARED)).await, REFUSED);
    for changes in [
        json!({"uid": "of-an-earlier-shoot"}),
        json!({"source": "seed-c"}),
        json!({"epoch": 2}),
    ] {
        garden.status(&admin, "lapsed", grant(&uid, &changes)).await;
        refused(garden.patch_status(&b, "lapsed", report(PREPARED)).await, REFUSED);
    }
    // A takeover by a third seed, in the next epoch.
    garden.status(&admin, "lapsed", grant(&uid, &json!({}))).await;
    let taken = json!({"seedName": "seed-c", "ownership": {"epoch": 2}});
    garden.status(&admin, "lapsed", taken).await;
    refused(garden.patch_status(&b, "lapsed", report(PREPARED)).await, REFUSED);
    let back = json!({"seedName": "seed-a", "ownership": {"epoch": 3}});
    garden.status(&admin, "lapsed", back).await;
    refused(garden.patch_status(&b, "lapsed", report(PREPARED)).await, REFUSED);
    // A Shoot in deletion.
    garden
        .status(&admin, "lapsed", grant(&uid, &json!({"epoch": 3})))
        .await;
    allowed(garden.patch_status(&b, "lapsed", report(PREPARED)).await);
    garden.finalizer(&admin, "lapsed").await;
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    allowed(garden.patch(&admin, "lapsed", confirmed).await);
    admin.delete("lapsed", &DeleteParams::default()).await.unwrap();
    let mut later = report(PREPARED);
    later["liveMigration"]["conditions"][0]["reason"] = json!("Later");
    refused(garden.patch_status(&b, "lapsed", later).await, REFUSED);
}

/// A hand-over of the host removes the fields of a preparation, as the hand-over bounds the status.
pub async fn a_host_ends_a_preparation_and_changes_none(garden: &Garden) {
    let uid = on_seed_a(garden, "host-ends").await;
    let (a, manager) = (shoots_of(&garden.seed_a), shoots_of(&garden.manager));
    allowed(
        garden
            .patch_status(&manager, "host-ends", grant(&uid, &json!({})))
            .await,
    );
    let word = "may not change status.liveMigration.preparation of Shoot host-ends";
    for status in [
        grant(&uid, &json!({"expiry": "3999-01-01T00:00:00Z"})),
        grant(&uid, &json!({"destination": "seed-c"})),
        json!({"liveMigration": {"preparation": null}}),
    ] {
        refused(garden.patch_status(&a, "host-ends", status).await, word);
    }
    // The own writes of the host pass beside the grant.
    let reconciled = json!({"observedGeneration": 1});
    allowed(garden.patch_status(&a, "host-ends", reconciled).await);
    allowed(
        garden
            .patch_status(&a, "host-ends", json!({"liveMigration": null}))
            .await,
    );
}

/// The request takes the right of a move, as the withdrawal does.
pub async fn a_preparation_takes_the_right_of_a_move(garden: &Garden) {
    on_seed_a(garden, "asked-for").await;
    garden.shoot("asked-early", "seed-a", None, ("", "")).await;
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let editor: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await.unwrap(), NAMESPACE);
    let (a, manager) = (shoots_of(&garden.seed_a), shoots_of(&garden.manager));
    let ask = |seed: Value| json!({"metadata": {"annotations": {MIGRATION_PREPARE: seed}}});
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    until_allowed(|| try_patch(&editor, "asked-for", &label)).await;
    refused(
        garden.patch(&editor, "asked-for", ask(json!("seed-b"))).await,
        "that takes the right to update shoots/binding",
    );
    for client in [&a, &manager] {
        // By two policies, in no order.
        refused(
            garden.patch(client, "asked-for", ask(json!("seed-b"))).await,
            "shoots.core.gardener.cloud \"asked-for\" is forbidden",
        );
    }
    for (name, seed, words) in [
        ("asked-for", "seed-a", "seed seed-a has shoot asked-for already"),
        ("asked-for", "seed-b/status", "does not have the name of a Seed"),
        ("asked-early", "seed-b", "no seed has the shoot yet"),
    ] {
        refused(garden.patch(&admin, name, ask(json!(seed))).await, words);
    }
    allowed(garden.patch(&admin, "asked-for", ask(json!("seed-b"))).await);
    // As a replace of a manifest that lacks the annotation.
    refused(
        garden.patch(&editor, "asked-for", ask(Value::Null)).await,
        "keep the annotation in the manifest, or use apply or patch",
    );
    refused(
        garden.patch(&a, "asked-for", ask(Value::Null)).await,
        "shoots.core.gardener.cloud \"asked-for\" is forbidden",
    );
    // The answer to a request that has ended.
    allowed(garden.patch(&manager, "asked-for", ask(Value::Null)).await);
}

/// garden-controller-manager runs: the destination reads neither the state nor a credential of the shoot.
pub async fn a_grant_gives_no_right_to_read(garden: &Garden) {
    let uid = on_seed_a(garden, "read-by-none").await;
    let manager = shoots_of(&garden.manager);
    allowed(
        garden
            .patch_status(&manager, "read-by-none", grant(&uid, &json!({})))
            .await,
    );
    garden.secret("read-by-none.kubeconfig", "Opaque").await;
    let _controllers = grant_rights(garden);
    let states = |client: &kube::Client| Api::<ShootState>::namespaced(client.clone(), NAMESPACE);
    let (of_a, of_b) = (states(&garden.seed_a), states(&garden.seed_b));
    let fill = json!({"metadata": {"annotations": {"gardener.cloud/timestamp": "2026-01-01T00:00:00Z"}}});
    // The controller writes the rights of all seeds in the namespace at once.
    until_allowed(|| try_patch(&of_a, "read-by-none", &fill)).await;
    allowed(of_a.get("read-by-none").await.map(drop));
    let events: Api<Event> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let event = || {
        let mut event = event_in(NAMESPACE, "seed-b");
        event.metadata.name = Some("prepared".into());
        event
    };
    until_allowed(|| try_create(&events, event())).await;
    allowed(try_create(&events, event()).await);
    let secrets: Api<Secret> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    refused(of_b.get("read-by-none").await.map(drop), "cannot get resource");
    refused(
        secrets.get("read-by-none.kubeconfig").await.map(drop),
        "cannot get resource",
    );
    refused(
        garden.patch(&of_b, "read-by-none", fill).await,
        "cannot patch resource",
    );
    // For the scenarios that follow.
    let none = json!({"liveMigration": null});
    allowed(garden.patch_status(&manager, "read-by-none", none).await);
}
