//! Every reader can decode every object that the garden's API server accepts from any writer. A list with an
//! undecodable object fails as a whole. That would end the watch of the kind in every process, for all
//! tenants and seeds.

use api::gardencore::Shoot;
use k8s_openapi::{
    api::coordination::v1::Lease,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    },
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, allowed, refused};

/// Maximum depth of nested fields.
pub const DEPTH: usize = 12;

/// All fields of a Shoot in sequence, with values that a type may not be able to hold.
pub async fn what_is_taken_can_be_read(garden: &Garden) {
    garden
        .shoot("read", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let fields = crate::fields_of_a_shoot();
    let api: Api<DynamicObject> = Api::namespaced_with(
        garden.administrator(),
        NAMESPACE,
        &ApiResource::erase::<Shoot>(&()),
    );
    let (mut unread, mut taken, mut tried) = (Vec::new(), 0, 0);
    for (part, patch) in [("spec", false), ("status", true)] {
        for value in nasty(&fields[part], DEPTH) {
            tried += 1;
            let body = json!({part: value});
            let dry = PatchParams {
                dry_run: true,
                ..PatchParams::default()
            };
            let merge = Patch::Merge(&body);
            let answer = if patch {
                api.patch_status("read", &dry, &merge).await
            } else {
                api.patch("read", &dry, &merge).await
            };
            let Ok(answer) = answer else { continue };
            taken += 1;
            if let Err(error) = serde_json::from_value::<Shoot>(serde_json::to_value(answer).unwrap()) {
                unread.push(format!("{body}: {error}"));
            }
        }
    }
    println!("{tried} Shoots were tried, {taken} of them taken");
    assert!(
        taken > 50,
        "only {taken} of {tried} were taken at all: nothing is shown"
    );
    assert!(unread.is_empty(), "{}", unread.join("\n"));
}

/// Values at the limits for the schema itself, or for each field below the schema beside all required fields
/// there.
pub fn nasty(schema: &JSONSchemaProps, depth: usize) -> Vec<Value> {
    if depth == 0 || schema.x_kubernetes_preserve_unknown_fields == Some(true) {
        return Vec::new();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return vec![json!(4_294_967_296_i64), json!(-4_294_967_296_i64), json!(7)];
    }
    match schema.type_.as_deref() {
        Some("integer") => vec![
            json!(2_147_483_648_i64),
            json!(-2_147_483_649_i64),
            json!(9_223_372_036_854_775_807_i64),
            json!(1e20),
            json!(2.0),
        ],
        Some("number") => vec![json!(1e308), json!(7)],
        Some("string") if schema.format.as_deref() == Some("date-time") => [
            "9999-12-31T23:59:59Z",
            "9999-12-30T22:00:01Z",
            "0000-01-01T00:00:00Z",
            "0000-01-01T00:00:00+23:59",
            // Within the years, and outside in UTC.
            "8999-12-31T23:59:59-23:59",
            "7999-12-31T23:59:59-23:59",
            "1000-01-01T00:00:00+23:59",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.1234567890123Z",
            "2026-06-30T23:59:60Z",
            "2026-01-01t00:00:00z",
            "2026-01-01T00:00:00+24:30",
            "2026-01-01T00:00:00.5Z",
        ]
        .map(Value::from)
        .into(),
        Some("string") if schema.format.as_deref() == Some("byte") => vec![json!("AA"), json!("=")],
        Some("array") => match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(item)) => nasty(item, depth - 1)
                .into_iter()
                .map(|value| json!([value]))
                .chain([json!([])])
                .collect(),
            _ => Vec::new(),
        },
        _ => in_fields(schema, depth),
    }
}

fn in_fields(schema: &JSONSchemaProps, depth: usize) -> Vec<Value> {
    let mut all = Vec::new();
    if let Some(JSONSchemaPropsOrBool::Schema(of_each)) = &schema.additional_properties {
        all.extend(
            nasty(of_each, depth - 1)
                .into_iter()
                .map(|value| json!({"a": value})),
        );
    }
    for (name, field) in schema.properties.iter().flatten() {
        for value in nasty(field, depth - 1) {
            let mut object = filled(schema);
            object[name] = value;
            all.push(object);
        }
    }
    all
}

/// The least that a schema takes.
fn filled(schema: &JSONSchemaProps) -> Value {
    if let Some(first) = schema.enum_.as_ref().and_then(|values| values.first()) {
        return first.0.clone();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return json!(1);
    }
    match schema.type_.as_deref() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("string") if schema.format.as_deref() == Some("date-time") => json!("2026-01-01T00:00:00Z"),
        Some("string") => json!("a"),
        _ => {
            let mut object = json!({});
            for name in schema.required.iter().flatten() {
                let field = schema.properties.as_ref().and_then(|fields| fields.get(name));
                object[name] = field.map_or(Value::Null, filled);
            }
            object
        }
    }
}

/// Fields outside of any schema: metadata that every writer may set, and the Leases of seeds.
pub async fn nobody_writes_times_that_cannot_be_read(garden: &Garden) {
    const LAST: &str = "9999-12-31T23:59:59Z";
    garden
        .shoot("timely", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let shoots: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await.unwrap(), NAMESPACE);
    let nothing = json!({});
    garden::until_allowed(|| garden::try_patch(&shoots, "timely", &nothing)).await;
    let managed = |time: &str| {
        json!({"metadata": {"managedFields": [{
            "manager": "m", "operation": "Update", "apiVersion": "core.gardener.cloud/v1beta1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:purpose": {}}},
        }]}})
    };
    refused(
        garden.patch(&shoots, "timely", managed(LAST)).await,
        "before the year 9000",
    );
    allowed(
        garden
            .patch(&shoots, "timely", managed("2026-01-01T00:00:00Z"))
            .await,
    );
    let tainted = |time: &str| {
        let taint = json!({"key": "t", "effect": "NoSchedule", "timeAdded": time});
        let pool =
            json!({"name": "a", "minimum": 1, "maximum": 1, "machine": {"type": "small"}, "taints": [taint]});
        json!({"spec": {"provider": {"workers": [pool]}}})
    };
    refused(garden.patch(&shoots, "timely", tainted(LAST)).await, "timeAdded");

    let own = |client: &Client| Api::<Lease>::namespaced(client.clone(), "gardener-system-seed-lease");
    let lease = |time: &str| -> Lease {
        serde_json::from_value(json!({"metadata": {"name": "seed-a"}, "spec": {"renewTime": time}})).unwrap()
    };
    let admin = own(&garden.administrator());
    if admin.get_opt("seed-a").await.unwrap().is_none() {
        admin
            .create(&PostParams::default(), &lease("2026-01-01T00:00:00.000000Z"))
            .await
            .unwrap();
    }
    let seed = own(&garden.seed_a);
    for field in ["renewTime", "acquireTime"] {
        let late = json!({"spec": {field: "9999-12-31T23:59:59.000000Z"}});
        let late = seed
            .patch("seed-a", &PatchParams::default(), &Patch::Merge(late))
            .await;
        refused(late.map(drop), "before the year 9000");
    }
    let now = json!({"spec": {"renewTime": "2026-01-02T00:00:00.000000Z"}});
    let written = seed
        .patch("seed-a", &PatchParams::default(), &Patch::Merge(now))
        .await;
    assert_eq!(written.unwrap().name_any(), "seed-a");
}
