//! The budget of a failover (RZ-32). The network of the zone is closed when the zone is empty, and at the
//! deadline whatever hangs. The flow closes the network in its order: the Worker is ready at the deadline at
//! the latest (RZ-11). Where the flow does not come so far, because the shoot's API is silent or the
//! Infrastructure is not ready, the network is closed beside the flow.

use std::{convert::Infallible, time::Duration};

use api::{
    constants::SHOOT_ISOLATED_ZONE_CLOSE_NOW,
    gardencore::{Shoot, shoot::ShootStatus},
};
use kube::{Api, ResourceExt};
use parts::{CloseDeadline, Deploy, Facts, SubnetIsolation, Workers};
use placement::Isolation;
use runtime::{
    Cluster, Result, clock,
    wait::{self, Look},
};

use super::{record::Record, zone_record};
use crate::context::MANAGER;

/// Part of the budget that the flow has after the deadline, to close the network in its order: of 15 minutes
/// 45 seconds, which is longer than the Worker takes to become ready at the deadline.
const GRACE: u32 = 20;
/// For one watch, which begins anew after this.
const WATCH: Duration = Duration::from_secs(60 * 60);
/// Between two tries.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Starts the budget of a failover that begins now, or goes on with the budget of a failover that has begun.
///
/// # Errors
/// The garden does not answer.
pub(super) async fn start(f: &Facts, record: &Record<'_>) -> Result<()> {
    if !matches!(f.isolation, Isolation::CutOff(_)) {
        return Ok(());
    }
    let budget = record.zone_budget();
    let written = record
        .write_if(|newest| Ok(zone_record::admitted(newest, budget, &clock::now_k8s())))
        .await?;
    f.close_deadline.adopt(&CloseDeadline::recorded(&written));
    Ok(())
}

/// Acts on the annotation and on the deadline while the flow runs.
pub(super) async fn enforce(f: &Facts, record: &Record<'_>) -> Infallible {
    let (never, _) = futures::join!(
        Box::pin(spend_on_request(f, record)),
        Box::pin(close_at_deadline(f, record))
    );
    never
}

async fn spend_on_request(f: &Facts, record: &Record<'_>) -> Infallible {
    let api: Api<Shoot> = f.garden.namespaced(&f.shoot.namespace().unwrap_or_default());
    let look = |shoot: Option<&Shoot>| match shoot {
        Some(shoot) if asks_to_close_now(shoot) => Look::Done,
        _ => Look::Wait("nobody spends the rest of the budget".into()),
    };
    loop {
        let asked = Box::pin(wait::until(&api, &f.shoot.name_any(), WATCH, look)).await;
        if asked.is_ok()
            && let Err(error) = spend(f, record, &api).await
        {
            tracing::warn!(%error, "the rest of the budget could not be spent; it is tried again");
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

fn asks_to_close_now(shoot: &Shoot) -> bool {
    let annotation = shoot.annotations().get(SHOOT_ISOLATED_ZONE_CLOSE_NOW);
    annotation.is_some_and(|value| value == "true")
}

/// The annotation goes last: what was not done before a crash is done by the next flow.
async fn spend(f: &Facts, record: &Record<'_>, api: &Api<Shoot>) -> Result<()> {
    if let Isolation::CutOff(zone) = &f.isolation {
        let mut is_new = false;
        let written = record.write_if(|newest| {
            let patch = zone_record::spent(newest, zone, &clock::now_k8s());
            is_new = patch.is_some();
            Ok(patch)
        });
        let written = written.await?;
        f.close_deadline.adopt(&CloseDeadline::recorded(&written));
        Workers::publish_deadline(f).await?;
        if is_new {
            let note = format!(
                "The rest of the budget of zone {zone} is spent on request: its network is closed now."
            );
            record.note("ZoneBudgetSpent", &note).await;
        }
    }
    MANAGER
        .annotate(api, &f.shoot.name_any(), SHOOT_ISOLATED_ZONE_CLOSE_NOW, None)
        .await
        .map(drop)
}

async fn close_at_deadline(f: &Facts, record: &Record<'_>) -> Infallible {
    if let Isolation::CutOff(zone) = &f.isolation {
        f.close_deadline.passed(record.zone_budget() / GRACE).await;
        while let Err(error) = Box::pin(close(f, record, zone)).await {
            tracing::warn!(%error, zone, "the network could not be closed at the deadline; it is tried again");
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
    std::future::pending().await
}

async fn close(f: &Facts, record: &Record<'_>, zone: &str) -> Result<()> {
    let there = SubnetIsolation::object(f).get().await?;
    if there.is_some_and(|there| there.spec.isolated_zone_id == zone) {
        return Ok(());
    }
    // The network is what counts now.
    if let Err(error) = Workers::leave_zone(f).await {
        tracing::warn!(%error, zone, "the Worker could not be told to leave the zone");
    }
    SubnetIsolation::deploy(f).await?;
    let newest = record.write_if(|_| Ok(None)).await?;
    let note = format!(
        "The budget of zone {zone} is spent: its network is closed although the flow has not come so far. Under way: {}",
        tasks_under_way(newest.status.as_ref())
    );
    record.warn("ZoneClosedAtDeadline", &note).await;
    Ok(())
}

fn tasks_under_way(status: Option<&ShootStatus>) -> &str {
    let last = status.and_then(|status| status.last_operation.as_ref());
    last.map_or("not known", |last| last.description.as_str())
}
