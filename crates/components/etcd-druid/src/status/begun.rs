//! The data with which etcd began the ownership epoch, from the report of init container `initialize`.

use api::druid::BegunEpoch;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::Time};
use sidecar_protocol::InitializeSummary;

use super::copy::can_be_written;
use crate::{containers::final_messages, names::INITIALIZE_CONTAINER};

/// The report of the first start in the newest epoch. A later start finds the data of the same epoch and
/// reports no begin, so that the report stays. A start that restores again in the same epoch, with an
/// incomplete chain, replaces the report.
#[must_use]
pub(super) fn newest(pods: &[Pod], before: Option<BegunEpoch>) -> Option<BegunEpoch> {
    let Some(reported) = reported(pods) else {
        return before;
    };
    let stands = before.filter(|before| {
        before.epoch > reported.epoch || (before.epoch == reported.epoch && reported.complete)
    });
    stands.or(Some(reported))
}

fn reported(pods: &[Pod]) -> Option<BegunEpoch> {
    final_messages(pods, INITIALIZE_CONTAINER).find_map(|line| {
        let report: InitializeSummary = serde_json::from_str(line).ok()?;
        let begin = report.begin?;
        Some(BegunEpoch {
            epoch: begin.epoch,
            result: report.result,
            last_revision: begin.last_revision,
            saved: begin.saved.filter(|saved| can_be_written(*saved)).map(Time),
            complete: begin.complete,
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn pod(exit_code: i32, message: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "etcd-main-0"},
            "status": {"initContainerStatuses": [{
                "name": "initialize", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "state": {"terminated": {"exitCode": exit_code, "message": message}},
            }]},
        }))
        .unwrap()
    }

    fn begun(epoch: i64, complete: bool) -> Value {
        let result = if complete { "Kept" } else { "Restored" };
        json!({"result": result, "revision": 49, "epoch": epoch, "lastRevision": 49, "complete": complete})
    }

    #[test]
    fn the_first_start_of_an_epoch_says_with_which_data_it_began() {
        let kept = newest(&[pod(0, &begun(3, true).to_string())], None).unwrap();
        assert_eq!(
            (
                kept.epoch,
                kept.result.as_str(),
                kept.last_revision,
                kept.complete
            ),
            (3, "Kept", 49, true)
        );
        // Later starts report no begin, or an error, or come from a process before.
        for (exit_code, message) in [
            (0, r#"{"result":"Kept","revision":50}"#.to_owned()),
            (0, String::new()),
            (1, begun(4, false).to_string()),
            (0, begun(2, false).to_string()),
        ] {
            let now = newest(&[pod(exit_code, &message)], Some(kept.clone()));
            assert_eq!(now.as_ref(), Some(&kept), "{message}");
        }
        let next = newest(&[pod(0, &begun(4, false).to_string())], Some(kept));
        assert_eq!(next.map(|next| (next.epoch, next.complete)), Some((4, false)));
    }

    #[test]
    fn of_two_reports_of_an_epoch_the_one_with_less_data_counts() {
        let of = |complete: bool| newest(&[pod(0, &begun(3, complete).to_string())], None);
        for (first, second) in [(true, false), (false, true)] {
            let now = newest(&[pod(0, &begun(3, second).to_string())], of(first));
            assert!(!now.unwrap().complete);
        }
    }

    #[test]
    fn a_time_that_no_status_can_hold_is_left_out() {
        let mut restored = begun(3, false);
        restored["saved"] = "+009999-12-30T22:00:00Z".into();
        let now = newest(&[pod(0, &restored.to_string())], None).unwrap();
        assert_eq!(now.saved, None);
    }
}
