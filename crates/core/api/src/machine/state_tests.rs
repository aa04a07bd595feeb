//! The carried part of machines, and the omitted part.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

const NAMESPACE: &str = "shoot--dev--one";

fn metadata(name: &str, owner: Option<(&str, &str)>) -> Value {
    let owners: Vec<_> = owner
        .map(|(kind, name)| {
            json!({"apiVersion": "machine.sapcloud.io/v1alpha1", "kind": kind, "name": name, "uid": "of-the-source"})
        })
        .into_iter()
        .collect();
    json!({
        "name": name, "namespace": NAMESPACE, "uid": format!("uid-{name}"), "resourceVersion": "7", "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": [labels::FINALIZER], "ownerReferences": owners,
        "labels": {"keep": "me"}, "managedFields": [{"manager": "m", "operation": "Apply"}],
    })
}

fn deployment(name: &str, replicas: i32) -> MachineDeployment {
    let spec = json!({"replicas": replicas, "template": {}});
    serde_json::from_value(json!({"metadata": metadata(name, None), "spec": spec})).unwrap()
}

fn set(name: &str, deployment: &str, replicas: i32, class: &str) -> MachineSet {
    let template = json!({"spec": {"class": {"kind": "MachineClass", "name": class}}});
    serde_json::from_value(json!({
        "metadata": metadata(name, Some(("MachineDeployment", deployment))),
        "spec": {"replicas": replicas, "template": template}, "status": {"replicas": replicas},
    }))
    .unwrap()
}

