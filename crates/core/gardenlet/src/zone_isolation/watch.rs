//! Runs beside the flow of a Shoot: a changed annotation ends the flow, and the next flow does what the Shoot
//! asks for now (RZ-02). Where a zone is isolated, the name of the zone is recorded as soon as the provider
//! reports the name, and the condition reports what the flow awaits.

use std::{convert::Infallible, time::Duration};

use api::{
    constants::condition::EVERY_NODE_READY,
    extensions::{ExtensionObject, Worker},
    gardencore::Shoot,
    meta::{ConditionStatus, find_condition},
};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use parts::{Facts, SharedCloseDeadline, SubnetIsolation, Workers};
use placement::{
    Isolation, Operation,
    isolation::{asked_zone, has_deadline, recorded},
};
use runtime::{
    Error, Result,
    client::{
        Cluster,
        wait::{self, WaitState, Watched},
    },
    clock,
};
use tokio::time::Instant;

use super::change_limit::ChangeLimit;
use crate::{
    name_list::names,
    shoot::{
        operation::failure::{Failure, outside},
        ownership::status_writer::StatusWriter,
    },
    zone_isolation,
};

/// Duration of a single watch. A new watch follows.
const WATCH: Duration = Duration::from_secs(60 * 60);
/// Pause after a failed watch.
const WATCH_AGAIN: Duration = Duration::from_secs(5);
/// Delay of the next flow, which undoes the changes of the ended flow. Only long enough for the write before.
const BEGIN_ANEW: Duration = Duration::from_millis(100);
/// Task name in `lastErrors` of an error that has ended the flow.
pub(crate) const TASK: &str = "Recording which zone is cut off";

/// Runs `work`, the flow of an operation, and records the outcome for the zone. Each reconciliation ends when
/// the Shoot asks for a different zone, also a reconciliation without any zone: the budget of a failover
/// begins while the flow would hang. `changes` counts the changes that end a flow.
///
/// # Errors
/// `work` has failed, the outcome could not be recorded, or the Shoot asks for a different zone: `work` was
/// dropped.
pub(crate) async fn during(
    f: &Facts,
    operation: Operation,
    status_writer: &StatusWriter<'_>,
    changes: &ChangeLimit,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    if !matches!(operation, Operation::Create | Operation::Reconcile) {
        return work.await;
    }
    let done = tokio::select! {
        done = work => done,
        error = Box::pin(overtaken(f)) => {
            if is_changed(&error) {
                let written = status_writer.write_if(|newest| Ok(zone_isolation::zone_status::aborting(newest, &clock::now_k8s())));
                written.await.map_err(|error| outside(TASK, error))?;
                changes.count(&f.shoot, Instant::now());
            }
            return Err(outside(TASK, error));
        }
        never = Box::pin(report_progress(f, status_writer)) => match never {},
    };
    let is_refused = matches!(f.isolation, Isolation::Refused(_));
    if done.is_ok() && !is_refused && recorded(&f.shoot).is_some() {
        record_end(f, status_writer)
            .await
            .map_err(|error| outside(TASK, error))?;
    }
    done
}

fn changed() -> Error {
    Error::not_ready(
        BEGIN_ANEW,
        "annotation shoot.gardener.cloud/isolated-zone has changed: what was under way is undone",
    )
}

/// Whether the user has changed the annotation during the flow.
fn is_changed(error: &Error) -> bool {
    *error == changed()
}

