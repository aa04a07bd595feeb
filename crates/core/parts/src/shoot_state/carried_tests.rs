//! Entries that a hostile source could write into a ShootState, piece by piece, and entries of an honest
//! source.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use api::gardencore::ShootState;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::*;
use crate::shoot_state::{content, piece::pieces_of};

const TOKEN: &str = "kubernetes.io/service-account-token";

fn key(name: &str) -> Value {
    json!({"name": name, "type": "secret", "labels": {"persist": "true"}, "data": {"data": {"k": "dg=="}, "type": "Opaque"}})
}

/// A ShootState as a seed collects the content.
fn honest() -> Value {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": {"k": "dg=="},
        "metadata": {"name": "of-provider", "labels": {"a": "b"}},
    });
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}, "metadata": {"name": "zones"}});
    let reference = |kind: &str, name: &str| json!({"name": "r", "resourceRef": {"apiVersion": "v1", "kind": kind, "name": name}});
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "gardener": [key("ca"), key("worker-key")],
            "extensions": [{
                "kind": "Infrastructure", "name": "web", "state": {"networkID": "n1"},
                "resources": [reference("Secret", "of-provider"), reference("ConfigMap", "zones")],
            }],
            "resources": [
                {"apiVersion": "v1", "kind": "Secret", "name": "of-provider", "data": secret},
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "zones", "data": map},
            ],
        },
    })
}

fn judged(state: Value) -> Result<()> {
    let state: ShootState = serde_json::from_value(state).unwrap();
    let mut check = Check::new(&state.name_any());
    for piece in pieces_of(state.spec) {
        check.piece(&piece)?;
    }
    Ok(())
}

/// Asserts that the state is refused for this reason with `value` at `pointer`.
fn refused_with(pointer: &str, value: Value, reason: &str) {
    let mut state = honest();
    *state.pointer_mut(pointer).unwrap() = value;
    let error = judged(state).unwrap_err();
    assert_eq!(error.class(), "Config");
    let message = error.to_string();
    assert!(message.contains(reason), "{message}");
    assert!(
        message.contains("ShootState web") && message.contains("put its former content back"),
        "{message}"
    );
}

#[test]
fn what_a_seed_collects_is_accepted() {
    judged(honest()).unwrap();
    judged(json!({"metadata": {"name": "web"}, "spec": {}})).unwrap();
}

/// The attack: the destination's token controller fills the Secret for a service account that the source
/// names.
#[test]
fn no_token_of_a_service_account_is_made() {
    let reason = "are not carried";
    refused_with("/spec/gardener/1/data/type", json!(TOKEN), reason);
    refused_with("/spec/resources/0/data/type", json!(TOKEN), reason);
    for type_ in ["bootstrap.kubernetes.io/token", "kubernetes.io/new", "token"] {
        assert!(!is_plain(type_), "{type_} may be filled or acted on by somebody");
    }
    for type_ in [
        "Opaque",
        "kubernetes.io/tls",
        "example.test/key",
        "helm.sh/release.v1",
    ] {
        assert!(is_plain(type_), "{type_}");
    }
}

#[test]
fn only_secrets_with_the_label_of_carried_ones_are_taken_for_such() {
    refused_with("/spec/gardener/1/labels", json!({}), "no label persist=true");
    refused_with(
        "/spec/gardener/1/labels/persist",
        json!("yes"),
        "no label persist=true",
    );
    refused_with("/spec/gardener/1/type", json!("machine-state"), "its type is");
    refused_with("/spec/gardener/1/name", json!("ca"), "two of that name");
    for name in [
        "etcd-server",
        "etcd-backup",
        "source-etcd-backup",
        "cloudprovider",
        "managedresource-addons",
    ] {
        let reason = "each seed creates the Secret of this name itself";
        refused_with("/spec/gardener/1/name", json!(name), reason);
    }
}

/// An API server reports a request that is too large as a failure, and a restore repeats such a failure
/// without an end.
#[test]
fn a_secret_that_fits_into_no_api_server_is_refused() {
    let reason = "bytes of labels, data keys and type";
    let long = "x".repeat(MOST_NAMES);
    let labels = json!({"persist": "true", "x": long});
    refused_with("/spec/gardener/1/labels", labels, reason);
    refused_with(
        "/spec/gardener/1/data/type",
        json!(format!("example.test/{long}")),
        reason,
    );
    let mut data = json!({"k": "dg=="});
    data[long] = json!("dg==");
    refused_with("/spec/gardener/1/data/data", data, reason);
    let data = json!({"k": "A".repeat(4 * (MOST_DATA / 3 + 1))});
    refused_with("/spec/gardener/1/data/data", data, "bytes of data");
}

/// A provider may use the secrets manager under a separate identity, with separate names.
#[test]
fn secrets_of_another_manager_are_carried() {
    for labels in [
        json!({"persist": "true", "managed-by": "secrets-manager", "manager-identity": "provider-x"}),
        json!({"persist": "true", "managed-by": "secrets-manager"}),
        json!({"persist": "true", "managed-by": "secrets-manager", "manager-identity": "gardenlet"}),
    ] {
        let mut state = honest();
        state["spec"]["gardener"][1]["labels"] = labels;
        judged(state).unwrap();
    }
}

