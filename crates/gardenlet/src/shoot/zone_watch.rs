//! What goes on beside the flow of a shoot one of whose zones is cut off or taken back: the zone's name is recorded as soon as its
//! provider tells it, and a changed annotation ends the flow, so that nobody waits for what is not wanted any more (RZ-02). The next flow
//! undoes what this one has done.

use std::{convert::Infallible, time::Duration};

use api::{extensions::Worker, gardencore::Shoot};
use kube::{Api, ResourceExt};
use parts::{Facts, Workers};
use placement::{
    Isolation, Operation,
    isolation::{asked_zone, recorded},
};
use runtime::{
    Cluster, Error, Result, clock,
    wait::{self, Look},
};

use super::{record::Record, zone_record};

/// For one watch. It is begun anew after it.
const WATCH: Duration = Duration::from_secs(60 * 60);
/// Before a watch is begun anew that has failed.
const WATCH_AGAIN: Duration = Duration::from_secs(5);
/// Before the flow begins that undoes this one. Only long enough for the write before it.
const BEGIN_ANEW: Duration = Duration::from_millis(100);
/// Task under which it is told what has ended the flow.
pub(super) const TASK: &str = "Recording which zone is cut off";

/// Does `work`, the flow of an operation, and records what becomes of the zone. What the flow has ended with is within.
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
    let done = tokio::select! {
        done = work => done,
        () = Box::pin(another_mind(f)) => {
            let written = record.write_if(|newest| Ok(zone_record::aborting(newest, &clock::now_k8s())));
            written.await?;
            return Err(changed());
        }
        never = Box::pin(tell_name(f, record)) => match never {},
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

/// The flow has done all of it.
async fn ended(f: &Facts, record: &Record<'_>) -> Result<()> {
    if let Isolation::CutOff(zone) = &f.isolation
        && let Some(name) = Workers::object(f).get().await?.as_ref().and_then(name_of)
    {
        record
            .write_if(|newest| Ok(zone_record::named(newest, zone, name, &clock::now_k8s())))
            .await?;
    }
    let cuts_off = f.isolation.cuts_off();
    let written = record.write_if(|newest| Ok(zone_record::ended(newest, cuts_off, &clock::now_k8s())));
    written.await.map(drop)
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

/// Records what the account calls the zone: admission knows by it which edits of pools have to wait.
async fn tell_name(f: &Facts, record: &Record<'_>) -> Infallible {
    if let Isolation::CutOff(zone) = &f.isolation {
        let api: Api<Worker> = f.seed.namespaced(&f.namespace);
        let name = Workers::object(f).name().to_owned();
        let look = |worker: Option<&Worker>| {
            let is_told = worker.is_some_and(|worker| {
                worker.spec.isolated_zone_id.as_ref() == Some(zone) && name_of(worker).is_some()
            });
            if is_told {
                Look::Done
            } else {
                Look::Wait("it has not told the name of the zone".into())
            }
        };
        loop {
            let told = wait::until(&api, &name, WATCH, look).await;
            if let Some(name) = told.ok().flatten().as_ref().and_then(name_of) {
                let written =
                    record.write_if(|newest| Ok(zone_record::named(newest, zone, name, &clock::now_k8s())));
                if written.await.is_ok() {
                    break;
                }
            }
            tokio::time::sleep(WATCH_AGAIN).await;
        }
    }
    std::future::pending().await
}

fn name_of(worker: &Worker) -> Option<&str> {
    worker.status.as_ref()?.isolated_zone_code.as_deref()
}
