//! Another writer changes a Shoot just before a write of the gardenlet. The gardenlet loses neither the
//! request of a user nor a report. A real API server serves as garden and seed; a proxy makes the concurrent
//! write at the right moment.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::{Result, ensure};
use api::{
    constants::{OPERATION, condition::READY_FOR_MIGRATION, finalizer::GARDENER},
    gardencore::Shoot,
    meta::LastOperationState as State,
};
use futures::FutureExt as _;
use gardenlet::shoot;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use runtime::clock;
use serde_json::{Value, json};
use testkit::{Relay, apply};
use tokio::task::JoinSet;

use ground::{CORE, Ground, NAMESPACE, PROJECT, context::context, is_write_of_status};

/// The Shoot in the garden before a write of the gardenlet.
#[derive(Clone, Debug)]
struct ShootBeforeWrite {
    requests_operation: bool,
    state: Option<State>,
}

/// The first write of the status, and the first removal of the request, meet a concurrent write.
#[test]
fn a_request_is_kept_until_the_start_of_the_operation_is_recorded() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("request-kept", false)).await?;
        let retry = json!({OPERATION: "retry"});
        create(&ground, "seed-a", &retry, last_operation("Failed")).await?;
        let relay = Relay::start(ground.client.clone()).await?;
        let writes = Arc::<Mutex<Vec<ShootBeforeWrite>>>::default();
        let (recorded, shoots) = (Arc::clone(&writes), ground.shoots.clone());
        let [statuses, removals] = [(); 2].map(|()| AtomicUsize::new(0));
        relay.act_before(move |asked| {
            let (is_first, message) = match is_write_of_status(&asked) {
                Some(true) => (statuses.fetch_add(1, Ordering::SeqCst) == 0, "before the status"),
                Some(false) => (removals.fetch_add(1, Ordering::SeqCst) == 0, "before the removal"),
                None => return futures::future::ready(()).boxed(),
            };
            let (shoots, recorded) = (shoots.clone(), Arc::clone(&recorded));
            async move {
                let shoot = shoots.get("web").await.unwrap();
                recorded.lock().unwrap().push(before_write(&shoot));
                if is_first {
                    report_condition(&shoots, message).await;
                }
            }
            .boxed()
        });
        let _gardenlet = gardenlet(&relay).await?;
        let taken = ground::until(&ground.shoots, "the request is not answered", |shoot| {
            let ShootBeforeWrite {
                requests_operation,
                state,
            } = before_write(shoot);
            !requests_operation && state != Some(State::Failed)
        });
        taken.await?;
        let writes = writes.lock().unwrap().clone();
        let mut without_request = writes.iter().filter(|write| !write.requests_operation);
        ensure!(
            without_request.all(|write| write.state != Some(State::Failed)),
            "{writes:?}"
        );
        Ok(())
    })
}

/// The concurrent write changes only conditions, so that the write wakes no flow.
#[test]
fn the_missing_confirmation_of_a_deletion_is_reported_after_a_concurrent_write() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("unconfirmed", false)).await?;
        create(&ground, "seed-a", &json!({}), last_operation("Succeeded")).await?;
        ground.shoots.delete("web", &DeleteParams::default()).await?;
        is_reported_after_a_concurrent_write(&ground, "is not confirmed").await
    })
}

#[test]
fn the_obstacle_to_a_move_is_reported_after_a_concurrent_write() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("obstacle", false)).await?;
        let mut status = last_operation("Succeeded");
        let obstacle = condition(READY_FOR_MIGRATION, "False", "the destination has no room");
        status["constraints"] = json!([obstacle]);
        create(&ground, "seed-b", &json!({}), status).await?;
        is_reported_after_a_concurrent_write(&ground, "the destination has no room").await
    })
}

async fn is_reported_after_a_concurrent_write(ground: &Ground, part: &str) -> Result<()> {
    let relay = Relay::start(ground.client.clone()).await?;
    let (statuses, shoots) = (AtomicUsize::new(0), ground.shoots.clone());
    relay.act_before(move |asked| {
        let is_write = is_write_of_status(&asked) == Some(true);
        if !is_write || statuses.fetch_add(1, Ordering::SeqCst) > 0 {
            return futures::future::ready(()).boxed();
        }
        let shoots = shoots.clone();
        async move { report_condition(&shoots, "m").await }.boxed()
    });
    let _gardenlet = gardenlet(&relay).await?;
    let reported = ground::until(&ground.shoots, part, |shoot| {
        let errors = shoot.status.iter().flat_map(|status| &status.last_errors);
        errors
            .map(|error| &error.description)
            .any(|error| error.contains(part))
    });
    let shoot = reported.await?;
    let conditions = shoot.status.map(|status| status.conditions).unwrap_or_default();
    ensure!(!conditions.is_empty(), "no write was concurrent");
    Ok(())
}

/// A Shoot that seed `seed-a` hosts.
async fn create(ground: &Ground, wanted: &str, annotations: &Value, mut status: Value) -> Result<()> {
    let metadata = json!({"name": "web", "namespace": PROJECT, "finalizers": [GARDENER],
        "annotations": annotations});
    let spec = json!({"cloudProfile": {"name": "local"}, "region": "local", "seedName": wanted,
        "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}});
    let shoot = json!({"apiVersion": CORE, "kind": "Shoot", "metadata": metadata, "spec": spec});
    apply(&ground.client, shoot).await?;
    status["observedGeneration"] = json!(ground.shoots.get("web").await?.metadata.generation);
    let status = Patch::Merge(json!({"status": status}));
    let params = PatchParams::default();
    ground.shoots.patch_status("web", &params, &status).await?;
    Ok(())
}

/// The status of a Shoot whose last reconciliation has ended in this state.
fn last_operation(state: &str) -> Value {
    let last = json!({"type": "Reconcile", "state": state, "progress": 100, "description": "",
        "lastUpdateTime": clock::now_k8s()});
    json!({"seedName": "seed-a", "technicalID": NAMESPACE, "lastOperation": last})
}

fn condition(type_: &str, status: &str, message: &str) -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({"type": type_, "status": status, "reason": "R", "message": message,
        "lastTransitionTime": time, "lastUpdateTime": time})
}

/// Writes as the checks of the shoot do. A write without a change is no concurrent write.
async fn report_condition(shoots: &Api<Shoot>, message: &str) {
    let conditions = json!([condition("EveryNodeReady", "True", message)]);
    let report = Patch::Merge(json!({"status": {"conditions": conditions}}));
    let params = PatchParams::default();
    shoots.patch_status("web", &params, &report).await.unwrap();
}

/// Starts a gardenlet behind the proxy. The gardenlet ends with the returned set.
async fn gardenlet(relay: &Relay) -> Result<JoinSet<()>> {
    let context = context(&relay.client().await?, &[])?;
    let mut gardenlet = JoinSet::new();
    gardenlet.spawn(Box::pin(shoot::run(Arc::new(context))));
    Ok(gardenlet)
}

fn before_write(shoot: &Shoot) -> ShootBeforeWrite {
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    ShootBeforeWrite {
        requests_operation: shoot.annotations().contains_key(OPERATION),
        state: last.map(|last| last.state),
    }
}
