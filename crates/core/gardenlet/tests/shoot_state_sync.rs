//! The ShootState follows changes in the seed, once after a burst of changes, and is not written without new
//! content (R7-42). A real API server serves as garden and seed.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "ground/context.rs"]
mod context;

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use api::{
    constants::condition::{SHOOT_STATE_COMPLETE, SHOOT_STATE_UP_TO_DATE},
    extensions::Infrastructure,
    gardencore::{Shoot, ShootState},
    meta::ConditionStatus,
};
use futures::FutureExt as _;
use gardenlet::{Context, shoot_state};
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use parts::secrets::config::CARRIED;
use runtime::{
    client::{Cluster, Garden, Permit, wait},
    process::metrics::Metrics,
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Relay, eventually};
use tokio::{task::JoinSet, time::Instant};

use context::context;

const PROJECT: &str = "garden-dev";
const NAMESPACE: &str = "shoot--dev--web";
/// Longer than a burst of requests of this test takes.
const DELAY: Duration = Duration::from_secs(2);
/// How often a single attempt of a report meets a concurrent write (`runtime::controller::conditions`).
const ATTEMPTS: usize = 5;
/// For a busy machine.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shoot_state_follows_its_seed() -> Result<()> {
    let plane = ControlPlane::start("sync").await?;
    let client = plane.admin();
    let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
    testkit::apply_crds(&client, &crds).await?;
    a_shoot(&client).await?;
    // The gauges belong to the process.
    let metrics = is_there_when_it_is_created(&client).await?;
    let created = last_synced(&metrics)?;
    let delay = format!("--shoot-state-sync-delay={}s", DELAY.as_secs());
    let relay = Relay::start(client.clone()).await?;
    let context = Context {
        metrics: metrics.clone(),
        ..context(&relay.client().await?, &[&delay])?
    };
    let mut running = JoinSet::new();
    running.spawn(shoot_state::run(Arc::new(context)));
    synced_after(&metrics, created).await?;

    quiet(&metrics).await?;

    let garden = Garden::new(client.clone(), &Permit::sole("a test"));
    let states: Api<ShootState> = garden.namespaced(PROJECT);
    let first = states.get("web").await?;
    assert!(first.annotations().contains_key("gardener.cloud/timestamp"));
    expect_up_to_date(&garden).await?;

    let began = Instant::now();
    for number in 1..=3 {
        report(&client, json!({"networkID": number})).await?;
    }
    let burst = began.elapsed();
    let followed = until(&states, "the state is not there", |state| {
        let entry = state
            .spec
            .extensions
            .first()
            .and_then(|entry| entry.state.as_ref());
        entry.is_some_and(|state| state.0["networkID"] == 3)
    })
    .await?;
    if burst < DELAY {
        assert!(began.elapsed() >= DELAY, "a burst is followed when it is over");
        let writes = followed.metadata.generation.unwrap() - first.metadata.generation.unwrap();
        assert_eq!(writes, 1, "and once");
    }

    let synced = last_synced(&metrics)?;
    let annotations = json!({"metadata": {"annotations": {"example.test/seen": "yes"}}});
    let infrastructures: Api<Infrastructure> = Api::namespaced(client, NAMESPACE);
    infrastructures
        .patch("web", &PatchParams::default(), &Patch::Merge(annotations))
        .await?;
    synced_after(&metrics, synced).await?;
    let after = states.get("web").await?;
    assert_eq!(
        after.resource_version(),
        followed.resource_version(),
        "nothing new writes nothing"
    );
    left_out_state_is_reported(&garden).await?;
    report_that_fails_is_repeated(&relay, &garden).await
}

