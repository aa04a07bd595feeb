//! The restore of a lost volume within an ownership epoch, from the report of init container `initialize`.

use api::{
    constants::condition::{DATA_COMPLETE, VOLUME_LOST},
    druid::VolumeLoss,
};
use jiff::SignedDuration;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time};
use serde::Deserialize;

use super::{copy::can_be_written, fence};
use crate::{containers::final_messages, names::INITIALIZE_CONTAINER};

/// How long a loss is reported. Nobody can undo a loss, and a condition that stays for ever hides the next
/// loss.
const REPORTED_FOR: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The part of the termination message that reports a loss.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    volume_loss: VolumeLoss,
}

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
        let report: Report = serde_json::from_str(line).ok()?;
        let loss = report.volume_loss;
        let saved = loss.saved.clone().filter(|saved| can_be_written(saved.0));
        can_be_written(loss.restored.0).then_some(VolumeLoss { saved, ..loss })
    })
}

/// Type and content of the condition.
pub(super) fn judge(loss: &VolumeLoss) -> (&'static str, fence::Word) {
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn pod(exit_code: i32, message: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "etcd-main-0"},
            "status": {"initContainerStatuses": [{
                "name": "initialize", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "state": {"terminated": {"exitCode": exit_code, "message": message.to_string()}},
            }]},
        }))
        .unwrap()
    }

    /// The summary of `initialize`.
    fn restored(epoch: i64, revision: i64, saved: &str) -> Value {
        json!({"result": "Restored", "revision": revision, "volumeLoss": {"epoch": epoch, "lastRevision": 832,
            "revision": revision, "saved": saved, "restored": "2026-01-01T00:01:30Z"}})
    }

    fn at(time: &str) -> Time {
        Time(time.parse().unwrap())
    }

    #[test]
    fn a_loss_is_reported_for_a_week_or_until_the_next_epoch_begins() {
        let reports = [pod(0, &restored(3, 100_000_832, "2026-01-01T00:00:00Z"))];
        let now = at("2026-01-01T00:02:00Z");
        let loss = newest(&reports, None, Some(3), &now).unwrap();
        assert_eq!(
            (loss.epoch, loss.last_revision, loss.revision),
            (3, 832, 100_000_832)
        );
        // The pod was replaced, or its next start kept the volume.
        let kept = [pod(0, &json!({"result": "Kept", "revision": 100_000_900}))];
        for pods in [&[][..], &kept, &[pod(1, &restored(3, 1, "2026-01-01T00:00:00Z"))]] {
            assert_eq!(
                newest(pods, Some(loss.clone()), Some(3), &now),
                Some(loss.clone())
            );
        }
        let again = [pod(0, &restored(3, 200_000_832, "2026-01-01T00:00:00Z"))];
        let second = newest(&again, Some(loss.clone()), Some(3), &now).unwrap();
        assert_eq!(second.revision, 200_000_832);
        assert_eq!(newest(&reports, Some(loss.clone()), Some(4), &now), None);
        assert_eq!(
            newest(&reports, Some(loss), None, &at("2026-01-08T00:01:31Z")),
            None
        );
    }

    #[test]
    fn the_bound_of_a_loss_is_the_time_since_the_last_backup() {
        let now = at("2026-01-01T00:02:00Z");
        let word = |saved: &str| {
            let loss = newest(&[pod(0, &restored(1, 100_000_832, saved))], None, None, &now).unwrap();
            judge(&loss)
        };
        let (type_, (status, reason, message)) = word("2026-01-01T00:00:00Z");
        assert_eq!((type_, status, reason), ("DataComplete", "False", "VolumeLost"));
        for part in ["revision 832", "after 2026-01-01T00:00:00Z", "90 s", "100000832"] {
            assert!(message.contains(part), "{message}");
        }
        for unusable in ["+009999-12-30T22:00:00Z", "2026-01-01T00:05:00Z"] {
            let message = word(unusable).1.2;
            assert!(message.contains("is unknown"), "{message}");
        }
    }
}
