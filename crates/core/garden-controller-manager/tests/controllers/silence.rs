//! A gardenlet that no longer renews the Lease of its seed.

use std::time::Duration;

use anyhow::Result;
use api::{
    gardencore::{Seed, Shoot},
    meta::{ConditionStatus, find_condition},
};
use garden_controller_manager::seed::{self, report_unknown};
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};
use testkit::eventually;
use tokio::time::Instant;

use super::{
    RENEWED_EVERY, SILENCE_BORNE, SOON, condition,
    garden::{Controlled, Garden, NAMESPACE, allowed, try_create, try_patch, until_refused},
    gardenlet_of, renew, until,
};

/// How much longer than its seed the shoots of a silent gardenlet keep their conditions.
const SHOOT_SILENCE_BORNE: Duration = Duration::from_secs(2);

/// The answer of a policy that refuses one object.
const REFUSED: &str = "this test refuses the object";

// This garden is not the garden of the other controllers, so that no other controller writes the Shoots.
testkit::scenarios! {
    mod of_a_gardenlet for Controlled = start() => Controlled::end;
    at_once:
    shows_in_the_seed_and_then_in_its_shoots,
    shows_although_the_namespace_of_the_seed_cannot_be_written,
    shows_in_a_shoot_beside_a_shoot_that_cannot_be_written,
    that_ends_in_between_overwrites_no_report;
}

async fn start() -> Result<Controlled> {
    let garden = Garden::start().await?;
    let context = garden.context(&[
        &format!("--seed-monitor-period-seconds={}", SILENCE_BORNE.as_secs()),
        &format!("--shoot-monitor-period-seconds={}", SHOOT_SILENCE_BORNE.as_secs()),
        "--seed-sync-period-seconds=1",
    ]);
    let mut controlled = Controlled::new(garden, &context);
    controlled.start(seed::run(context));
    Ok(controlled)
}

type Health = (Option<ConditionStatus>, Option<&'static str>);

const HEALTHY: Health = (Some(ConditionStatus::True), Some("healthy"));
const UNKNOWN: Health = (Some(ConditionStatus::Unknown), Some("unknown"));

/// The seed is reported first, its shoots after the second grace period; the reports of a recovered gardenlet
/// stay.
async fn shows_in_the_seed_and_then_in_its_shoots(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    // No object has this name, so that no controller judges the seed.
    healthy(garden, "rescued", "seed-elsewhere").await;
    let mut seen = None;
    for _ in 0..5 {
        // The gardenlet renews its Lease first: the controller has counted since it started.
        allowed(renew(garden, "seed-c").await);
        healthy(garden, "quiet", "seed-c").await;
        let ready = condition("GardenletReady", ConditionStatus::True);
        garden
            .status(&seeds, "seed-c", json!({"conditions": [ready]}))
            .await;
        let silence = renewed_for(garden, SILENCE_BORNE + Duration::from_secs(2)).await;
        seen = gardenlet_of(&seeds.get("seed-c").await.unwrap());
        // If the machine stalled, the seed was really silent: that proves no fault.
        if seen == Some(ConditionStatus::True) || silence < SILENCE_BORNE / 2 {
            break;
        }
    }
    assert_eq!(seen, Some(ConditionStatus::True));
    assert_eq!(health_of(&shoots.get("quiet").await.unwrap()), HEALTHY);
    until(&seeds, "seed-c", |seed| {
        gardenlet_of(seed) == Some(ConditionStatus::Unknown)
    })
    .await;
    let quiet = until(&shoots, "quiet", |shoot| health_of(shoot) == UNKNOWN).await;
    let kept = find_condition(&quiet.status.unwrap().conditions, "OwnershipVerified").map(|c| c.status);
    assert_eq!(kept, Some(ConditionStatus::True));
    assert_eq!(health_of(&shoots.get("rescued").await.unwrap()), HEALTHY);
    let namespace = namespaces.get("seed-seed-c").await.unwrap();
    assert_eq!(namespace.owner_references()[0].name, "seed-c");
    allowed(renew(garden, "seed-c").await);
    healthy(garden, "quiet", "seed-c").await;
    let silence = renewed_for(garden, SHOOT_SILENCE_BORNE * 2).await;
    if silence < SILENCE_BORNE {
        assert_eq!(health_of(&shoots.get("quiet").await.unwrap()), HEALTHY);
    }
}

/// Renews the Lease for this time; returns the longest time between two renewals.
async fn renewed_for(garden: &Garden, time: Duration) -> Duration {
    let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
    let end = last + time;
    while Instant::now() < end {
        allowed(renew(garden, "seed-c").await);
        tokio::time::sleep(RENEWED_EVERY).await;
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    longest
}

/// A refused write of the namespace of a seed hides no dead seed: a takeover waits for the verdict.
async fn shows_although_the_namespace_of_the_seed_cannot_be_written(garden: &Garden) {
    let seeds: Api<Seed> = Api::all(garden.administrator());
    let namespaces: Api<Namespace> = Api::all(garden.manager.clone());
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"], "operations": ["CREATE", "UPDATE"]});
    refuse(garden, "seed-seed-b", &rule).await;
    let mut wanted = Namespace::default();
    wanted.metadata.name = Some("seed-seed-b".to_owned());
    until_refused(REFUSED, || try_create(&namespaces, wanted.clone())).await;
    // From here on the namespace cannot be written. The gardenlet reports once more, and is silent then.
    allowed(renew(garden, "seed-b").await);
    let ready = condition("GardenletReady", ConditionStatus::True);
    garden
        .status(&seeds, "seed-b", json!({"conditions": [ready]}))
        .await;
    until(&seeds, "seed-b", |seed| {
        gardenlet_of(seed) == Some(ConditionStatus::Unknown)
    })
    .await;
    let events: Api<Event> = garden.admin("default");
    eventually("the refusal is reported", SOON, || async {
        let all = events.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?;
        let is_report = |event: &Event| event.reason.as_deref() == Some("SeedNamespaceNotWritten");
        all.items
            .iter()
            .any(is_report)
            .then_some(())
            .ok_or_else(|| "no Event SeedNamespaceNotWritten".to_owned())
    })
    .await
    .unwrap();
}

/// A Shoot that cannot be written hides no further Shoot of a silent seed.
async fn shows_in_a_shoot_beside_a_shoot_that_cannot_be_written(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    for name in ["a-jammed", "b-free"] {
        healthy(garden, name, "seed-jammed").await;
    }
    let rule = json!({"apiGroups": ["core.gardener.cloud"], "apiVersions": ["v1beta1"], "resources": ["shoots", "shoots/status"],
        "operations": ["UPDATE"]});
    refuse(garden, "a-jammed", &rule).await;
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    until_refused(REFUSED, || try_patch(&shoots, "a-jammed", &label)).await;
    let manager = garden.context(&[]).garden;
    let is_silent = || async { Ok(true) };
    assert!(report_unknown(&manager, "seed-jammed", is_silent).await.is_err());
    assert_eq!(health_of(&shoots.get("a-jammed").await.unwrap()), HEALTHY);
    assert_eq!(health_of(&shoots.get("b-free").await.unwrap()), UNKNOWN);
}

/// Refuses all writes of the object with this name.
async fn refuse(garden: &Garden, name: &str, rule: &Value) {
    let expression = format!("object.metadata.name != '{name}'");
    let policy = json!({
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": REFUSED}],
    });
    let policy_name = format!("refuse-{name}");
    let binding = json!({"policyName": policy_name, "validationActions": ["Deny"]});
    for (kind, spec) in [
        ("ValidatingAdmissionPolicy", policy),
        ("ValidatingAdmissionPolicyBinding", binding),
    ] {
        let document = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": policy_name}, "spec": spec,
        });
        garden.bring(&document).await.unwrap();
    }
}

