//! A planned move waits for the end of the move before: the source BackupEntry of that move is still being
//! deleted, for example because a retention protects the backups. Pure.
//!
//! An entry that is being deleted cannot name the bucket of the next source. So the shoot would be down on
//! the destination until the deletion ends. In a takeover the source may never end the deletion, and
//! garden-controller-manager releases the entry.

use api::gardencore::{BackupEntry, Shoot};
use kube::ResourceExt;
use placement::{Journey, journey};

use super::preflight::{SOURCE_ENTRY_LEFT, Verdict, wanted_move};

/// The verdict on a move that would begin now, where the source BackupEntry of an earlier move is left.
pub(super) fn check(shoot: &Shoot, source_entry: Option<&BackupEntry>, verdict: Verdict) -> Verdict {
    let Some((source, _)) = wanted_move(shoot) else {
        return verdict;
    };
    if !verdict.ready || journey(shoot) != Journey::Settled {
        return verdict;
    }
    match source_entry.filter(|entry| entry.metadata.deletion_timestamp.is_some()) {
        Some(entry) => left(entry, source),
        None => verdict,
    }
}

fn left(entry: &BackupEntry, source: &str) -> Verdict {
    let status = entry.status.as_ref();
    let error = status.and_then(|status| status.last_error.as_ref());
    let cause = error.map_or("the provider has not removed the backups yet", |error| {
        error.description.trim_end_matches('.')
    });
    Verdict {
        ready: false,
        reason: SOURCE_ENTRY_LEFT,
        message: format!(
            "BackupEntry {} of an earlier move is still being deleted: {cause}. Wait until the entry is gone, or set spec.seedName back to \
             {source}; see docs/operate/runbooks.md.",
            entry.name_any()
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
    use serde_json::json;

    use super::*;

    fn shoot(type_: &str, state: &str) -> Shoot {
        let last = json!({"type": type_, "state": state, "progress": 5, "description": "",
            "lastUpdateTime": "2026-01-01T12:00:00Z"});
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"seedName": "b", "region": "r", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "lastOperation": last},
        }))
        .unwrap()
    }

    fn held(shoot: &Shoot, entry: Option<&BackupEntry>) -> Verdict {
        let ready = Verdict {
            ready: true,
            reason: "DestinationSeedReady",
            message: String::new(),
        };
        check(shoot, entry, ready)
    }

    /// The deletion continues with the bucket of the earlier move, and the entry cannot name the bucket of
    /// this move.
    #[test]
    fn a_planned_move_waits_until_the_source_entry_of_the_move_before_is_gone() {
        let mut left = BackupEntry::new("source-entry", api::gardencore::BackupEntrySpec::default());
        let settled = shoot("Reconcile", "Succeeded");
        assert!(held(&settled, None).ready && held(&settled, Some(&left)).ready);
        left.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let verdict = held(&settled, Some(&left));
        assert_eq!((verdict.ready, verdict.reason), (false, SOURCE_ENTRY_LEFT));
        for words in [
            "BackupEntry source-entry of an earlier move is still being deleted",
            "or set spec.seedName back to a",
        ] {
            assert!(verdict.message.contains(words), "{}", verdict.message);
        }
        let error = json!({"lastError": {"description": "the retention has not ended."}});
        left.status = Some(serde_json::from_value(error).unwrap());
        let verdict = held(&settled, Some(&left));
        assert!(
            verdict.message.contains("the retention has not ended. Wait"),
            "{}",
            verdict.message
        );
        // A move that has begun continues.
        for (type_, state) in [
            ("Migrate", "Error"),
            ("Migrate", "Succeeded"),
            ("Restore", "Error"),
        ] {
            assert!(held(&shoot(type_, state), Some(&left)).ready, "{type_} {state}");
        }
    }
}
