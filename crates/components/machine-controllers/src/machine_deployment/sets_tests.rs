#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
use rstest::rstest;

use super::*;

fn deployment(class: &str) -> MachineDeployment {
    serde_json::from_value(json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineDeployment",
        "metadata": {"name": "pool", "namespace": "n", "uid": "d"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"name": "pool"}},
            "template": {"metadata": {"labels": {"name": "pool"}}, "spec": {"class": {"name": class}}},
        },
    }))
    .unwrap()
}

fn set(name: &str, class: &str, replicas: i32, revision: &str) -> MachineSet {
    serde_json::from_value(json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineSet",
        "metadata": {"name": name, "annotations": {REVISION: revision}},
        "spec": {"replicas": replicas, "template": {
            "metadata": {"labels": {"name": "pool", TEMPLATE_HASH: "8765432109"}},
            "spec": {"class": {"name": class}, "drainTimeout": "1h"},
        }},
    }))
    .unwrap()
}

fn names(sets: &[MachineSet]) -> Vec<String> {
    sets.iter().map(ResourceExt::name_any).collect()
}

/// gardener/gardener#5471: a set that is not recognised is a rolling update of every node.
#[test]
fn a_restored_set_is_known_by_its_template_whatever_its_hash_is() {
    let all = vec![
        set("a", "c1", 0, "1"),
        set("b", "c2", 0, "2"),
        set("c", "c2", 2, "2"),
    ];
    let sets = Sets::sort(all, &deployment("c2").spec.template);
    assert_eq!(
        sets.new.as_ref().unwrap().name_any(),
        "c",
        "the one that is in use"
    );
    assert_eq!(names(&sets.old), ["a", "b"]);
    assert_eq!(sets.outdated_revision(), Some(3), "b has the same revision");
}

#[test]
fn a_new_set_selects_by_its_hash_and_begins_with_none() {
    let sets = Sets::sort(vec![set("a", "c1", 2, "7")], &deployment("c2").spec.template);
    assert!(sets.new.is_none());
    let made = sets.build(&deployment("c2"), 0).unwrap();
    let hash = made.labels()[TEMPLATE_HASH].clone();
    assert_eq!(made.name_any(), format!("pool-{hash}"));
    assert_eq!(made.spec.replicas, Some(0));
    assert_eq!(made.annotations()[REVISION], "8");
    let selector = made.spec.selector.clone().unwrap().match_labels.unwrap();
    assert_eq!(selector[TEMPLATE_HASH], hash);
    assert_eq!(selector["name"], "pool");
    assert!(has_same_template(&made, &deployment("c2").spec.template));
    assert_ne!(
        sets.build(&deployment("c2"), 1).unwrap().name_any(),
        made.name_any()
    );
}

/// Beside the template: a new epoch replaces no machine.
#[test]
fn a_set_tells_the_epoch_of_its_deployment() {
    let mut deployment = deployment("c2");
    let sets = Sets::sort(vec![set("a", "c2", 2, "7")], &deployment.spec.template);
    let old = sets.new.as_ref().unwrap();
    assert_eq!(find_changed_epoch(old, &deployment), None);
    let annotations = deployment.annotations_mut();
    annotations.insert(WRITTEN_IN_EPOCH.to_owned(), "3".to_owned());
    assert_eq!(find_changed_epoch(old, &deployment).unwrap(), "3");
    let made = sets.build(&deployment, 0).unwrap();
    assert_eq!(find_changed_epoch(&made, &deployment), None);
    assert!(has_same_template(&made, &deployment.spec.template));
    assert!(has_same_template(old, &deployment.spec.template));
}

#[test]
fn bounds_are_changed_where_they_are_and_the_class_of_an_old_set_stays() {
    let mut deployment = deployment("c2");
    let spec = deployment.spec.template.spec.as_mut().unwrap();
    spec.health_timeout = Some("5m".into());
    let old = set("a", "c1", 2, "1");
    let mut whole = json!(old.spec);
    json_patch::merge(&mut whole, &in_place_patch(&old, &deployment, false).unwrap());
    let changed = MachineSet {
        spec: serde_json::from_value(whole).unwrap(),
        ..old
    };
    let spec = changed.spec.template.clone().unwrap().spec.unwrap();
    assert_eq!(spec.class.unwrap().name.unwrap(), "c1");
    assert_eq!(
        (spec.health_timeout.as_deref(), spec.drain_timeout),
        (Some("5m"), None)
    );
    assert_eq!(in_place_patch(&changed, &deployment, false), None);
}

#[rstest]
#[case::label_is_removed(json!({"metadata": {"labels": {"a": "1"}, "annotations": {"c": "3"}}}))]
#[case::annotations_are_removed(json!({"metadata": {"labels": {"a": "1", "b": "2"}}}))]
#[case::all_labels_are_removed(json!({"metadata": {"labels": {}}}))]
#[case::node_template_is_removed(Value::Null)]
fn an_entry_that_leaves_the_node_template_is_removed_once(#[case] wanted: Value) {
    let mut deployment = deployment("c2");
    let node_template = |body: &Value| serde_json::from_value(body.clone()).unwrap();
    deployment.spec.template.spec.as_mut().unwrap().node_template = node_template(&wanted);
    let mut old = set("a", "c1", 2, "1");
    let metadata = json!({"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}});
    let template = old.spec.template.as_mut().unwrap().spec.as_mut().unwrap();
    template.node_template = node_template(&json!({"metadata": metadata}));
    let mut whole = json!(old.spec);
    json_patch::merge(&mut whole, &in_place_patch(&old, &deployment, false).unwrap());
    let changed = MachineSet {
        spec: serde_json::from_value(whole).unwrap(),
        ..old
    };
    assert_eq!(in_place_patch(&changed, &deployment, false), None);
}

#[test]
fn empty_old_sets_are_kept_up_to_a_limit() {
    let all = vec![
        set("a", "c1", 0, "1"),
        set("b", "c3", 0, "3"),
        set("c", "c2", 0, "2"),
        set("d", "c4", 1, "4"),
        set("e", "c9", 2, "9"),
    ];
    let sets = Sets::sort(all, &deployment("c9").spec.template);
    let of = |limit| -> Vec<_> {
        let gone = sets.removable_sets(limit, |_| true);
        gone.iter().map(|set| set.name_any()).collect()
    };
    assert_eq!(of(None), [""; 0]);
    assert_eq!(of(Some(2)), ["a"]);
    assert_eq!(of(Some(0)), ["a", "c", "b"]);
    assert!(
        sets.removable_sets(Some(0), |_| false).is_empty(),
        "one with machines stays"
    );
}