/// A pass over the shoots of a silent seed overwrites no concurrent report of the gardenlet, or of the seed
/// that takes over a shoot. The pass ends when the Lease is renewed.
async fn that_ends_in_between_overwrites_no_report(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let manager = garden.context(&[]).garden;
    for name in ["taken-over", "reported"] {
        healthy(garden, name, "seed-lost").await;
    }
    let healths = || async {
        let seen = ["taken-over", "reported"].map(|name| shoots.get(name));
        let seen = futures::future::join_all(seen).await;
        seen.iter()
            .map(|shoot| health_of(shoot.as_ref().unwrap()))
            .collect::<Vec<_>>()
    };
    let meanwhile = || async {
        garden
            .status(&shoots, "taken-over", json!({"seedName": "seed-elsewhere"}))
            .await;
        healthy(garden, "reported", "seed-lost").await;
        let report = json!({"conditions": [condition("APIServerAvailable", ConditionStatus::False)]});
        garden.status(&shoots, "reported", report).await;
        Ok(true)
    };
    assert!(!report_unknown(&manager, "seed-lost", meanwhile).await.unwrap());
    let reported = (Some(ConditionStatus::False), HEALTHY.1);
    assert_eq!(healths().await, [HEALTHY, reported]);
    let is_renewed = || async { Ok(false) };
    assert!(!report_unknown(&manager, "seed-lost", is_renewed).await.unwrap());
    assert_eq!(healths().await, [HEALTHY, reported]);
    let is_silent = || async { Ok(true) };
    assert!(report_unknown(&manager, "seed-lost", is_silent).await.unwrap());
    assert_eq!(healths().await, [HEALTHY, UNKNOWN]);
}

/// A Shoot in this seed, with the conditions that its gardenlet reports for a healthy shoot.
async fn healthy(garden: &Garden, name: &'static str, seed: &str) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot(name, seed, Some(seed), ("Reconcile", "Succeeded"))
        .await;
    let conditions =
        ["APIServerAvailable", "OwnershipVerified"].map(|type_| condition(type_, ConditionStatus::True));
    garden
        .status(&shoots, name, json!({"conditions": conditions}))
        .await;
    let label = json!({"metadata": {"labels": {"shoot.gardener.cloud/status": "healthy"}}});
    allowed(garden.patch(&shoots, name, label).await);
}

/// The condition of the Shoot's API server, and the overall health.
fn health_of(shoot: &Shoot) -> Health {
    let status = shoot.status.as_ref().unwrap();
    let available = find_condition(&status.conditions, "APIServerAvailable").map(|c| c.status);
    let label = shoot.labels().get("shoot.gardener.cloud/status");
    let known = ["healthy", "unknown"];
    (
        available,
        known
            .into_iter()
            .find(|known| label.is_some_and(|label| label == known)),
    )
}
