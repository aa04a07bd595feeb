//! The restore of a lost volume within an ownership epoch, from the report of init container `initialize`.

use api::{
    constants::condition::{DATA_COMPLETE, VOLUME_LOST},
    druid::VolumeLoss,
};
use jiff::SignedDuration;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time};
use sidecar_protocol::InitializeSummary;

use super::{copy::can_be_written, fenced_etcd};
use crate::{containers::final_messages, names::INITIALIZE_CONTAINER};

/// How long a loss is reported. Nobody can undo a loss, and a condition that stays for ever hides the next
/// loss.
const REPORTED_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The newest loss of the present epoch. `epoch`: the epoch with which etcd began last. A later start of etcd
/// reports no loss, so that the report stays when the pod is replaced.
#[must_use]
pub(super) fn newest(
    pods: &[Pod],
    before: Option<VolumeLoss>,
    epoch: Option<i64>,
    now: &Time,
) -> Option<VolumeLoss> {
    let is_reported = |loss: &VolumeLoss| {
        now.0.duration_since(loss.restored.0) < REPORTED_FOR && epoch.is_none_or(|epoch| loss.epoch >= epoch)
    };
    let losses = reported(pods).chain(before);
    losses
        .filter(is_reported)
        .max_by_key(|loss| (loss.epoch, loss.revision))
}

fn reported(pods: &[Pod]) -> impl Iterator<Item = VolumeLoss> {
    final_messages(pods, INITIALIZE_CONTAINER).filter_map(|line| {
        let report: InitializeSummary = serde_json::from_str(line).ok()?;
        let loss = report.volume_loss?;
        can_be_written(loss.restored).then(|| VolumeLoss {
            epoch: loss.epoch,
            last_revision: loss.last_revision,
            revision: loss.revision,
            saved: loss.saved.filter(|saved| can_be_written(*saved)).map(Time),
            restored: Time(loss.restored),
        })
    })
}

/// Type and content of the condition.
pub(super) fn judge(loss: &VolumeLoss) -> (&'static str, fenced_etcd::Word) {
    (DATA_COMPLETE, ("False", VOLUME_LOST, describe(loss)))
}

fn describe(loss: &VolumeLoss) -> String {
    let (restored, last) = (loss.restored.0, loss.last_revision);
    let bound = match loss.saved.as_ref().map(|saved| saved.0) {
        Some(saved) if saved <= restored => {
            let seconds = restored.duration_since(saved).as_secs();
            format!(
                "changes that etcd acknowledged after {saved} may be lost, at most the changes of {seconds} s"
            )
        }
        _ => "later changes may be lost, and the time of the last backup is unknown".to_owned(),
    };
    format!(
        "The volume of etcd was lost or unusable, and etcd was restored at {restored} from the backups, which end at revision {last}: \
         {bound}. The number of lost changes is unknown. Clients list again, since etcd went on with revision {}.",
        loss.revision
    )
}

#[cfg(test)]
#[path = "volume_loss_tests.rs"]
mod tests;
