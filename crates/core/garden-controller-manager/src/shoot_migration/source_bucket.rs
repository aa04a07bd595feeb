//! The bucket of the source, before a planned move. The destination restores from this bucket. With wrong
//! credentials, the restore would wait after the hand-over, while the API of the shoot is down. Pure.

use api::gardencore::{BackupBucket, Shoot};
use kube::ResourceExt;
use placement::{Journey, journey};

use super::preflight::{SOURCE_BUCKET_NOT_READY, Verdict, is_bucket_ready, wanted_move};

/// The verdict on a move that would begin now. `bucket`: the BackupBucket that the BackupEntry of the shoot
/// names.
pub(super) fn check(shoot: &Shoot, bucket: Option<&BackupBucket>, verdict: Verdict) -> Verdict {
    let Some((source, _)) = wanted_move(shoot) else {
        return verdict;
    };
    if !verdict.ready || journey(shoot) != Journey::Settled || bucket.is_some_and(is_bucket_ready) {
        return verdict;
    }
    let state = bucket.map_or_else(
        || format!("The BackupBucket with the backups of the shoot on seed {source} does not exist"),
        |bucket| {
            let name = bucket.name_any();
            let error = bucket
                .status
                .as_ref()
                .and_then(|status| status.last_error.as_ref());
            let why = error.map_or("status.lastOperation is not Succeeded", |error| {
                &error.description
            });
            format!(
                "BackupBucket {name} with the backups of the shoot on seed {source} is not ready ({})",
                why.trim_end_matches('.')
            )
        },
    );
    let message = format!(
        "{state}, so that no seed could restore the shoot: correct spec.backup of Seed {source} or the Secret that it names; the move \
         begins once status.lastOperation of the BackupBucket is Succeeded, or set spec.seedName back to {source}."
    );
    Verdict {
        ready: false,
        reason: SOURCE_BUCKET_NOT_READY,
        message,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::shoot_migration::Obstacle;

    fn last(type_: &str, state: &str) -> Value {
        json!({"type": type_, "state": state, "progress": 5, "description": "d", "lastUpdateTime": "2026-01-01T00:00:00Z"})
    }

    fn judged(shoot_last: &Value, status: Option<Value>) -> Verdict {
        let shoot = serde_json::from_value(json!({
            "metadata": {"name": "web"}, "spec": {"seedName": "b", "region": "r", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "lastOperation": shoot_last},
        }))
        .unwrap();
        let bucket = status.map(|status| {
            let spec = json!({"provider": {"type": "t", "region": "r"}});
            let mut bucket = BackupBucket::new("bucket-a", serde_json::from_value(spec).unwrap());
            bucket.status = serde_json::from_value(status).unwrap();
            bucket
        });
        let ready = Verdict {
            ready: true,
            reason: "DestinationSeedReady",
            message: String::new(),
        };
        check(&shoot, bucket.as_ref(), ready)
    }

    #[test]
    fn a_move_begins_once_the_bucket_of_the_source_is_ready() {
        let settled = last("Reconcile", "Succeeded");
        let ready = json!({"lastOperation": last("Reconcile", "Succeeded")});
        assert!(judged(&settled, Some(ready)).ready);
        let failed = json!({"lastOperation": last("Reconcile", "Error"),
            "lastError": {"description": "there is no Secret seed-a/none in the garden."}});
        let processing = json!({"lastOperation": last("Create", "Processing")});
        for (status, words) in [
            (
                Some(failed),
                "is not ready (there is no Secret seed-a/none in the garden)",
            ),
            (Some(processing), "status.lastOperation is not Succeeded"),
            (Some(Value::Null), "status.lastOperation is not Succeeded"),
            (None, "does not exist"),
        ] {
            let verdict = judged(&settled, status);
            assert_eq!((verdict.ready, verdict.reason), (false, SOURCE_BUCKET_NOT_READY));
            assert!(verdict.message.contains(words), "{}", verdict.message);
            assert!(
                verdict.message.contains("correct spec.backup of Seed a"),
                "{}",
                verdict.message
            );
            assert!(matches!(verdict.obstacle(), Some(Obstacle::Passing(..))));
        }
    }

    /// The flow of the destination reports the errors from then on.
    #[test]
    fn a_move_that_has_begun_is_not_held() {
        for begun in [
            last("Migrate", "Error"),
            last("Migrate", "Succeeded"),
            last("Restore", "Error"),
        ] {
            assert!(judged(&begun, None).ready, "{begun}");
        }
    }
}
