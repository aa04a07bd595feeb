//! What goes on beside the flow of a shoot one of whose zones is cut off or taken back: the zone's name is
//! recorded as soon as its provider tells it, what is awaited is told, and a changed annotation ends the
//! flow, so that nobody waits for what is not wanted any more (RZ-02). The next flow undoes what this one has
//! done.

use std::{
    convert::Infallible,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use api::{
    constants::{OPERATION, condition::EVERY_NODE_READY},
    extensions::{self, DefaultStatus, ExtensionObject, Worker},
    gardencore::{Shoot, shoot::ZoneIsolationStatus as Status},
    meta::{ConditionStatus, LastOperationState as State, find_condition},
};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use parts::{Facts, SubnetIsolation, Workers};
use placement::{
    Isolation, Operation,
    isolation::{asked_zone, recorded},
};
use runtime::{
    Cluster, Error, Result, clock,
    wait::{self, Look, Watched},
};

use super::{record::Record, zone_budget, zone_look, zone_record};
use crate::words::names;

/// For one watch. It is begun anew after it.
const WATCH: Duration = Duration::from_secs(60 * 60);
/// Before a watch is begun anew that has failed.
const WATCH_AGAIN: Duration = Duration::from_secs(5);
/// Between two reports of the rest of the budget.
const REPORT_PERIOD: Duration = Duration::from_secs(60);
/// Before the flow begins that undoes this one. Only long enough for the write before it.
const BEGIN_ANEW: Duration = Duration::from_millis(100);
/// Task under which it is told what has ended the flow.
pub(super) const TASK: &str = "Recording which zone is cut off";

/// Does `work`, the flow of an operation, and records what becomes of the zone. What the flow has ended with
/// is within.
///
/// # Errors
/// It could not be recorded, or what is asked for has changed meanwhile: `work` was dropped.
pub(super) async fn during<E>(
    f: &Facts,
    operation: Operation,
    record: &Record<'_>,
    work: impl Future<Output = Result<(), E>>,
) -> Result<Result<(), E>> {
    let reconciles = matches!(operation, Operation::Create | Operation::Reconcile);
    // What was refused has a record, too, from the first write of the operation.
    if !reconciles || recorded(&f.shoot).is_none() {
        return Ok(work.await);
    }
    if let Isolation::Refused(refusal) = &f.isolation {
        let written = record.write_if(|newest| Ok(zone_record::refused(newest, refusal, &clock::now_k8s())));
        written.await?;
        return Ok(work.await);
    }
    zone_budget::start(f, record).await?;
    let done = tokio::select! {
        done = work => done,
        never = Box::pin(zone_budget::enforce(f, record)) => match never {},
        () = Box::pin(another_mind(f)) => {
            let written = record.write_if(|newest| Ok(zone_record::aborting(newest, &clock::now_k8s())));
            written.await?;
            return Err(changed());
        }
        never = Box::pin(tell(f, record)) => match never {},
    };
    if done.is_ok() {
        ended(f, record).await?;
    }
    Ok(done)
}

fn changed() -> Error {
    Error::not_ready(
        BEGIN_ANEW,
        "annotation shoot.gardener.cloud/isolated-zone has changed: what was under way is undone",
    )
}

/// Whether this is what [`during`] ends with when what is asked for has changed.
pub(super) fn is_changed(error: &Error) -> bool {
    *error == changed()
}

/// The flow has done all of it.
async fn ended(f: &Facts, record: &Record<'_>) -> Result<()> {
    let worker = match f.isolation {
        Isolation::CutOff(_) => Workers::object(f).get().await?,
        _ => None,
    };
    if let Isolation::CutOff(zone) = &f.isolation
        && let Some(name) = worker.as_ref().and_then(name_of)
    {
        record
            .write_if(|newest| Ok(zone_record::named(newest, zone, name, &clock::now_k8s())))
            .await?;
    }
    let cuts_off = f.isolation.cuts_off();
    let report = worker.as_ref().and_then(rollout_report);
    let written = record.write_if(|newest| {
        let now = clock::now_k8s();
        Ok(match report {
            Some(report) => zone_record::ended_without_others(newest, report, &now),
            None => zone_record::ended(newest, cuts_off, &now),
        })
    });
    written.await.map(drop)
}

/// What the Worker reports of machines outside of the isolated zone that are not ready, for which the
/// failover has not waited.
fn rollout_report(worker: &Worker) -> Option<&str> {
    let conditions = &worker.default_status()?.conditions;
    let condition = find_condition(conditions, EVERY_NODE_READY)?;
    (condition.status == ConditionStatus::False).then_some(condition.message.as_str())
}

/// Ends when the Shoot asks for something else than it did as the flow began.
async fn another_mind(f: &Facts) {
    let api: Api<Shoot> = f.garden.namespaced(&f.shoot.namespace().unwrap_or_default());
    let asked = asked_zone(&f.shoot);
    let look = |shoot: Option<&Shoot>| match shoot {
        Some(shoot) if asked_zone(shoot) != asked => Look::Done,
        _ => Look::Wait("it says what it said".into()),
    };
    while Box::pin(wait::until(&api, &f.shoot.name_any(), WATCH, look))
        .await
        .is_err()
    {
        tokio::time::sleep(WATCH_AGAIN).await;
    }
}

/// Tells what is awaited, and what the account calls the zone: admission knows by it which edits of pools
/// have to wait.
async fn tell(f: &Facts, record: &Record<'_>) -> Infallible {
    if let Isolation::CutOff(zone) = &f.isolation {
        let (worker, isolation) = (Workers::object(f), SubnetIsolation::object(f));
        let told = &Mutex::new(String::new());
        let leaving = follow(f, worker.name(), |worker| async move {
            tell_worker(f, record, zone, &worker, told).await
        });
        let closing = follow(f, isolation.name(), |object| async move {
            tell_isolation(record, zone, &object, told).await
        });
        let (never, _, _) = futures::join!(leaving, closing, count_down(record, zone, told));
        return never;
    }
    std::future::pending().await
}

/// Reports what is left of the budget, with what is awaited.
async fn count_down(record: &Record<'_>, zone: &str, told: &Mutex<String>) -> Infallible {
    loop {
        tokio::time::sleep(REPORT_PERIOD).await;
        let words = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let written =
            record.write_if(|newest| Ok(zone_record::awaited(newest, zone, &words, &clock::now_k8s())));
        if let Err(error) = written.await {
            tracing::debug!(%error, "the rest of the budget could not be reported");
        }
    }
}

/// Calls `told` for what the object is now, as often as that changes, and again where it fails. A pause lies
/// between two calls: what changes faster is not written faster.
async fn follow<K, Told>(f: &Facts, name: &str, told: impl Fn(K) -> Told) -> Infallible
where
    K: Watched + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    Told: Future<Output = Result<()>>,
{
    let api: Api<K> = f.seed.namespaced(&f.namespace);
    let mut last = None;
    loop {
        let look = |object: Option<&K>| match object.map(ResourceExt::resource_version) {
            Some(now) if now != last => Look::Done,
            _ => Look::Wait("it has not changed".into()),
        };
        let seen = wait::until(&api, name, WATCH, look).await;
        if let Ok(Some(object)) = seen {
            let version = object.resource_version();
            if told(object).await.is_ok() {
                last = version;
            }
        }
        tokio::time::sleep(WATCH_AGAIN).await;
    }
}

async fn tell_worker(
    f: &Facts,
    record: &Record<'_>,
    zone: &String,
    worker: &Worker,
    told: &Mutex<String>,
) -> Result<()> {
    if worker.spec.isolated_zone_id.as_ref() != Some(zone) {
        return Ok(());
    }
    if let Some(name) = name_of(worker) {
        tell_name(f, record, zone, name).await?;
    }
    tell_words(record, zone, ("Worker", worker.default_status()), told).await
}

async fn tell_isolation(
    record: &Record<'_>,
    zone: &str,
    object: &extensions::SubnetIsolation,
    told: &Mutex<String>,
) -> Result<()> {
    if object.spec.isolated_zone_id != zone {
        return Ok(());
    }
    if !is_done(object) {
        let status = object.default_status();
        return tell_words(record, zone, ("SubnetIsolation", status), told).await;
    }
    let newest = record.write_if(|_| Ok(None)).await?;
    let is_at_work = recorded(&newest).is_some_and(|recorded| recorded.status == Status::InProgress);
    if is_at_work {
        let note = format!("The network of zone {zone} is closed.");
        record.note("ZoneNetworkClosed", &note).await;
    }
    Ok(())
}

/// Whether its provider has done what it was told last.
fn is_done(object: &extensions::SubnetIsolation) -> bool {
    let status = object.default_status();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let is_observed = status.and_then(|status| status.observed_generation) == object.metadata.generation;
    last.is_some_and(|last| last.state == State::Succeeded)
        && is_observed
        && !object.annotations().contains_key(OPERATION)
}

/// Once: what depends on the name is told with it.
async fn tell_name(f: &Facts, record: &Record<'_>, zone: &str, name: &str) -> Result<()> {
    let mut is_new = false;
    let written = record.write_if(|newest| {
        let known = recorded(newest).and_then(|recorded| recorded.isolated_zone_code.as_deref());
        is_new = known != Some(name);
        Ok(zone_record::named(newest, zone, name, &clock::now_k8s()).filter(|_| is_new))
    });
    written.await?;
    if !is_new {
        return Ok(());
    }
    // Where the failover had failed before the provider knew of the zone.
    zone_budget::start(f, record).await?;
    // What cannot be found out holds nothing up.
    match zone_look::bound_pods(f, name).await {
        Ok(pods) if !pods.is_empty() => {
            let note = format!(
                "{} pods have volumes of zone {name} and wait until it is back: {}.",
                pods.len(),
                names(&pods)
            );
            record.warn("ZonalVolumes", &note).await;
        }
        Ok(_) => {}
        Err(error) => tracing::debug!(%error, "volumes of the zone could not be looked at"),
    }
    Ok(())
}

async fn tell_words(
    record: &Record<'_>,
    zone: &str,
    (kind, status): (&str, Option<&DefaultStatus>),
    told: &Mutex<String>,
) -> Result<()> {
    let error = status.and_then(|status| status.last_error.as_ref());
    let last = status.and_then(|status| status.last_operation.as_ref());
    let words = error
        .map(|error| &error.description)
        .or_else(|| Some(&last.filter(|last| last.state != State::Succeeded)?.description));
    let Some(words) = words.filter(|words| !words.is_empty()) else {
        return Ok(());
    };
    let words = format!("{kind}: {words}");
    told.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone_from(&words);
    record
        .write_if(|newest| Ok(zone_record::awaited(newest, zone, &words, &clock::now_k8s())))
        .await
        .map(drop)
}

fn name_of(worker: &Worker) -> Option<&str> {
    worker.status.as_ref()?.isolated_zone_code.as_deref()
}
