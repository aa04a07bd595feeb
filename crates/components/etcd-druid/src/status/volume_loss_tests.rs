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
