//! An isolated zone (GEP-21): policies refuse invalid values of names (RZ-05, RZ-06).

use api::gardencore::Shoot;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use serde_json::{Value, json};
use testkit::apply_crds;

use crate::garden::{
    Garden, NAMESPACE, allowed, operation, refused, shoot_with_pools, try_apply, until_allowed, until_refused,
};

const ISOLATED: &str = "shoot.gardener.cloud/isolated-zone";
const EXPIRES: &str = "shoot.gardener.cloud/isolated-zone-expires";
const ORDER: &str = "shoot.gardener.cloud/isolated-zone-order";
const CLOSE_NOW: &str = "shoot.gardener.cloud/isolated-zone-close-now";
const DRY_RUN: &str = "shoot.gardener.cloud/isolated-zone-dry-run";

fn zone(id: &Value) -> Value {
    json!({"metadata": {"annotations": {ISOLATED: id}}})
}

fn pool(name: &str, zones: &[&str]) -> Value {
    json!({"name": name, "machine": {"type": "local"}, "minimum": 1, "maximum": 2, "zones": zones})
}

fn pools(pools: &[Value]) -> Value {
    json!({"spec": {"provider": {"workers": pools}}})
}

/// The status as the gardenlet records it.
fn isolation(id: &str, name: Option<&str>, phase: &str, status: &str) -> Value {
    json!({"zoneIsolation": {
        "isolatedZoneID": id, "isolatedZoneCode": name, "phase": phase, "status": status,
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }})
}

/// RZ-06: set and taken away, never changed; and no second zone before the first is back.
pub async fn one_zone_is_cut_off_at_a_time(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let make = |name: &'static str, all: &[Value]| {
        let made = shoot_with_pools(name, "local", &json!(all));
        garden.apply(&shoots, name, made)
    };
    let cut_off = |name: &'static str, id: Value| garden.patch(&shoots, name, zone(&id));
    garden
        .shoot("poolless", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    refused(
        cut_off("poolless", json!("id-a")).await,
        "a shoot without worker pools has no zone",
    );
    let few = "the worker pools have one zone at most";
    allowed(make("narrow", &[pool("a", &["a"]), pool("b", &["a"]), pool("c", &[])]).await);
    refused(cut_off("narrow", json!("id-a")).await, few);
    allowed(make("wide", &[pool("a", &["a", "b"]), pool("b", &["c"])]).await);
    refused(cut_off("wide", json!("")).await, "names no zone");
    let close_now = |value: &'static str| {
        let body = json!({"metadata": {"annotations": {CLOSE_NOW: value}}});
        garden.patch(&shoots, "wide", body)
    };
    let needs_zone = "close-now spends the rest of the budget";
    refused(close_now("true").await, needs_zone);
    allowed(cut_off("wide", json!("id-a")).await);
    refused(close_now("yes").await, needs_zone);
    allowed(close_now("true").await);
    refused(
        cut_off("wide", json!("id-b")).await,
        "cannot be changed from id-a to another zone",
    );
    // The zone's name is not known yet, but a pool with a single zone has no other zone.
    refused(
        garden.patch(&shoots, "wide", pools(&[pool("a", &["b"])])).await,
        few,
    );
    allowed(
        garden
            .patch(&shoots, "wide", pools(&[pool("a", &["a", "b"])]))
            .await,
    );
    for (phase, status) in [
        ("Failover", "InProgress"),
        ("Failover", "Failed"),
        ("Failback", "InProgress"),
    ] {
        let recorded = isolation("id-a", Some("a"), phase, status);
        garden.status(&shoots, "wide", recorded).await;
        // Every user may remove the annotation, and set it again, at all times.
        allowed(cut_off("wide", Value::Null).await);
        refused(cut_off("wide", json!("id-b")).await, "zone id-a is not back yet");
        allowed(cut_off("wide", json!("id-a")).await);
    }
    allowed(cut_off("wide", Value::Null).await);
    let back = isolation("id-a", Some("a"), "Failback", "Done");
    garden.status(&shoots, "wide", back).await;
    allowed(cut_off("wide", json!("id-b")).await);
}

