//! Tests the plan of a destination, and the check that a record belongs to the seed's own epoch.

#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;
use crate::Operation;

fn shoot(status: &Value) -> Shoot {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "garden-dev", "uid": "u"},
        "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local", "seedName": "b"},
        "status": status,
    }))
    .unwrap()
}

fn last(type_: &str) -> Value {
    json!({"type": type_, "state": "Processing", "progress": 1, "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"})
}

fn recorded(phase: &str, drained: bool) -> Ownership<String> {
    let status = json!({"seedName": "b", "ownership": {"epoch": 2, "phase": phase, "drained": drained}});
    ownership_status::ownership(&shoot(&status)).unwrap()
}

#[test]
fn who_was_given_the_shoot_fences_nobody() {
    for (phase, drained, expected) in [
        ("Claiming", true, ClaimPlan::AfterHandOver),
        ("Opening", true, ClaimPlan::AfterHandOver),
        ("Claiming", false, ClaimPlan::AfterTakeover),
        ("Opening", false, ClaimPlan::AfterTakeover),
        ("Held", false, ClaimPlan::Nothing),
        ("Leaving", false, ClaimPlan::DepartureCancelled),
        ("Sealing", false, ClaimPlan::Nothing),
    ] {
        assert_eq!(plan_of(&recorded(phase, drained)), expected, "{phase} {drained}");
    }
    assert!(!ClaimPlan::AfterHandOver.fences() && ClaimPlan::AfterHandOver.begins_epoch());
    assert!(!ClaimPlan::DepartureCancelled.fences() && !ClaimPlan::DepartureCancelled.begins_epoch());
}

/// Processes in a seed still have permits of the former epoch. So the claim fences also when the shoot
/// returns to the same seed.
#[test]
fn a_shoot_that_comes_back_is_fenced_and_not_copied() {
    for phase in ["Claiming", "Opening"] {
        for drained in [true, false] {
            let mut recorded = recorded(phase, drained);
            recorded.source = Some(SeedEpoch {
                seed: "b".to_owned(),
                epoch: 1,
            });
            let plan = plan_of(&recorded);
            assert!(plan.fences() && plan.returns() && plan.begins_epoch(), "{plan:?}");
        }
    }
}

/// R17-60: a gardenlet that wakes up late finds a record of a different seed, epoch or operation.
#[test]
fn a_record_of_another_seed_epoch_or_operation_is_not_its_own() {
    let me = SeedEpoch {
        seed: "b".to_owned(),
        epoch: 2,
    };
    let of = |seed: &str, epoch: i64, operation: &str| {
        let status = json!({
            "seedName": seed, "ownership": {"epoch": epoch, "phase": "Claiming"}, "lastOperation": last(operation),
        });
        owned(&shoot(&status), &me, Operation::Restore)
    };
    assert_eq!(of("b", 2, "Restore").unwrap().phase, Phase::Claiming);
    for (seed, epoch, operation) in [
        ("c", 2, "Restore"),
        ("b", 3, "Restore"),
        ("b", 1, "Restore"),
        ("b", 2, "Migrate"),
    ] {
        let error = of(seed, epoch, operation).unwrap_err();
        assert!(
            matches!(error, Error::NotOwner(_)),
            "{seed} {epoch} {operation}: {error}"
        );
    }
    assert!(owned(&shoot(&json!({})), &me, Operation::Restore).is_err());
}

/// The obstacles are a setting that was switched off meanwhile, and an Etcd from an earlier time in the seed.
#[test]
fn a_claim_that_could_lose_data_or_meet_its_source_does_not_begin() {
    let from = |source: &str, phase: &str, drained: bool| {
        let mut recorded = recorded(phase, drained);
        recorded.source = Some(SeedEpoch {
            seed: source.to_owned(),
            epoch: 1,
        });
        recorded
    };
    for (recorded, checks, copies, expected) in [
        (from("a", "Claiming", false), true, true, None),
        (from("a", "Claiming", false), false, true, Some("ownerChecks")),
        (from("a", "Claiming", true), false, true, None),
        // The data of a shoot that returns are in the seed's own bucket, and no copy runs.
        (from("b", "Claiming", false), true, false, None),
        (from("b", "Claiming", false), false, false, Some("ownerChecks")),
        (from("a", "Claiming", false), true, false, Some("from before")),
        (from("a", "Claiming", true), true, false, Some("from before")),
        // etcd already runs with the chosen data.
        (from("a", "Opening", false), true, false, None),
    ] {
        let checked = check(&recorded, checks, copies);
        assert_eq!(
            checked.is_err(),
            expected.is_some(),
            "{recorded:?} {checks} {copies}"
        );
        let why = checked.err().unwrap_or_default();
        assert!(why.contains(expected.unwrap_or_default()), "{why}");
    }
}

