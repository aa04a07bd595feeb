use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn owner(in_seed: bool) -> Owner {
    Owner {
        in_seed,
        namespace: "shoot--dev--a".to_owned(),
        name: "core".to_owned(),
    }
}

fn handling(key: &str, value: &str) -> Handling {
    let object = json!({"metadata": {"annotations": {key: value}}});
    Handling::from_object(&object).unwrap_or_default()
}

#[rstest]
#[case("ignore", "true", Handling { once: true, ..Handling::default() })]
#[case("ignore", "1", Handling { once: true, ..Handling::default() })]
#[case("ignore", "yes", Handling::default())]
#[case("ignore", "false", Handling::default())]
#[case("mode", "Ignore", Handling { released: true, ..Handling::default() })]
#[case("mode", "ignore", Handling::default())]
#[case("keep-object", "true", Handling { kept: true, ..Handling::default() })]
#[case("skip-health-check", "True", Handling { unjudged: true, ..Handling::default() })]
#[case("delete-on-invalid-update", "t", Handling { remade: true, ..Handling::default() })]
#[case("preserve-replicas", "T", Handling { own_replicas: true, ..Handling::default() })]
#[case("preserve-resources", "TRUE", Handling { own_resources: true, ..Handling::default() })]
#[case("finalize-deletion-after", "1m30s", Handling { finalized_after: Some(std::time::Duration::from_secs(90)), ..Handling::default() })]
#[case("what-nobody-knows", "true", Handling::default())]
fn annotations_say_how_an_object_is_handled(#[case] key: &str, #[case] value: &str, #[case] is: Handling) {
    assert_eq!(handling(&format!("resources.gardener.cloud/{key}"), value), is);
}

#[rstest]
#[case(true, "seed:shoot--dev--a/core")]
#[case(false, "shoot--dev--a/core")]
fn an_origin_leads_back(#[case] in_seed: bool, #[case] origin: &str) {
    assert_eq!(owner(in_seed).origin(), origin);
    assert_eq!(Owner::of_origin(origin, in_seed), Some(owner(in_seed)));
    assert_eq!(Owner::of_origin(origin, !in_seed), None, "of another process");
}

fn dress(manifest: &Value, key: &Key, labels: &[(&str, &str)]) -> Value {
    let labels: BTreeMap<_, _> = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    dressed(
        manifest,
        key,
        &Dress {
            owner: &owner(false),
            labels: &labels,
        },
    )
}

#[test]
fn an_object_gets_its_marks_and_loses_what_the_server_says() {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "status": {}, "data": {"a": "b"},
        "metadata": {"name": "c", "uid": "1", "resourceVersion": "2", "labels": {"x": "y", "z": "old"}}});
    let key = Key::new("v1", "ConfigMap", Some("n"), "c");
    assert_eq!(
        dress(&manifest, &key, &[("z", "new")]),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
        "metadata": {"name": "c", "namespace": "n",
            "labels": {"x": "y", "z": "new", "resources.gardener.cloud/managed-by": "gardener"},
            "annotations": {"resources.gardener.cloud/origin": "shoot--dev--a/core"}}})
    );
    let cluster_wide = Key::new("v1", "ConfigMap", None, "c");
    assert_eq!(
        dress(&json!({"metadata": {"namespace": "n"}}), &cluster_wide, &[])["metadata"]["namespace"],
        Value::Null
    );
}

#[test]
fn labels_go_into_pods_of_workloads_and_nowhere_else() {
    let of_pods = json!({"spec": {"template": {"spec": {"containers": []}}}});
    let of_others = json!({"spec": {"template": {"spec": {"x": 1}}}});
    let key = Key::new("apps/v1", "Deployment", Some("n"), "d");
    let labels = [("a", "b")];
    assert_eq!(
        dress(&of_pods, &key, &labels)["spec"]["template"]["metadata"]["labels"],
        json!({"a": "b"})
    );
    assert_eq!(dress(&of_others, &key, &labels)["spec"], of_others["spec"]);
    assert_eq!(dress(&of_pods, &key, &[])["spec"], of_pods["spec"]);
}

/// The API server does not track the manager of `stringData`, so a change of the field would be missed.
#[test]
fn plain_data_of_a_secret_is_encoded() {
    let key = Key::new("v1", "Secret", Some("n"), "s");
    let secret = dress(
        &json!({"stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
        &key,
        &[],
    );
    assert_eq!(
        (&secret["data"], &secret["stringData"]),
        (&json!({"a": "Yg==", "c": "ZA=="}), &Value::Null)
    );
}

#[test]
fn what_others_stand_on_comes_first() {
    let phase = |version, kind| Phase::from_key(&Key::new(version, kind, None, "a"));
    assert_eq!(
        phase("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        Phase::Ground
    );
    assert_eq!(phase("v1", "Namespace"), Phase::Ground);
    assert_eq!(phase("example.org/v1", "Namespace"), Phase::Rest);
    assert!(Phase::Ground < Phase::Rest);
}