/// RZ-05: a pool keeps the zone for its failback, and the shoot always has a further zone.
pub async fn a_zone_that_is_cut_off_stays_in_its_pools(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let all = json!([pool("a", &["a", "b"]), pool("b", &["a"]), pool("c", &["b"])]);
    let made = shoot_with_pools("sick", "local", &all);
    allowed(garden.apply(&shoots, "sick", made).await);
    allowed(garden.patch(&shoots, "sick", zone(&json!("id-a"))).await);
    let recorded = isolation("id-a", Some("a"), "Failover", "Done");
    garden.status(&shoots, "sick", recorded).await;
    let edit = |pools: Value| garden.patch(&shoots, "sick", pools);
    refused(
        edit(pools(&[pool("a", &["b"]), pool("b", &["b"])])).await,
        "zone a is cut off and cannot be taken out of worker pools a, b meanwhile",
    );
    refused(
        edit(pools(&[pool("c", &["b"]), pool("d", &["c"])])).await,
        "zone a is cut off, and no worker pool would have it any more",
    );
    refused(
        edit(pools(&[pool("a", &["a"]), pool("b", &["a"])])).await,
        "zone a is cut off, and no worker pool would have another one",
    );
    // The annotation alone is gone, the zone is not back.
    allowed(garden.patch(&shoots, "sick", zone(&Value::Null)).await);
    refused(
        edit(pools(&[pool("a", &["b"]), pool("b", &["a"])])).await,
        "cannot be taken out of worker pools a meanwhile",
    );
    allowed(edit(pools(&[pool("a", &["a", "b", "c"]), pool("b", &["a"])])).await);
    allowed(edit(json!({"spec": {"purpose": "production"}})).await);
    let back = isolation("id-a", Some("a"), "Failback", "Done");
    garden.status(&shoots, "sick", back).await;
    allowed(edit(pools(&[pool("a", &["b"])])).await);
}

/// A time must be in the future, and belongs to a zone.
pub async fn a_zone_is_cut_off_until_a_time(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let made = shoot_with_pools("brief", "local", &json!([pool("a", &["a", "b"])]));
    allowed(garden.apply(&shoots, "brief", made).await);
    let last = json!({"lastOperation": operation("Reconcile", "Succeeded")});
    garden.status(&shoots, "brief", last).await;
    let both = |zone: Value, expires: Value| {
        let body = json!({"metadata": {"annotations": {ISOLATED: zone, EXPIRES: expires}}});
        garden.patch(&shoots, "brief", body)
    };
    let id = || json!("id-a");
    refused(
        both(Value::Null, json!("2999-01-01T00:00:00Z")).await,
        "is the time of a zone that is cut off",
    );
    for text in [
        "tomorrow",
        "",
        "2999-01-01",
        "2999-13-01T00:00:00Z",
        "2999-01-01 00:00:00Z",
    ] {
        refused(both(id(), json!(text)).await, "which is no time: write one like");
    }
    // Values with the form of a time that are invalid: the API server's own error.
    refused(
        both(id(), json!("2999-02-30T00:00:00Z")).await,
        "type conversion error from 'string' to 'google.protobuf.Timestamp'",
    );
    refused(
        both(id(), json!("2020-01-01T00:00:00Z")).await,
        "is in the past (2020-01-01T00:00:00Z)",
    );
    allowed(both(id(), json!("2999-01-01T00:00:00Z")).await);
    allowed(both(id(), json!("2999-01-01T08:00:00+02:00")).await);
    refused(both(id(), json!("2020-01-01T00:00:00Z")).await, "is in the past");
    // The zone is taken back by hand, at all times.
    allowed(garden.patch(&shoots, "brief", zone(&Value::Null)).await);
}

/// The order is one of two values, with or without an isolated zone.
pub async fn the_order_of_a_failover_is_a_known_word(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let made = shoot_with_pools("ordered", "local", &json!([pool("a", &["a", "b"])]));
    allowed(garden.apply(&shoots, "ordered", made).await);
    let order = |order: Value, zone: Value| {
        let body = json!({"metadata": {"annotations": {ORDER: order, ISOLATED: zone}}});
        garden.patch(&shoots, "ordered", body)
    };
    for zone in [Value::Null, json!("id-a")] {
        for wrong in ["podsfirst", "", "Never"] {
            refused(
                order(json!(wrong), zone.clone()).await,
                "write CapacityFirst (pods leave the zone when machines elsewhere are ready, the default) or PodsFirst",
            );
        }
        for right in [json!("PodsFirst"), json!("CapacityFirst"), Value::Null] {
            allowed(order(right, zone.clone()).await);
        }
    }
}