/// A name becomes part of the path of a request.
#[test]
fn a_name_that_is_a_path_is_refused() {
    let path = "../../kube-system/secrets/x";
    let reason = "no name of an object";
    refused_with("/spec/gardener/1/name", json!(path), reason);
    refused_with("/spec/extensions/0/name", json!(path), reason);
    refused_with("/spec/resources/0/name", json!(path), reason);
    for name in ["", ".", "a..b", "-a", "A", "a/b", &"a".repeat(254)] {
        assert!(!is_name(name), "{name}");
    }
    for name in ["a", "a-b.c", "1"] {
        assert!(is_name(name), "{name}");
    }
}

#[test]
fn objects_of_foreign_kinds_are_refused() {
    let reason = "only Secrets and ConfigMaps are carried";
    for kind in ["Pod", "RoleBinding", "ServiceAccount"] {
        refused_with("/spec/resources/0/kind", json!(kind), reason);
        refused_with(
            "/spec/extensions/0/resources/0/resourceRef/kind",
            json!(kind),
            reason,
        );
    }
    refused_with("/spec/resources/0/apiVersion", json!("example.test/v1"), reason);
    refused_with(
        "/spec/extensions/0/kind",
        json!("Cluster"),
        "no kind of extension object",
    );
}

#[test]
fn objects_that_no_state_refers_to_and_keys_of_the_gardenlet_are_refused() {
    let nothing = "no state of an extension object refers to it";
    refused_with("/spec/extensions/0/resources", json!([]), nothing);
    refused_with("/spec/resources/0/name", json!("other"), nothing);
    for name in ["gardenlet", "ca"] {
        let mut state = honest();
        for pointer in [
            "/spec/resources/0/name",
            "/spec/resources/0/data/metadata/name",
            "/spec/extensions/0/resources/0/resourceRef/name",
        ] {
            *state.pointer_mut(pointer).unwrap() = json!(name);
        }
        let message = judged(state).unwrap_err().to_string();
        assert!(message.contains("not an extension"), "{message}");
    }
}

/// A former version carried the credentials of the provider where a state refers to them.
#[test]
fn a_reference_to_a_secret_of_each_seed_refuses_no_shoot_state() {
    let mut state = honest();
    for pointer in [
        "/spec/resources/0/name",
        "/spec/resources/0/data/metadata/name",
        "/spec/extensions/0/resources/0/resourceRef/name",
    ] {
        *state.pointer_mut(pointer).unwrap() = json!("cloudprovider");
    }
    judged(state).unwrap();
    let refers = |kind: &str, name: &str| {
        let target = json!({"apiVersion": "v1", "kind": kind, "name": name});
        is_created_by_seed(&serde_json::from_value(target).unwrap())
    };
    for name in [
        "cloudprovider",
        "etcd-backup",
        "managedresource-x",
        "ca",
        "gardenlet",
    ] {
        assert!(refers("Secret", name), "{name}");
    }
    assert!(!refers("Secret", "of-provider") && !refers("ConfigMap", "cloudprovider"));
}

#[test]
fn owners_finalizers_and_foreign_fields_are_refused() {
    let reason = "more than a name, labels, annotations, data and a type";
    for (key, value) in [
        (
            "ownerReferences",
            json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]),
        ),
        ("finalizers", json!(["x/y"])),
        ("namespace", json!("kube-system")),
        ("uid", json!("u")),
        ("surprise", json!("s")),
    ] {
        let mut metadata = json!({"name": "of-provider"});
        metadata[key] = value;
        refused_with("/spec/resources/0/data/metadata", metadata, reason);
    }
    let mut secret = honest().pointer("/spec/resources/0/data").unwrap().clone();
    secret["stringData"] = json!({"k": "v"});
    refused_with("/spec/resources/0/data", secret, reason);
    refused_with(
        "/spec/resources/0/data/metadata/name",
        json!("another"),
        "its content is named \"another\"",
    );
    refused_with("/spec/resources/0/data/data", json!("hunter2"), "does not decode");
}

/// A collected object passes the check: the functions that collect and accept an object agree.
#[test]
fn an_object_of_a_seed_is_carried_without_what_the_seed_knew_of_it() {
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {
            "name": "zones", "namespace": "shoot--dev--web", "uid": "u", "resourceVersion": "7",
            "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x/y"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
        },
        "data": {"k": "v"}, "immutable": true,
    }))
    .unwrap();
    let carried = content(map).unwrap();
    assert_eq!(
        carried.0,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}, "immutable": true,
            "metadata": {"name": "zones", "labels": {"a": "b"}, "annotations": {"c": "d"}}})
    );
    let mut state = honest();
    state["spec"]["resources"][1]["data"] = carried.0;
    judged(state).unwrap();
}

#[test]
fn the_kinds_are_those_of_the_suite_that_live_in_a_namespace() {
    let known: BTreeMap<_, _> = api::all_crds()
        .into_iter()
        .filter(|crd| crd.definition.spec.group == "extensions.gardener.cloud")
        .map(|crd| (crd.definition.spec.names.kind, crd.definition.spec.scope))
        .filter(|(_, scope)| scope == "Namespaced")
        .collect();
    assert_eq!(known.into_keys().collect::<Vec<_>>(), KINDS);
}
