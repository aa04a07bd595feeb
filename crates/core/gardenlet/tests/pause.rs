//! A gardenlet starts no operation for an ignored Shoot, in a stopped seed, or in a seed with a taint that
//! the Shoot does not tolerate, and starts the operation when the obstacle is gone. A real API server serves
//! as garden and seed.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::sync::Arc;

use anyhow::{Result, ensure};
use api::{
    constants::{
        EMERGENCY_STOP, SHOOT_IGNORE,
        condition::{RECONCILIATION_POSSIBLE, SEED_EMERGENCY_STOP, SHOOT_IGNORED},
    },
    gardencore::{Seed, Shoot},
    meta::ConditionStatus,
};
use gardenlet::shoot;
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use placement::is_hosted;
use serde_json::{Value, json};
use testkit::{apply, eventually};
use tokio::task::JoinSet;

use ground::{CORE, Ground, NAMESPACE, PROJECT, SOON, context::context};

#[test]
fn nothing_begins_while_the_shoot_is_ignored_or_the_seed_is_stopped() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("pause", false)).await?;
        let seeds: Api<Seed> = Api::all(ground.client.clone());
        let params = PatchParams::default();
        let annotated =
            |key: &str, value: Value| Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        seeds
            .patch("seed-a", &params, &annotated(EMERGENCY_STOP, json!("true")))
            .await?;
        apply(&ground.client, the_shoot()).await?;
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context(&ground.client, &[])?))));

        is_paused(&ground, SHOOT_IGNORED, "the Shoot has the annotation").await?;
        ground
            .shoots
            .patch("web", &params, &annotated(SHOOT_IGNORE, Value::Null))
            .await?;
        is_paused(&ground, SEED_EMERGENCY_STOP, "Seed seed-a has the annotation").await?;
        let namespaces: Api<Namespace> = Api::all(ground.client.clone());
        ensure!(
            namespaces.get_opt(NAMESPACE).await?.is_none(),
            "something was begun"
        );

        // The value that Gardener documents beside the removal.
        seeds
            .patch("seed-a", &params, &annotated(EMERGENCY_STOP, json!("false")))
            .await?;
        ground::until(&ground.shoots, "nothing has begun", |shoot| {
            let status = shoot.status.as_ref();
            status.is_some_and(|status| {
                status.last_operation.is_some() && status.constraint(RECONCILIATION_POSSIBLE).is_none()
            })
        })
        .await?;
        for reason in ["ReconciliationPaused", "ReconciliationResumed"] {
            eventually(reason, SOON, || is_reported(&ground, reason)).await?;
        }
        Ok(())
    })
}

/// The report is for users, and must not hold up the deletion that the pause lets pass.
#[test]
fn a_pause_that_cannot_be_reported_holds_up_no_deletion() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("pause-refused", false)).await?;
        refuse_reports(&ground).await?;
        ground.create_and_delete(the_shoot()).await?;
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context(&ground.client, &[])?))));
        ground.until_gone("web").await
    })
}

/// The Shoot named the seed before the Seed existed, so no policy compared the two.
#[test]
fn nothing_is_created_in_a_seed_with_a_taint_that_the_shoot_does_not_tolerate() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("tainted", false)).await?;
        let seeds: Api<Seed> = Api::all(ground.client.clone());
        let params = PatchParams::default();
        let taint = json!({"spec": {"taints": [{"key": "protected"}]}});
        seeds.patch("seed-a", &params, &Patch::Merge(taint)).await?;
        apply(&ground.client, the_shoot()).await?;
        let not_ignored = json!({"metadata": {"annotations": {SHOOT_IGNORE: null}}});
        ground
            .shoots
            .patch("web", &params, &Patch::Merge(not_ignored))
            .await?;
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context(&ground.client, &[])?))));
        let words = "Seed seed-a has the taint protected, which the shoot does not tolerate";
        eventually("the taint is reported", SOON, || is_warned(&ground, words)).await?;
        // Rights of the seed follow `status.seedName`.
        let refused = ground.shoots.get("web").await?;
        ensure!(refused.status.is_none(), "{:?}", refused.status);
        is_deleted_without_a_seed(&ground).await?;
        let namespaces: Api<Namespace> = Api::all(ground.client.clone());
        ensure!(
            namespaces.get_opt(NAMESPACE).await?.is_none(),
            "something was created"
        );
        let tolerated = json!({"spec": {"tolerations": [{"key": "protected"}]}});
        ground
            .shoots
            .patch("web", &params, &Patch::Merge(tolerated))
            .await?;
        ground::until(&ground.shoots, "no seed has taken the Shoot", is_hosted).await?;
        eventually("the shoot has a namespace", SOON, || async {
            let found = namespaces.get_opt(NAMESPACE).await;
            let found = found.map_err(|error| error.to_string())?;
            found.map(drop).ok_or_else(|| "there is none".to_owned())
        })
        .await?;
        Ok(())
    })
}