/// Two deployments in a zone: the Worker of an earlier release drained only a single deployment.
pub async fn a_pool_names_a_zone_once(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let rule = "a worker pool names each zone once";
    let make = |name: &'static str, of_a: &[&str]| {
        let both = json!([pool("a", of_a), pool("b", &["b", "c"])]);
        garden.apply(&shoots, name, shoot_with_pools(name, "local", &both))
    };
    refused(make("double", &["a", "b", "a"]).await, rule);
    allowed(make("single", &["a", "b"]).await);
    let twice = pools(&[pool("a", &["a", "a"]), pool("b", &["b", "c"])]);
    refused(garden.patch(&shoots, "single", twice).await, rule);

    create_before_the_rule(garden, &shoots, rule).await;
    // All other writes to a Shoot that names a zone twice already stay possible, the fix among them.
    let ready = json!({"observedGeneration": 1});
    garden.status(&shoots, "double", ready).await;
    let label = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"purpose": "testing"}});
    allowed(garden.patch(&shoots, "double", label).await);
    let told = "worker pools a name a zone twice";
    refused(garden.patch(&shoots, "double", zone(&json!("id-a"))).await, told);
    allowed(make("double", &["a", "b"]).await);
    allowed(garden.patch(&shoots, "double", zone(&json!("id-a"))).await);
}

/// Creates Shoot `double`, whose pool `a` names a zone twice, with the definition of an earlier release.
async fn create_before_the_rule(garden: &Garden, shoots: &Api<Shoot>, rule: &str) {
    let definitions: Api<CustomResourceDefinition> = Api::all(garden.administrator());
    let mut now = definitions.get("shoots.core.gardener.cloud").await.unwrap();
    now.metadata.managed_fields = None;
    now.metadata.resource_version = None;
    let mut before = serde_json::to_value(&now).unwrap();
    assert!(remove_rule(&mut before, rule), "the definition has no such rule");
    let before = serde_json::from_value(before).unwrap();
    let double = json!([pool("a", &["a", "b", "a"]), pool("b", &["b", "c"])]);
    let double = shoot_with_pools("double", "local", &double);
    apply_crds(&garden.administrator(), &[before]).await.unwrap();
    until_allowed(|| try_apply(shoots, "double", double.clone())).await;
    allowed(garden.apply(shoots, "double", double).await);
    apply_crds(&garden.administrator(), &[now]).await.unwrap();
    let again = shoot_with_pools("again", "local", &json!([pool("a", &["a", "a"])]));
    until_refused(rule, || try_apply(shoots, "again", again.clone())).await;
}

/// Removes validation rules with these words; returns whether such a rule existed.
fn remove_rule(schema: &mut Value, words: &str) -> bool {
    match schema {
        Value::Array(list) => {
            let before = list.len();
            list.retain(|entry| !entry["message"].as_str().is_some_and(|text| text.contains(words)));
            let is_removed = list.len() < before;
            list.iter_mut()
                .fold(is_removed, |removed, entry| remove_rule(entry, words) || removed)
        }
        Value::Object(fields) => {
            let removed = fields.values_mut().map(|field| remove_rule(field, words));
            removed.filter(|is_removed| *is_removed).count() > 0
        }
        _ => false,
    }
}

/// The gardenlet answers, and removes the question; the gardenlet ends no isolation.
pub async fn a_question_is_answered_by_the_seed_that_has_the_shoot(garden: &Garden) {
    garden
        .shoot("asked", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let ask = json!({"metadata": {"annotations": {DRY_RUN: "id-a"}}});
    allowed(garden.patch(&shoots, "asked", ask.clone()).await);
    let ours: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let theirs: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let taken = json!({"metadata": {"annotations": {DRY_RUN: null}}});
    refused(
        garden.patch(&theirs, "asked", taken.clone()).await,
        "may not write Shoot asked",
    );
    let other = json!({"metadata": {"annotations": {DRY_RUN: "id-b"}}});
    refused(
        garden.patch(&ours, "asked", other).await,
        "may not change annotation",
    );
    allowed(garden.patch(&ours, "asked", taken).await);
}
