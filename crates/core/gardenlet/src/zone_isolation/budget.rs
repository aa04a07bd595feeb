//! The budget of a failover (RZ-32): admits the failover, and closes the network of the zone at the deadline.
//! The flow closes the network in its order: the Worker is ready at the deadline at the latest (RZ-11). Where
//! the flow does not come so far, `zone_deadline` closes the network beside the flow.

use std::{sync::Arc, time::Duration};

use api::gardencore::{Shoot, shoot::ShootStatus};
use parts::{Deploy, Facts, SharedCloseDeadline, SubnetIsolation, Workers};
use placement::{
    Isolation,
    isolation::{asked_zone, has_deadline},
};
use runtime::{Error, Result, clock};

use crate::{Config, shoot::ownership::status_writer::StatusWriter, zone_isolation};

/// Longest wait for a former SubnetIsolation to go. The next attempt waits again.
const DELETION_PATIENCE: Duration = Duration::from_secs(20);

/// Judges the failover that the Shoot asks for, and records the refusal or the deadline. A failover that was
/// admitted meanwhile is not refused. The facts get the recorded outcome, also for the Cluster: with the
/// outcome, the provider of the Infrastructure awaits no part of the isolated zone.
///
/// # Errors
/// The garden or the seed does not answer.
pub(crate) async fn begin(f: &mut Facts, config: &Config, status_writer: &StatusWriter<'_>) -> Result<()> {
    zone_isolation::survey::judge_failover(f, &config.zone_id_labels, status_writer).await?;
    let Some(zone) = asked_zone(&f.shoot).map(str::to_owned) else {
        return Ok(());
    };
    let (now, budget) = (clock::now_k8s(), config.zone_close_within);
    let written = match &f.isolation {
        Isolation::CutOff(zone) => {
            let admitted =
                |newest: &Shoot| Ok(zone_isolation::zone_status::admitted(newest, zone, budget, &now));
            status_writer.write_if(admitted).await?
        }
        Isolation::Refused(refusal) => {
            let refused =
                |newest: &Shoot| Ok(zone_isolation::zone_status::refused(newest, &zone, refusal, &now));
            status_writer.write_if(refused).await?
        }
        Isolation::Nothing | Isolation::Carried { .. } => return Ok(()),
    };
    if has_deadline(&written, &zone) {
        f.isolation = Isolation::CutOff(zone);
    }
    f.close_deadline.adopt(&SharedCloseDeadline::recorded(&written));
    let status = written.status.as_ref();
    let recorded = status.and_then(|status| status.zone_isolation.clone());
    if let Some(status) = Arc::make_mut(&mut f.shoot).status.as_mut() {
        status.zone_isolation = recorded;
    }
    Ok(())
}

/// Requests that the Worker leaves the zone, where no flow has come so far.
///
/// # Errors
/// The seed does not answer.
pub(crate) async fn leave(f: &Facts) -> Result<()> {
    Workers::leave_zone(f).await?;
    Workers::publish_deadline(f).await
}

/// Whether the user still asks for the failover of this zone. The checks before a write in the seed may take
/// a minute.
///
/// # Errors
/// The garden does not answer.
pub(crate) async fn is_asked_still(status_writer: &StatusWriter<'_>, zone: &str) -> Result<bool> {
    let newest = status_writer.newest().await?;
    Ok(asked_zone(&newest) == Some(zone))
}

/// Closes the network of the zone, where no flow has come so far.
///
/// # Errors
/// The seed does not answer, or a former SubnetIsolation is not gone yet.
pub(crate) async fn close(f: &Facts, status_writer: &StatusWriter<'_>, zone: &str) -> Result<()> {
    // The network counts more than the machines now.
    if let Err(error) = leave(f).await {
        tracing::warn!(
            error = format_args!("{error:#}"),
            zone,
            "the Worker did not get the request to leave the zone"
        );
    }
    SubnetIsolation::destroy_stale(f).await?;
    let gone = tokio::time::timeout(DELETION_PATIENCE, SubnetIsolation::stale_gone(f)).await;
    gone.map_err(|_| Error::transient("a former SubnetIsolation is still being deleted"))??;
    if SubnetIsolation::is_there(&f.residency).await? || !is_asked_still(status_writer, zone).await? {
        return Ok(());
    }
    SubnetIsolation::deploy(f).await?;
    let newest = status_writer.newest().await?;
    let note = format!(
        "The budget of zone {zone} is spent: its network is being closed although the flow has not come so far. Under way: {}",
        tasks_under_way(newest.status.as_ref())
    );
    status_writer.warn("ZoneClosedAtDeadline", &note).await;
    Ok(())
}

fn tasks_under_way(status: Option<&ShootStatus>) -> &str {
    let last = status.and_then(|status| status.last_operation.as_ref());
    last.map_or("not known", |last| last.description.as_str())
}