/// Records the end of a flow that has succeeded.
async fn record_end(f: &Facts, status_writer: &StatusWriter<'_>) -> Result<()> {
    let worker = match f.isolation {
        Isolation::CutOff(_) => Workers::object(&f.residency).get().await?,
        _ => None,
    };
    if let Isolation::CutOff(zone) = &f.isolation
        && let Some(name) = worker.as_ref().and_then(name_of)
    {
        status_writer
            .write_if(|newest| {
                Ok(zone_isolation::zone_status::named(
                    newest,
                    zone,
                    name,
                    &clock::now_k8s(),
                ))
            })
            .await?;
    }
    let cuts_off = f.isolation.cuts_off();
    let report = worker.as_ref().and_then(rollout_report);
    let written = status_writer.write_if(|newest| {
        let now = clock::now_k8s();
        Ok(match report {
            Some(report) => zone_isolation::zone_status::ended_without_others(newest, report, &now),
            None => zone_isolation::zone_status::ended(newest, cuts_off, &now),
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

/// Ends when the Shoot asks for a different zone, or when the failover that this flow has refused is
/// admitted. Until then, the deadline in the status is the deadline of the flow.
async fn overtaken(f: &Facts) -> Error {
    let api: Api<Shoot> = f.garden.namespaced(&f.shoot.namespace().unwrap_or_default());
    let asked = asked_zone(&f.shoot);
    let is_refused = matches!(f.isolation, Isolation::Refused(_));
    let look = |shoot: Option<&Shoot>| {
        let Some(shoot) = shoot else {
            return WaitState::Wait("the Shoot is gone".into());
        };
        f.close_deadline.adopt(&SharedCloseDeadline::recorded(shoot));
        let is_admitted = asked.is_some_and(|zone| has_deadline(shoot, zone));
        if asked_zone(shoot) != asked || (is_refused && is_admitted) {
            WaitState::Done
        } else {
            WaitState::Wait("the Shoot asks for the same zone".into())
        }
    };
    loop {
        match Box::pin(wait::until(&api, &f.shoot.name_any(), WATCH, look)).await {
            Ok(Some(shoot)) if asked_zone(&shoot) == asked => {
                return Error::not_ready(BEGIN_ANEW, "the failover that was refused begins");
            }
            Ok(_) => return changed(),
            Err(_) => tokio::time::sleep(WATCH_AGAIN).await,
        }
    }
}

/// Reports the progress, and the account's name of the zone. Admission refuses some edits of pools by this
/// name.
async fn report_progress(f: &Facts, status_writer: &StatusWriter<'_>) -> Infallible {
    if let Isolation::CutOff(zone) = &f.isolation {
        let (worker, isolation) = (
            Workers::object(&f.residency),
            SubnetIsolation::object(&f.residency),
        );
        let leaving = follow(f, worker.name(), |worker| async move {
            report_worker(f, status_writer, zone, &worker).await
        });
        let closing = follow(f, isolation.name(), |object| async move {
            zone_isolation::report::isolation(status_writer, zone, &object).await
        });
        let (never, _) = futures::join!(leaving, closing);
        return never;
    }
    std::future::pending().await
}

/// Calls `report` with the object after each change, and again after a failed call. The pause between two
/// calls bounds the rate of writes.
async fn follow<K, Reported>(f: &Facts, name: &str, report: impl Fn(K) -> Reported) -> Infallible
where
    K: Watched + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    Reported: Future<Output = Result<()>>,
{
    let api: Api<K> = f.residency.seed.namespaced(&f.residency.namespace);
    let mut last = None;
    loop {
        let look = |object: Option<&K>| match object.map(ResourceExt::resource_version) {
            Some(now) if now != last => WaitState::Done,
            _ => WaitState::Wait("it has not changed".into()),
        };
        let seen = wait::until(&api, name, WATCH, look).await;
        if let Ok(Some(object)) = seen {
            let version = object.resource_version();
            if report(object).await.is_ok() {
                last = version;
            }
        }
        tokio::time::sleep(WATCH_AGAIN).await;
    }
}

async fn report_worker(
    f: &Facts,
    status_writer: &StatusWriter<'_>,
    zone: &String,
    worker: &Worker,
) -> Result<()> {
    if worker.spec.isolated_zone_id.as_ref() != Some(zone) {
        return Ok(());
    }
    if let Some(name) = name_of(worker) {
        record_zone_name(f, status_writer, zone, name).await?;
    }
    zone_isolation::report::worker(status_writer, zone, worker).await
}

/// Records the name of the zone, and reports once the pods whose volumes are bound to the zone.
async fn record_zone_name(f: &Facts, status_writer: &StatusWriter<'_>, zone: &str, name: &str) -> Result<()> {
    let mut is_new = false;
    let written = status_writer.write_if(|newest| {
        let known = recorded(newest).and_then(|recorded| recorded.isolated_zone_code.as_deref());
        is_new = known != Some(name);
        Ok(zone_isolation::zone_status::named(newest, zone, name, &clock::now_k8s()).filter(|_| is_new))
    });
    written.await?;
    if !is_new {
        return Ok(());
    }
    // A failed read does not delay the failover.
    match zone_isolation::survey::bound_pods(&f.residency, name).await {
        Ok(pods) if !pods.is_empty() => {
            let note = format!(
                "{} pods have volumes of zone {name} and wait until it is back: {}.",
                pods.len(),
                names(&pods)
            );
            status_writer.warn("ZonalVolumes", &note).await;
        }
        Ok(_) => {}
        Err(error) => tracing::debug!(
            error = format_args!("{error:#}"),
            "volumes of the zone could not be looked at"
        ),
    }
    Ok(())
}

fn name_of(worker: &Worker) -> Option<&str> {
    worker.status.as_ref()?.isolated_zone_code.as_deref()
}
