//! The BackupEntry and the source BackupEntry of a shoot.

#![allow(clippy::panic, clippy::unwrap_used)]

use api::gardencore::BackupEntrySpec;

use super::*;
use crate::from_json;

fn entry(name: &str, bucket: &str) -> gardencore::BackupEntry {
    gardencore::BackupEntry::new(
        name,
        BackupEntrySpec {
            bucket_name: bucket.into(),
            ..BackupEntrySpec::default()
        },
    )
}

fn deleted(error: &serde_json::Value) -> gardencore::BackupEntry {
    let mut entry = entry("source-a", "former");
    entry.metadata.deletion_timestamp = Some(from_json(json!("2026-01-01T00:00:00Z")).unwrap());
    entry.status = Some(from_json(json!({"lastError": error})).unwrap());
    entry
}

#[test]
fn a_source_entry_whose_backups_the_store_keeps_is_not_waited_for() {
    let refused = json!({"description": "the retention has not ended", "codes": ["ERR_INFRA_UNAUTHORIZED"]});
    assert_eq!(
        removal_refusal(&deleted(&refused)),
        Some("the retention has not ended")
    );
    let unreachable = json!({"description": "the store does not answer"});
    assert_eq!(removal_refusal(&deleted(&unreachable)), None);
    assert_eq!(removal_refusal(&deleted(&json!(null))), None);
    let mut kept = deleted(&refused);
    kept.metadata.deletion_timestamp = None;
    assert_eq!(removal_refusal(&kept), None);
}

/// Otherwise the provider would delete backups that are not copied yet.
#[test]
fn a_source_entry_that_is_being_deleted_gets_no_other_bucket() {
    let refused = json!({"description": "the retention has not ended.", "codes": ["ERR_INFRA_UNAUTHORIZED"]});
    let look_writable = |entry: Option<&gardencore::BackupEntry>| look_writable("source-a", "own", entry);
    let wait::WaitState::Fail(error) = look_writable(Some(&deleted(&refused))) else {
        panic!("a restore goes on with an entry that is being deleted");
    };
    let words = "BackupEntry source-a of an earlier move is still being deleted";
    assert!(error.to_string().contains(words), "{error}");
    assert!(
        error.to_string().contains("the retention has not ended. See"),
        "{error}"
    );
    let going = deleted(&json!(null));
    assert!(matches!(look_writable(Some(&going)), wait::WaitState::Wait(_)));
    for writable in [None, Some(&entry("source-a", "former"))] {
        assert!(matches!(look_writable(writable), wait::WaitState::Done));
    }
}

/// The flow creates and changes no entry: a wait says for what it waits.
#[test]
fn an_entry_is_awaited_until_it_names_this_seed_and_the_bucket() {
    let why = |entry: Option<&gardencore::BackupEntry>| match look_assigned(entry, "seed-b", "bucket-b") {
        wait::WaitState::Wait(why) => why,
        wait::WaitState::Done => "done".to_owned(),
        wait::WaitState::Fail(error) => panic!("{error}"),
    };
    assert!(why(None).contains("has not created it yet"));
    let mut of_a = entry("a", "bucket-b");
    of_a.spec.seed_name = Some("seed-a".into());
    assert!(why(Some(&of_a)).contains("from seed seed-a to seed seed-b"));
    of_a.spec.seed_name = Some("seed-b".into());
    assert_eq!(why(Some(&of_a)), "done");
    of_a.spec.bucket_name = "planted".into();
    assert!(why(Some(&of_a)).contains("must name bucket bucket-b"));
}

#[test]
fn a_mark_of_the_end_counts_only_once_the_data_are_chosen() {
    let mut own = entry("a", "own");
    let mark = constants::BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH.to_owned();
    own.annotations_mut().insert(mark, "2".to_owned());
    let shoot = |ownership: &Value| {
        let mut shoot = Shoot::new("web", api::gardencore::ShootSpec::default());
        shoot.status = Some(from_json(json!({"seedName": "seed-b", "ownership": ownership})).unwrap());
        shoot
    };
    let recorded = |phase: &str| shoot(&json!({"epoch": 2, "phase": phase}));
    let judge = |relied_on: &Shoot, garden: &Shoot, own| judge_copy(relied_on, garden, 2, own);
    let (claiming, opening) = (recorded("Claiming"), recorded("Opening"));
    assert_eq!(judge(&claiming, &claiming, Some(&own)), CopyState::Possible);
    assert_eq!(judge(&opening, &opening, Some(&own)), CopyState::Ended);
    let without_phases = shoot(&json!({"epoch": 2}));
    assert_eq!(
        judge(&without_phases, &without_phases, Some(&own)),
        CopyState::Ended
    );
    assert_eq!(judge(&opening, &opening, None), CopyState::Possible);
    // The seed has lost its note: garden-controller-manager reads the recorded phase, and creates no entry.
    for phase in ["Opening", "Held"] {
        let copy = judge(&claiming, &recorded(phase), Some(&own));
        assert_eq!(copy, CopyState::EndedInGarden, "{phase}");
        assert_eq!(judge(&claiming, &recorded(phase), None), CopyState::Possible);
    }
}

/// A former host may have written the report.
#[test]
fn a_restore_ends_a_preset_report_of_copied_backups() {
    let body = request(&entry("source-a", "former"), operation::RESTORE, 2);
    let annotations = &body["metadata"]["annotations"];
    let copied = annotations.get(constants::BACKUP_ENTRY_BACKUPS_COPIED);
    assert_eq!(copied, Some(&Value::Null));
    assert_eq!(annotations[constants::OWNERSHIP_EPOCH], "2");
    assert_eq!(annotations[constants::OPERATION], operation::RESTORE);
    let of_an_older_version = request(&entry("a", "own"), operation::RECONCILE, 1);
    let annotations = &of_an_older_version["metadata"]["annotations"];
    assert_eq!(annotations.get(constants::OWNERSHIP_EPOCH), None);
}

/// garden-controller-manager releases the entry within a second: the restore must not report a
/// configuration problem.
#[test]
fn a_takeover_waits_for_the_release_of_a_source_entry_that_the_dead_seed_deletes() {
    let refused = json!({"description": "the retention has not ended.", "codes": ["ERR_INFRA_UNAUTHORIZED"]});
    let mut left = deleted(&refused);
    left.status.as_mut().unwrap().seed_name = Some("seed-b".to_owned());
    let wait::WaitState::Wait(why) = look_writable("source-a", "seed-c", Some(&left)) else {
        panic!("the restore does not wait for the release");
    };
    assert!(
        why.contains("to seed seed-b") && why.contains("the retention has not ended. See"),
        "{why}"
    );
    let own = look_writable("source-a", "seed-b", Some(&left));
    assert!(matches!(own, wait::WaitState::Fail(_)));
}

#[test]
fn an_entry_that_another_seed_still_holds_is_not_ready() {
    let mut held = entry("a", "own");
    held.status = Some(
        from_json(json!({"seedName": "seed-a", "lastOperation": {"type": "Restore",
        "state": "Succeeded", "progress": 100, "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"}}))
        .unwrap(),
    );
    assert!(matches!(
        look_reconciled(&held, "seed-b"),
        ObjectState::Pending(_)
    ));
    assert!(matches!(look_reconciled(&held, "seed-a"), ObjectState::Done));
}