/// No seed has an object of the Shoot, so the deletion needs no flow and no right.
async fn is_deleted_without_a_seed(ground: &Ground) -> Result<()> {
    let mut deleted = the_shoot();
    deleted["metadata"]["name"] = json!("short");
    // A Shoot without the annotation that ignores the Shoot.
    deleted["metadata"]["annotations"] = json!({});
    ground.create_and_delete(deleted).await?;
    ground.until_gone("short").await
}

/// From now on the API server refuses a status with the constraint.
async fn refuse_reports(ground: &Ground) -> Result<()> {
    const ADMISSION: &str = "admissionregistration.k8s.io/v1";
    let reported = "object.?status.?constraints.orValue([]).exists(c, c.type == 'ReconciliationPossible')";
    let rule = json!({"apiGroups": ["core.gardener.cloud"], "apiVersions": ["v1beta1"],
        "resources": ["shoots/status"], "operations": ["UPDATE"]});
    let policy = json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "refuse"},
        "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": format!("!({reported})")}]}});
    let binding = json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "refuse"}, "spec": {"policyName": "refuse", "validationActions": ["Deny"]}});
    apply(&ground.client, policy).await?;
    apply(&ground.client, binding).await?;
    let mut probe = the_shoot();
    probe["metadata"]["name"] = json!("probe");
    probe["spec"]["seedName"] = json!("seed-z");
    apply(&ground.client, probe).await?;
    let time = "2026-01-01T00:00:00Z";
    let constraint = json!({"type": RECONCILIATION_POSSIBLE, "status": "False", "reason": "R", "message": "m",
        "lastTransitionTime": time, "lastUpdateTime": time});
    let report = Patch::Merge(json!({"status": {"constraints": [constraint]}}));
    eventually("the policy is in force", SOON, || async {
        let written = ground
            .shoots
            .patch_status("probe", &PatchParams::default(), &report)
            .await;
        match written {
            Err(error) if error.to_string().contains("denied request") => Ok(()),
            other => Err(format!("{:?}", other.map(drop))),
        }
    })
    .await
}

async fn is_paused(ground: &Ground, reason: &str, words: &str) -> Result<()> {
    let paused = |shoot: &Shoot| {
        let status = shoot.status.as_ref();
        let constraint = status.and_then(|status| status.constraint(RECONCILIATION_POSSIBLE));
        constraint.is_some_and(|constraint| {
            constraint.status == ConditionStatus::False
                && constraint.reason == reason
                && constraint.message.contains(words)
        })
    };
    let shoot = ground::until(&ground.shoots, reason, paused).await?;
    let last = shoot.status.and_then(|status| status.last_operation);
    ensure!(last.is_none(), "it has begun: {last:?}");
    Ok(())
}

async fn is_reported(ground: &Ground, reason: &str) -> Result<(), String> {
    let events: Api<Event> = Api::namespaced(ground.client.clone(), PROJECT);
    let all = events.list(&ListParams::default()).await;
    let all = all.map_err(|error| error.to_string())?;
    let found = all
        .items
        .iter()
        .any(|event| event.reason.as_deref() == Some(reason));
    found.then_some(()).ok_or_else(|| format!("no Event {reason}"))
}

async fn is_warned(ground: &Ground, words: &str) -> Result<(), String> {
    let events: Api<Event> = Api::namespaced(ground.client.clone(), PROJECT);
    let all = events.list(&ListParams::default()).await;
    let mut all = all.map_err(|error| error.to_string())?.items.into_iter();
    let is_warning = |event: Event| event.note.is_some_and(|note| note.contains(words));
    all.any(is_warning)
        .then_some(())
        .ok_or_else(|| format!("no Event with {words}"))
}

fn the_shoot() -> Value {
    json!({"apiVersion": CORE, "kind": "Shoot",
        "metadata": {"name": "web", "namespace": PROJECT, "annotations": {SHOOT_IGNORE: "true"}},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}})
}