fn machine(name: &str, set: Option<&str>) -> Machine {
    serde_json::from_value(json!({
        "metadata": metadata(name, set.map(|set| ("MachineSet", set))),
        "spec": {"providerID": format!("local:///{name}"), "class": {"kind": "MachineClass", "name": "old"}},
        "status": {
            "lastKnownState": "k", "currentStatus": {"phase": "Running", "lastUpdateTime": "2026-01-01T00:00:00Z"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
        },
    }))
    .unwrap()
}

fn class(name: &str) -> MachineClass {
    serde_json::from_value(json!({"metadata": metadata(name, None), "providerSpec": {"size": name}})).unwrap()
}

/// A rolling update is under way: the old set still has machines.
fn shoot() -> (
    Vec<MachineDeployment>,
    Vec<MachineSet>,
    Vec<Machine>,
    Vec<MachineClass>,
) {
    let deployments = vec![deployment("a-z1", 2), deployment("a-z2", 0)];
    let sets = vec![
        set("a-z1-new", "a-z1", 1, "new"),
        set("a-z1-old", "a-z1", 1, "old"),
        set("a-z1-ancient", "a-z1", 0, "ancient"),
    ];
    let machines = vec![
        machine("m-2", Some("a-z1-old")),
        machine("m-1", Some("a-z1-new")),
        machine("m-3", Some("a-z1-old")),
    ];
    (
        deployments,
        sets,
        machines,
        vec![class("old"), class("new"), class("ancient")],
    )
}

/// The destination writes a new epoch, and the state is the same before and after.
#[test]
fn the_epoch_in_which_an_object_was_written_is_not_carried() {
    let told = |mut machine: Machine, more: bool| {
        let annotations = machine.annotations_mut();
        annotations.insert(WRITTEN_IN_EPOCH.to_owned(), "3".to_owned());
        if more {
            annotations.insert("keep".to_owned(), "me".to_owned());
        }
        machine
    };
    let carried = |machine| collect(&[], &[], &[machine], &[]);
    let plain = machine("m", None);
    assert_eq!(carried(told(plain.clone(), false)), carried(plain.clone()));
    let kept = carried(told(plain, true)).machine_deployments["without-deployment"].machines[0].clone();
    assert_eq!(kept.annotations().keys().collect::<Vec<_>>(), ["keep"]);
}

#[test]
fn every_machine_is_carried_once_and_under_its_deployment() {
    let (deployments, sets, machines, classes) = shoot();
    let state = collect(&deployments, &sets, &machines, &classes);
    let names = |objects: &[Machine]| objects.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
    let of_z1 = &state.machine_deployments["a-z1"];
    assert_eq!(names(&of_z1.machines), ["m-1", "m-2", "m-3"]);
    assert_eq!(of_z1.replicas, 2);
    let sets: Vec<_> = of_z1.machine_sets.iter().map(ResourceExt::name_any).collect();
    assert_eq!(
        sets,
        ["a-z1-new", "a-z1-old"],
        "one that wants nothing is not carried"
    );
    assert_eq!(
        state.machine_deployments["a-z2"],
        MachineDeploymentState::default()
    );
    assert_eq!((state.machines(), state.is_empty()), (3, false));
    let classes: Vec<_> = state.machine_classes.iter().map(ResourceExt::name_any).collect();
    assert_eq!(
        classes,
        ["new", "old"],
        "an old machine could not be deleted without its class"
    );
}

/// gardener#12579: a state that differs each time is written each time, and the object grew beyond every
/// limit.
#[test]
fn equal_machines_are_equal_bytes_in_any_order() {
    let (mut deployments, mut sets, mut machines, mut classes) = shoot();
    let once = encode(&collect(&deployments, &sets, &machines, &classes)).unwrap();
    deployments.reverse();
    sets.reverse();
    machines.rotate_left(1);
    classes.reverse();
    for machine in &mut machines {
        machine.metadata.resource_version = Some("8".into());
        machine.status.as_mut().unwrap().conditions.clear();
        machine
            .status
            .as_mut()
            .unwrap()
            .current_status
            .as_mut()
            .unwrap()
            .last_update_time = None;
    }
    assert_eq!(
        encode(&collect(&deployments, &sets, &machines, &classes)).unwrap(),
        once
    );
}

#[test]
fn nothing_names_an_object_of_the_former_seed() {
    let (deployments, sets, machines, classes) = shoot();
    let state = collect(&deployments, &sets, &machines, &classes);
    let text = serde_json::to_string(&state).unwrap();
    for trace in [
        "uid",
        "of-the-source",
        "resourceVersion",
        "managedFields",
        "generation",
        "ownerReferences",
        "finalizers",
    ] {
        assert!(!text.contains(trace), "{trace} in {text}");
    }
    let machine = &state.machine_deployments["a-z1"].machines[0];
    assert_eq!(machine.spec.provider_id.as_deref(), Some("local:///m-1"));
    assert_eq!(machine.labels()["keep"], "me");
    let status = machine.status.as_ref().unwrap();
    assert_eq!(status.last_known_state.as_deref(), Some("k"));
    assert_eq!(
        status.current_status.as_ref().unwrap().phase.as_deref(),
        Some("Running")
    );
}

#[test]
fn what_was_going_is_still_going_and_what_belongs_to_nobody_is_not_lost() {
    let mut going = machine("m-1", None);
    let time = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    going.metadata.deletion_timestamp = Some(time);
    let state = collect(&[], &[], &[going], &[]);
    let of_none = &state.machine_deployments["without-deployment"];
    assert!(of_none.machines[0].metadata.deletion_timestamp.is_some());
}

#[test]
fn bytes_lead_back_to_the_state() {
    let (deployments, sets, machines, classes) = shoot();
    let state = collect(&deployments, &sets, &machines, &classes);
    let carried = encode(&state).unwrap();
    assert!(carried.0["state"].is_string(), "{}", carried.0);
    assert_eq!(decode(&carried).unwrap(), state);
}

#[test]
fn garbage_and_bombs_are_refused() {
    for garbage in [
        json!({}),
        json!({"state": "bm8="}),
        json!({"state": 1}),
        json!("x"),
    ] {
        assert!(decode(&RawExtension(garbage)).is_err());
    }
    let (deployments, sets, machines, classes) = shoot();
    let carried = encode(&collect(&deployments, &sets, &machines, &classes)).unwrap();
    assert!(matches!(decode_within(&carried, 100), Err(StateError::TooLarge)));
    let mut cut = carried.clone();
    let whole = cut.0["state"].as_str().unwrap().to_owned();
    cut.0["state"] = json!(&whole[..whole.len() / 8 * 4]);
    assert!(decode(&cut).is_err());
}

/// gardener#12579: the state of a large shoot exceeded the limit of an API server for an object, 1.5 MiB.
#[test]
fn a_thousand_machines_fit_into_a_status() {
    let sets: Vec<_> = (0..20)
        .map(|n| set(&format!("a-z{n}-5f6d7"), &format!("a-z{n}"), 50, "new"))
        .collect();
    let machines: Vec<_> = (0..1000_u64)
        .map(|n| {
            // Names end in letters by chance, ids are random: neither can be packed.
            let chance = format!("{:016x}", (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut machine = machine(
                &format!("a-z{}-5f6d7-{}", n % 20, &chance[..5]),
                Some(&format!("a-z{}-5f6d7", n % 20)),
            );
            machine.spec.provider_id = Some(format!("aws:///eu-west-1a/i-{chance}{}", &chance[..1]));
            machine
                .labels_mut()
                .insert(labels::NODE.into(), format!("ip-10-250-{}-{}", n / 250, n % 250));
            machine
        })
        .collect();
    let state = collect(&[], &sets, &machines, &[class("new")]);
    assert_eq!(state.machines(), 1000);
    let [plain, carried] = [
        serde_json::to_vec(&state).unwrap().len(),
        encode(&state).unwrap().0.to_string().len(),
    ];
    println!("1000 machines: {plain} bytes, carried as {carried}");
    assert!(carried < 150_000, "{plain} bytes are carried as {carried}");
}
