//! Manifests as users write them: every field is known to the schema (as strict validation of the API server
//! demands), the types read the manifests, and fields that only a provider knows come out unchanged.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::{fs, path::Path};

use api::{
    extensions,
    gardencore::{self, shoot::effects},
    security,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

fn manifests() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests");
    let mut manifests = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for document in serde_yaml_ng::Deserializer::from_str(&text) {
            manifests.push((path.display().to_string(), Value::deserialize(document).unwrap()));
        }
    }
    assert!(!manifests.is_empty());
    manifests
}

#[test]
fn every_field_is_in_the_schema() {
    for (path, manifest) in manifests() {
        let unknown = unknown_fields(&manifest);
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
}

#[test]
fn a_wrong_field_is_noticed() {
    let (_, mut shoot) = manifests()
        .into_iter()
        .find(|(_, m)| m["kind"] == "Shoot")
        .unwrap();
    shoot["spec"]["kubernetes"]["kubeApiServer"] = json!({});
    shoot["spec"]["provider"]["infrastructureConfig"]["anything"] = json!(1);
    assert_eq!(unknown_fields(&shoot), [".spec.kubernetes.kubeApiServer"]);
}

#[test]
fn types_keep_everything() {
    for (path, manifest) in manifests() {
        let written = match manifest["kind"].as_str().unwrap() {
            "Shoot" => round_trip::<gardencore::Shoot>(&manifest),
            "Seed" => round_trip::<gardencore::Seed>(&manifest),
            "Project" => round_trip::<gardencore::Project>(&manifest),
            "CloudProfile" => round_trip::<gardencore::CloudProfile>(&manifest),
            "SecretBinding" => round_trip::<gardencore::SecretBinding>(&manifest),
            "CredentialsBinding" => round_trip::<security::CredentialsBinding>(&manifest),
            "ControllerRegistration" => round_trip::<gardencore::ControllerRegistration>(&manifest),
            "ControllerDeployment" => round_trip::<gardencore::ControllerDeployment>(&manifest),
            "Worker" => round_trip::<extensions::Worker>(&manifest),
            kind => panic!("{path}: no type for {kind}"),
        };
        let mut lost = Vec::new();
        missing(&manifest, &written, "", &mut lost);
        assert!(lost.is_empty(), "{path}: {lost:?}");
    }
}

#[test]
fn fields_without_effect_exist() {
    for (kind, fields) in [
        ("Shoot", effects::SHOOT),
        ("Seed", effects::SEED),
        ("Project", effects::PROJECT),
        ("CloudProfile", effects::CLOUD_PROFILE),
    ] {
        let schema = schema_of("core.gardener.cloud", kind);
        for field in fields {
            let path = field.path.replace("[]", "/items").replace('.', "/properties/");
            let pointer = format!("/properties/{path}");
            assert!(schema.pointer(&pointer).is_some(), "{kind} has no {}", field.path);
        }
    }
}

fn round_trip<T: DeserializeOwned + serde::Serialize>(manifest: &Value) -> Value {
    serde_json::to_value(T::deserialize(manifest).unwrap()).unwrap()
}

fn schema_of(group: &str, kind: &str) -> Value {
    let crd = api::all_crds()
        .into_iter()
        .find(|crd| crd.definition.spec.group == group && crd.definition.spec.names.kind == kind)
        .unwrap_or_else(|| panic!("no definition of {group} {kind}"));
    serde_json::to_value(
        &crd.definition.spec.versions[0]
            .schema
            .as_ref()
            .unwrap()
            .open_api_v3_schema,
    )
    .unwrap()
}

fn unknown_fields(manifest: &Value) -> Vec<String> {
    let group = manifest["apiVersion"]
        .as_str()
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let mut schema = schema_of(group, manifest["kind"].as_str().unwrap());
    for name in ["apiVersion", "kind", "metadata"] {
        schema["properties"][name] = json!({"x-kubernetes-preserve-unknown-fields": true});
    }
    let mut unknown = Vec::new();
    compare(manifest, &schema, "", &mut unknown);
    unknown
}

fn compare(value: &Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = format!("{path}.{name}");
                let known = schema["properties"]
                    .get(name)
                    .or_else(|| schema.get("additionalProperties"));
                match known {
                    Some(schema) => compare(field, schema, &path, unknown),
                    None if schema["x-kubernetes-preserve-unknown-fields"] == true => {}
                    None => unknown.push(path),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                compare(item, &schema["items"], &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// The part of `wanted` that is not in `got`.
fn missing(wanted: &Value, got: &Value, path: &str, lost: &mut Vec<String>) {
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            for (name, value) in wanted {
                missing(
                    value,
                    got.get(name).unwrap_or(&Value::Null),
                    &format!("{path}.{name}"),
                    lost,
                );
            }
        }
        (Value::Array(wanted), Value::Array(got)) if wanted.len() == got.len() => {
            for (index, value) in wanted.iter().enumerate() {
                missing(value, &got[index], &format!("{path}[{index}]"), lost);
            }
        }
        // An empty list or map is the same as none.
        (Value::Array(wanted), Value::Null) if wanted.is_empty() => {}
        (Value::Object(wanted), Value::Null) if wanted.is_empty() => {}
        // `1` and `"1"` are the same quantity.
        (Value::Number(number), Value::String(text)) if number.to_string() == *text => {}
        (wanted, got) if wanted == got => {}
        _ => lost.push(path.to_owned()),
    }
}