/// The report of a success meets more concurrent writes than a single attempt repeats. The next comparison
/// without a change would follow after ten minutes.
async fn report_that_fails_is_repeated(relay: &Relay, garden: &Garden) -> Result<()> {
    let shoots: Api<Shoot> = garden.namespaced(PROJECT);
    let (reports, other_writer) = (Arc::new(AtomicUsize::new(0)), shoots.clone());
    let counted = Arc::clone(&reports);
    relay.act_before(move |asked| {
        let is_report = asked.method == Method::PATCH && asked.path.contains("/shoots/web/status");
        if !is_report || counted.fetch_add(1, Ordering::SeqCst) >= ATTEMPTS {
            return ready(()).boxed();
        }
        let (shoots, number) = (other_writer.clone(), counted.load(Ordering::SeqCst));
        async move {
            let write = json!({"metadata": {"annotations": {"example.test/write": number.to_string()}}});
            let params = PatchParams::default();
            shoots.patch("web", &params, &Patch::Merge(write)).await.unwrap();
        }
        .boxed()
    });
    let time = "2026-01-01T00:00:00Z";
    let failed = json!({"type": SHOOT_STATE_UP_TO_DATE, "status": "False", "reason": "ShootStateNotSynced",
        "message": "m", "lastTransitionTime": time, "lastUpdateTime": time});
    let failed = Patch::Merge(json!({"status": {"constraints": [failed]}}));
    let params = PatchParams::default();
    shoots.patch_status("web", &params, &failed).await?;
    report(garden.client(), json!({"networkID": 4})).await?;
    expect_up_to_date(garden).await?;
    let reports = reports.load(Ordering::SeqCst);
    anyhow::ensure!(reports > ATTEMPTS, "only {reports} reports");
    Ok(())
}

/// The garden rejects a move while this constraint is reported. The rest of the ShootState stays up to date.
async fn left_out_state_is_reported(garden: &Garden) -> Result<()> {
    let client = garden.client();
    let metadata = json!({"name": "token", "namespace": NAMESPACE, "labels": {"persist": "true"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "bootstrap.kubernetes.io/token"});
    bring(client, secret).await?;
    reported(garden, SHOOT_STATE_COMPLETE, Some(ConditionStatus::False)).await?;
    expect_up_to_date(garden).await?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    secrets.delete("token", &DeleteParams::default()).await?;
    reported(garden, SHOOT_STATE_COMPLETE, None).await
}

/// The controller reads once more after the first lists of the watches: a long read may have begun before the
/// lists.
async fn quiet(metrics: &Metrics) -> Result<()> {
    let mut synced = last_synced(metrics)?;
    for _ in 0..20 {
        // The absence of a change can only be waited for.
        tokio::time::sleep(DELAY * 3).await;
        let now = last_synced(metrics)?;
        if now <= synced {
            return Ok(());
        }
        synced = now;
    }
    anyhow::bail!("nothing changes, and it is written again and again")
}

/// R7-40: the ShootState contains all data that a dying seed would lose, before the data are needed, at any
/// configured delay.
async fn is_there_when_it_is_created(client: &Client) -> Result<Metrics> {
    let never = ["--shoot-state-sync-delay=1h", "--shoot-state-sync-max-delay=1h"];
    let context = context(client, &never)?;
    let metrics = context.metrics.clone();
    let mut running = JoinSet::new();
    running.spawn(shoot_state::run(Arc::new(context)));
    let states: Api<ShootState> = Api::namespaced(client.clone(), PROJECT);
    until(&states, "keys are not there", |state| {
        state.spec.gardener.len() == CARRIED.len()
    })
    .await?;
    report(client, json!({"networkID": 0})).await?;
    operation(client, "Succeeded").await?;
    until(&states, "the state is not there", |state| {
        let entry = state.spec.extensions.first();
        entry.and_then(|entry| entry.state.as_ref()).is_some()
    })
    .await?;
    Ok(metrics)
}

async fn operation(client: &Client, state: &str) -> Result<Shoot> {
    let shoots: Api<Shoot> = Api::namespaced(client.clone(), PROJECT);
    let status = json!({"status": {"lastOperation": {"type": "Create", "state": state, "progress": 100, "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z"}}});
    let params = PatchParams::default();
    Ok(shoots.patch_status("web", &params, &Patch::Merge(status)).await?)
}

/// A shoot that is being created, with its namespace, its keys, and an Infrastructure.
async fn a_shoot(client: &Client) -> Result<()> {
    let core = "core.gardener.cloud/v1beta1";
    bring(
        client,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PROJECT}}),
    )
    .await?;
    let shoot = bring(
        client,
        json!({"apiVersion": core, "kind": "Shoot", "metadata": {"name": "web", "namespace": PROJECT},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}}),
    )
    .await?;
    let uid = shoot.uid().context("a uid")?;
    let shoots: Api<Shoot> = Api::namespaced(client.clone(), PROJECT);
    let status = json!({"status": {"technicalID": NAMESPACE, "uid": uid, "seedName": "seed-a"}});
    shoots
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    let shoot = operation(client, "Processing").await?;
    let owner = shoot.controller_owner_ref(&()).context("an owner")?;
    bring(
        client,
        json!({"apiVersion": core, "kind": "ShootState", "spec": {},
        "metadata": {"name": "web", "namespace": PROJECT, "ownerReferences": [owner]}}),
    )
    .await?;
    bring(
        client,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE,
        "annotations": {(api::constants::SHOOT_UID): uid}}}),
    )
    .await?;
    for name in CARRIED {
        bring(
            client,
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"k": "dg=="},
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"persist": "true"}}}),
        )
        .await?;
    }
    bring(client, json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Infrastructure",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"type": "local", "region": "local", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE}}}))
    .await
    .map(drop)
}

