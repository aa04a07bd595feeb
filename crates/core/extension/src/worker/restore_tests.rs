//! The objects that follow from a machine state, without a server.
#![allow(clippy::unwrap_used)]

use super::*;

fn set(name: &str, hash: &str, class: &str) -> MachineSet {
    let of_it = json!({"name": "d-z2", "machine-template-hash": hash});
    let of_machines = json!({
        "name": "d-z2", "machine-template-hash": hash, "worker.gardener.cloud/pool": "a", "topology.kubernetes.io/zone": "x",
    });
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": of_machines, "uid": name},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": of_it},
            "template": {"metadata": {"labels": of_machines}, "spec": {"class": {"name": class}}},
        },
    }))
    .unwrap()
}

fn machine(hash: &str, class: &str) -> Machine {
    serde_json::from_value(json!({
        "metadata": {"name": "m", "labels": {"name": "d-z2", "machine-template-hash": hash}},
        "spec": {"class": {"name": class}},
    }))
    .unwrap()
}

/// A machine without an owning set would be surplus, and the set would create a replacement.
#[test]
fn a_machine_belongs_to_the_set_that_selects_it() {
    let sets = [set("old", "1", "c-old"), set("new", "2", "c-new")];
    let of = |hash, class| set_of(&machine(hash, class), &sets).map(ResourceExt::name_any);
    assert_eq!(of("1", "c-old").as_deref(), Some("old"));
    assert_eq!(of("2", "c-new").as_deref(), Some("new"));
    assert_eq!(of("3", "c-new"), None);
    let mut alike = sets.clone();
    for set in &mut alike {
        let only_name = [(labels::NAME.to_owned(), "d-z2".to_owned())].into();
        set.spec.selector.as_mut().unwrap().match_labels = Some(only_name);
    }
    let found = set_of(&machine("2", "c-new"), &alike).map(ResourceExt::name_any);
    assert_eq!(found.as_deref(), Some("new"), "the class tells");
}

/// A reconcile finds the name by pool and zone; a new name would replace the Node of each machine.
#[test]
fn a_deployment_is_known_again_by_pool_and_zone() {
    let carried = MachineDeploymentState {
        replicas: 2,
        machine_sets: vec![set("old", "1", "c-old")],
        machines: Vec::new(),
    };
    let made = deployment("d-z2", &carried).unwrap().unwrap();
    assert_eq!(made.labels()[labels::POOL], "a");
    assert_eq!(made.labels()[labels::ZONE], "x");
    let template = json!(made.spec.template);
    assert_eq!(template["metadata"]["labels"].get(labels::TEMPLATE_HASH), None);
    assert_eq!(made.spec.replicas, Some(2));
    assert_eq!(
        deployment("none", &MachineDeploymentState::default()).unwrap(),
        None
    );
}

#[test]
fn an_old_class_has_a_secret_here() {
    let class: MachineClass = serde_json::from_value(json!({
        "metadata": {"name": "c-old", "labels": {"worker.gardener.cloud/pool": "a"}}, "providerSpec": {"size": 1},
        "secretRef": {"name": "c-old", "namespace": "elsewhere"},
    }))
    .unwrap();
    let secret = secret_of(&class, &[("a".to_owned(), b"run me".to_vec())].into());
    assert_eq!(secret.data.unwrap()[USER_DATA].0, b"run me");
    let made = json!(class_here(&class, "here"));
    assert_eq!(made["secretRef"], json!({"name": "c-old", "namespace": "here"}));
    assert_eq!(made["providerSpec"], json!({"size": 1}));
}