/// A merge patch keeps the fields that the patch does not name.
#[test]
fn a_loss_takes_nothing_over_from_an_earlier_one() {
    let mut opened = recorded("Opening", false);
    opened.source = Some(SeedEpoch {
        seed: "a".to_owned(),
        epoch: 1,
    });
    for field in ["restored", "restoredBefore"] {
        assert_eq!(build_record(&opened, None, None).get(field), None, "{field}");
    }
    let restored = json!({"epoch": 2, "fenced": "2026-01-01T00:01:30Z", "unknown": "why"});
    let earlier =
        json!({"epoch": 1, "restored": {"epoch": 1, "lastRevision": 7, "fenced": "2025-01-01T00:00:00Z"}});
    let earlier: Recorded = serde_json::from_value(earlier).unwrap();
    let told = build_record(&opened, serde_json::from_value(restored).unwrap(), Some(&earlier));
    assert_eq!(told["restoredBefore"], json!([earlier.restored]));
    assert_eq!(
        told["restored"],
        json!({"epoch": 2, "fenced": "2026-01-01T00:01:30Z", "unknown": "why", "source": {"name": "a", "epoch": 1},
            "lastRevision": null, "saved": null, "lostRevisions": null, "leftAside": null})
    );
    let all = json!({"epoch": 2, "fenced": "2026-01-01T00:01:30Z", "unknown": "why", "source": {"name": "a", "epoch": 1},
        "lastRevision": 1, "saved": "2026-01-01T00:01:30Z", "lostRevisions": 1, "leftAside": ["a"]});
    let all: RestoredData = serde_json::from_value(all).unwrap();
    let named: std::collections::BTreeSet<_> = data_loss::RESTORED
        .into_iter()
        .chain(["epoch", "fenced"])
        .map(str::to_owned)
        .collect();
    let there: std::collections::BTreeSet<_> = json!(all).as_object().unwrap().keys().cloned().collect();
    assert_eq!(named, there);
}

fn brought(complete: bool, lost_revisions: Option<i64>) -> CopiedChain {
    CopiedChain {
        final_snapshot: false,
        last_revision: 54,
        saved: None,
        complete,
        sealed_revision: None,
        lost_revisions,
        left_aside: Vec::new(),
    }
}

/// I2, R17-27: the garden's record of the source never replaces the data that the copy has read and hashed.
#[test]
fn only_what_was_copied_opens_an_etcd() {
    let complete = Some(brought(true, None));
    let short = Some(brought(false, None));
    let accepted = Some(brought(false, Some(17)));
    for (drained, fence_passed, copied, expected) in [
        (true, false, &complete, Ok(Chain::Final)),
        (true, false, &None, Err(Wait::Copy(Chain::Final))),
        (true, false, &short, Err(Wait::Copy(Chain::Final))),
        (true, false, &accepted, Ok(Chain::Last)),
        // A passed fence proves no property of the data that the source handed over.
        (true, true, &short, Err(Wait::Copy(Chain::Final))),
        (false, false, &complete, Err(Wait::Source)),
        (false, false, &short, Err(Wait::Source)),
        (false, true, &complete, Ok(Chain::Final)),
        (false, true, &short, Ok(Chain::Last)),
        (false, true, &None, Err(Wait::Copy(Chain::Last))),
    ] {
        let recorded = recorded("Claiming", drained);
        let seen = Evidence {
            earlier_pods_gone: true,
            ..judge_copy(&recorded, copied.as_ref(), None, fence_passed)
        };
        let opened = may_open(&recorded, &recorded.now, seen);
        assert_eq!(opened, expected, "{drained} {fence_passed} {copied:?}");
    }
}

/// A restarted gardenlet has lost the report of the copy; the recorded choice stands.
#[test]
fn a_doubted_hand_over_removes_the_reports_of_the_source() {
    let handed_over = recorded("Claiming", true);
    let current = ownership_status::recorded(&handed_over);
    let same = build_record(&handed_over, None, Some(&current));
    assert_eq!((&same["drained"], same.get("sealed")), (&json!(true), None));
    let doubted = Ownership {
        drained: false,
        ..handed_over
    };
    let patch = build_record(&doubted, None, Some(&current));
    for field in ["drained", "sealed"] {
        assert_eq!(patch.get(field), Some(&Value::Null), "{field}");
    }
    let current = ownership_status::recorded(&doubted);
    assert_eq!(build_record(&doubted, None, Some(&current)).get("sealed"), None);
}

#[test]
fn a_recorded_choice_stands() {
    for chain in [Chain::Final, Chain::Last] {
        let mut recorded = recorded("Opening", false);
        recorded.chain = Some(chain);
        let seen = Evidence {
            earlier_pods_gone: true,
            ..judge_copy(&recorded, None, None, false)
        };
        assert_eq!(may_open(&recorded, &recorded.now, seen), Ok(chain));
    }
}

#[test]
fn a_destination_that_relies_on_no_evidence_is_noticed() {
    for (mutation, test, failure) in [
        (
            Mutation::CopyEvidenceIgnored,
            only_what_was_copied_opens_an_etcd as fn(),
            "true false None",
        ),
        (
            Mutation::EndedEpochContinued,
            a_record_of_another_seed_epoch_or_operation_is_not_its_own,
            "unwrap_err",
        ),
    ] {
        mutation.assert_killed_by(test, failure);
    }
}