async fn bring(client: &Client, object: Value) -> Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(object)?;
    let types = object.types.clone().context("a type")?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
    let name = object.name_any();
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let params = PatchParams::apply("test").force();
    Ok(api.patch(&name, &params, &Patch::Apply(&object)).await?)
}

async fn report(client: &Client, state: Value) -> Result<()> {
    let api: Api<Infrastructure> = Api::namespaced(client.clone(), NAMESPACE);
    let body = Patch::Merge(json!({"status": {"state": state}}));
    api.patch_status("web", &PatchParams::default(), &body).await?;
    Ok(())
}

async fn until(
    states: &Api<ShootState>,
    why: &str,
    holds: impl Fn(&ShootState) -> bool + Send + Sync,
) -> Result<ShootState> {
    let look = |state: Option<&ShootState>| {
        if state.is_some_and(&holds) {
            wait::WaitState::Done
        } else {
            wait::WaitState::Wait(why.to_owned())
        }
    };
    let found = testkit::measured(why, SOON, |bound| wait::until(states, "web", bound, look));
    found.await?.context("a ShootState")
}

/// The age is a constraint of the Shoot.
async fn expect_up_to_date(garden: &Garden) -> Result<()> {
    reported(garden, SHOOT_STATE_UP_TO_DATE, Some(ConditionStatus::True)).await
}

async fn reported(garden: &Garden, constraint: &str, status: Option<ConditionStatus>) -> Result<()> {
    let shoots: Api<Shoot> = garden.namespaced(PROJECT);
    let look = |shoot: Option<&Shoot>| {
        let found = shoot.and_then(|shoot| shoot.status.as_ref());
        let found = found.and_then(|found| found.constraint(constraint));
        if found.map(|found| found.status) == status {
            wait::WaitState::Done
        } else {
            wait::WaitState::Wait(format!("{found:?}"))
        }
    };
    testkit::measured(constraint, SOON, |bound| wait::until(&shoots, "web", bound, look)).await?;
    Ok(())
}

/// The ShootState is synced at a time later than `then`.
async fn synced_after(metrics: &Metrics, then: f64) -> Result<()> {
    eventually("it is looked at again", SOON, || async {
        let now = last_synced(metrics)?;
        anyhow::ensure!(now > then, "still {now}");
        anyhow::Ok(())
    })
    .await
}

/// The time of the last sync, which also shows that the metric exists.
fn last_synced(metrics: &Metrics) -> Result<f64> {
    let text = metrics.encode();
    let line = text
        .lines()
        .find(|line| line.starts_with("shoot_state_synced_timestamp_seconds{"));
    let value = line.and_then(|line| line.split(' ').next_back());
    Ok(value.context("no metric")?.parse()?)
}
