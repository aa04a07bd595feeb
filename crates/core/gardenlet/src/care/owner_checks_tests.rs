//! The report of the gardenlet about the owner checks of a shoot.

#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;

fn seed(checks: &Value) -> Seed {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "a"},
        "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "provider": {"type": "local", "region": "local"}, "settings": {"ownerChecks": checks}},
        "status": {"ownerCheckFenceSeconds": 50},
    }))
    .unwrap()
}

fn shoot(status: &Value) -> Shoot {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
        "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
        "status": status,
    }))
    .unwrap()
}

fn etcd(reported: &Value) -> Etcd {
    let mut etcd = Etcd::new(ETCD_MAIN, api::druid::EtcdSpec::default());
    etcd.status = serde_json::from_value(json!({"ownerCheck": reported})).unwrap();
    etcd
}

fn deployment(name: &str, replicas: i32, args: &[&str]) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {}, "template": {"spec": {"containers": [{"name": "one", "args": args}]}}},
    }))
    .unwrap()
}

fn on() -> Value {
    json!({"enabled": true, "authorities": ["192.0.2.1:53"]})
}

fn condition(observed: &ObservedCheck, status: &ShootStatus) -> Option<(ConditionStatus, String, String)> {
    let mut conditions = vec![Condition::new(
        OWNER_CHECKS_COMPLETE,
        ConditionStatus::Unknown,
        "Before",
        "",
        Time(jiff::Timestamp::UNIX_EPOCH),
    )];
    observed.set_condition(status, "a", &Time(jiff::Timestamp::UNIX_EPOCH), &mut conditions);
    let told = api::meta::find_condition(&conditions, OWNER_CHECKS_COMPLETE)?;
    Some((told.status, told.reason.clone(), told.message.clone()))
}

/// A dead seed cannot report its servers.
#[test]
fn the_servers_that_the_seed_asks_are_written_into_the_shoot() {
    let reported = json!({"servers": ["192.0.2.1:53"], "serversNamed": true, "leastFenceSeconds": 60, "hostClock": "Rtc"});
    let status = json!({"seedName": "a", "formerSeeds": [{"name": "b", "epoch": 2}], "ownership": {"epoch": 3, "phase": "Held"},
        "ownerChecks": [{"seedName": "a", "epoch": 1, "terms": "t"}, {"seedName": "b", "epoch": 2}, {"seedName": "c", "epoch": 1}]});
    let shoot = shoot(&status);
    let observed = ObservedCheck::new(&shoot, &seed(&on()), &[etcd(&reported)], &[]);
    let mut status = shoot.status.clone().unwrap();
    let entries = observed.entries(&status, "a").unwrap();
    assert_eq!(
        json!(entries),
        json!([
            {"seedName": "a", "epoch": 3, "servers": ["192.0.2.1:53"], "serversNamed": true, "fenceSeconds": 60, "hostClock": "Rtc",
                "terms": "t"},
            {"seedName": "b", "epoch": 2},
        ])
    );
    status.owner_checks = entries;
    assert_eq!(observed.entries(&status, "a"), None, "nothing is written twice");
    // A process that does not answer any more still checks the same servers.
    let silent = ObservedCheck::new(&shoot, &seed(&on()), &[], &[]);
    let after = silent.entries(&status, "a").unwrap();
    assert_eq!((after[0].servers.len(), after[0].fence_seconds), (1, Some(50)));
}

/// The entry of the seed describes the earlier residency until the seed has opened the data of the new epoch.
#[test]
fn a_seed_that_claims_a_shoot_leaves_the_entry_of_its_earlier_residency() {
    for (phase, writes) in [("Claiming", false), ("Opening", false), ("Held", true)] {
        let shoot = shoot(
            &json!({"seedName": "a", "ownership": {"epoch": 3, "phase": phase},
            "ownerChecks": [{"seedName": "a", "epoch": 1, "servers": ["192.0.2.9:53"]}]}),
        );
        let observed = ObservedCheck::new(&shoot, &seed(&on()), &[], &[]);
        let entries = observed.entries(shoot.status.as_ref().unwrap(), "a");
        assert_eq!(entries.is_some(), writes, "{phase}");
    }
}

#[test]
fn owner_checks_are_complete_once_a_flow_has_ended_with_the_present_terms() {
    let shoot = |terms: Option<&str>| {
        shoot(&json!({"seedName": "a", "ownerChecks": [{"seedName": "a", "epoch": 1, "terms": terms}]}))
    };
    let terms = AppliedTerms::of_seed(&seed(&on()), 1).unwrap();
    let (applied, other, none) = (shoot(Some(&terms)), shoot(Some("before")), shoot(None));
    for (shoot, checks, expected) in [
        (&applied, on(), Some((ConditionStatus::True, "TermsApplied"))),
        (&other, on(), Some((ConditionStatus::False, TERMS_NOT_APPLIED))),
        (&none, on(), Some((ConditionStatus::False, TERMS_NOT_APPLIED))),
        // The settings of the Seed changed since.
        (
            &applied,
            json!({"enabled": true}),
            Some((ConditionStatus::False, TERMS_NOT_APPLIED)),
        ),
        (&applied, Value::Null, None),
    ] {
        let observed = ObservedCheck::new(shoot, &seed(&checks), &[], &[]);
        let told = condition(&observed, shoot.status.as_ref().unwrap());
        if let Some((ConditionStatus::True, _, message)) = &told {
            assert!(
                message.contains("Actuators of providers are not seen"),
                "{message}"
            );
        }
        let told = told
            .as_ref()
            .map(|(status, reason, _)| (*status, reason.as_str()));
        assert_eq!(told, expected, "{checks}");
    }
}

#[test]
fn a_manager_that_asks_nobody_is_named() {
    let terms = AppliedTerms::of_seed(&seed(&on()), 1).unwrap();
    let shoot =
        shoot(&json!({"seedName": "a", "ownerChecks": [{"seedName": "a", "epoch": 1, "terms": terms}]}));
    let asks = ["--owner-name=owner.web.example.test", "--owner-id=a"];
    let deployments = [
        deployment("kube-controller-manager", 1, &[]),
        deployment("kube-apiserver", 1, &[]),
        deployment("machine-controller-manager", 1, &asks),
        deployment("cloud-controller-manager", 1, &["--v=2"]),
        deployment("csi-controller-manager", 0, &[]),
    ];
    let observed = ObservedCheck::new(&shoot, &seed(&on()), &[], &deployments);
    let status = shoot.status.as_ref().unwrap();
    let (told, reason, message) = condition(&observed, status).unwrap();
    assert_eq!(
        (told, reason.as_str()),
        (ConditionStatus::False, MANAGER_WITHOUT_OWNER_CHECK)
    );
    assert!(
        message.contains("Deployment cloud-controller-manager."),
        "{message}"
    );
    let entries = observed.entries(status, "a").unwrap();
    assert_eq!(entries[0].unchecked, ["Deployment cloud-controller-manager"]);
}
