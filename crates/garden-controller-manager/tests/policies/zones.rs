//! A zone that is cut off (GEP-21): what names alone can tell is refused at the door (RZ-05, RZ-06).

use api::gardencore::Shoot;
use kube::Api;
use serde_json::{Value, json};

use crate::garden::{Garden, NAMESPACE, allowed, refused, shoot_with_pools};

const ISOLATED: &str = "shoot.gardener.cloud/isolated-zone";

fn zone(id: &Value) -> Value {
    json!({"metadata": {"annotations": {ISOLATED: id}}})
}

fn pool(name: &str, zones: &[&str]) -> Value {
    json!({"name": name, "machine": {"type": "local"}, "minimum": 1, "maximum": 2, "zones": zones})
}

fn pools(pools: &[Value]) -> Value {
    json!({"spec": {"provider": {"workers": pools}}})
}

/// As the gardenlet records it.
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
    refused(
        cut_off("bare", json!("id-a")).await,
        "a shoot without worker pools has no zone",
    );
    let few = "the worker pools have one zone at most";
    allowed(make("narrow", &[pool("a", &["a"]), pool("b", &["a"]), pool("c", &[])]).await);
    refused(cut_off("narrow", json!("id-a")).await, few);
    allowed(make("wide", &[pool("a", &["a", "b"]), pool("b", &["c"])]).await);
    refused(cut_off("wide", json!("")).await, "names no zone");
    allowed(cut_off("wide", json!("id-a")).await);
    refused(
        cut_off("wide", json!("id-b")).await,
        "cannot be changed from id-a to another zone",
    );
    // The name is not known yet, but one zone is no other.
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
        // Taking it away, and setting it again, is for everybody at all times.
        allowed(cut_off("wide", Value::Null).await);
        refused(cut_off("wide", json!("id-b")).await, "zone id-a is not back yet");
        allowed(cut_off("wide", json!("id-a")).await);
    }
    allowed(cut_off("wide", Value::Null).await);
    let back = isolation("id-a", Some("a"), "Failback", "Done");
    garden.status(&shoots, "wide", back).await;
    allowed(cut_off("wide", json!("id-b")).await);
}

/// RZ-05: a pool keeps the zone that it is to have back, and there is always another one.
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
