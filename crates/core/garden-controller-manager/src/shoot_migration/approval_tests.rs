//! A Shoot on its way from seed a to seed b, edited in the middle.

#![allow(clippy::unwrap_used, clippy::panic)]

use api::{
    gardencore::ShootSpec,
    meta::{LastOperation, LastOperationType as Type},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::*;

/// On `host`, wanted on `spec`, in the given version of Kubernetes.
fn shoot(spec: &str, host: &str, generation: i64, version: &str, last: (Type, State)) -> Shoot {
    let mut shoot = Shoot::new(
        "web",
        ShootSpec {
            seed_name: Some(spec.into()),
            ..ShootSpec::default()
        },
    );
    shoot.spec.kubernetes.version = Some(version.into());
    shoot.metadata.generation = Some(generation);
    shoot.status = Some(ShootStatus {
        seed_name: Some(host.into()),
        last_operation: Some(LastOperation {
            description: String::new(),
            last_update_time: Time(Timestamp::UNIX_EPOCH),
            progress: 5,
            state: last.1,
            type_: last.0,
        }),
        ..ShootStatus::default()
    });
    shoot
}

const SETTLED: (Type, State) = (Type::Reconcile, State::Succeeded);
const LEAVING: (Type, State) = (Type::Migrate, State::Processing);
const ARRIVED: (Type, State) = (Type::Migrate, State::Succeeded);
const RESTORING: (Type, State) = (Type::Restore, State::Processing);

/// The approval of the move from a to b in generation 3, made while the shoot ran 1.33.0.
fn approved() -> MigrationApproval {
    decide(&shoot("b", "a", 3, "1.33.0", SETTLED), true)
        .unwrap()
        .approval
        .unwrap()
}

fn with(mut shoot: Shoot, approval: Option<MigrationApproval>) -> Shoot {
    shoot.status.as_mut().unwrap().migration = approval;
    shoot
}

/// The approval after the verdict; the shoot stays with its seed.
fn after(shoot: &Shoot, ready: bool) -> Option<MigrationApproval> {
    let decision = decide(shoot, ready).unwrap();
    assert_eq!(decision.hand_on, None);
    decision.approval
}

fn version(approval: &MigrationApproval) -> String {
    let spec: ShootSpec = approval.spec.decode().unwrap();
    spec.kubernetes.version.unwrap()
}

#[test]
fn a_verdict_names_its_destination_and_what_it_judged() {
    let approval = approved();
    assert_eq!(
        (
            approval.source.as_str(),
            approval.destination.as_str(),
            approval.generation
        ),
        ("a", "b", 3)
    );
    let spec: ShootSpec = approval.spec.decode().unwrap();
    assert_eq!(spec, shoot("b", "a", 3, "1.33.0", SETTLED).spec);
}

#[test]
fn an_edit_before_the_begin_is_judged_anew() {
    let edited = with(shoot("b", "a", 4, "1.34.0", SETTLED), Some(approved()));
    let approval = after(&edited, true).unwrap();
    assert_eq!((approval.generation, version(&approval).as_str()), (4, "1.34.0"));
    // A move that is not ready any more loses its approval.
    assert_eq!(after(&edited, false), None);
    // So does a cancelled move, and a move that has ended.
    for host in ["a", "b"] {
        let settled = with(shoot(host, host, 4, "1.34.0", SETTLED), Some(approved()));
        assert_eq!(after(&settled, false), None);
    }
    let pending = with(
        shoot("b", "a", 4, "1.34.0", (Type::Migrate, State::Pending)),
        Some(approved()),
    );
    assert_eq!(after(&pending, true).unwrap().generation, 4);
    assert_eq!(after(&pending, false), None);
}

#[test]
fn an_edited_version_in_the_middle_becomes_no_upgrade() {
    let states = [
        ("a", LEAVING),
        ("a", (Type::Migrate, State::Error)),
        ("a", (Type::Migrate, State::Failed)),
        ("b", ARRIVED),
        ("b", (Type::Migrate, State::Aborted)),
        ("b", RESTORING),
        ("b", (Type::Restore, State::Error)),
        ("b", (Type::Restore, State::Failed)),
    ];
    for (host, last) in states {
        let edited = with(shoot("b", host, 4, "1.34.0", last), Some(approved()));
        // Regardless of the destination's state meanwhile.
        for ready in [true, false] {
            assert_eq!(after(&edited, ready), Some(approved()), "{last:?}");
        }
    }
    // The end of the restore lets the edit through, regardless of the operation recorded after it.
    for type_ in [Type::Restore, Type::Reconcile, Type::Delete] {
        let ended = with(
            shoot("b", "b", 4, "1.34.0", (type_, State::Succeeded)),
            Some(approved()),
        );
        assert_eq!(after(&ended, false), None);
    }
    let next = with(
        shoot("b", "b", 4, "1.34.0", (Type::Reconcile, State::Processing)),
        Some(approved()),
    );
    assert_eq!(after(&next, false), None);
}

#[test]
fn another_destination_in_the_middle_takes_over_what_was_begun() {
    let elsewhere = with(shoot("c", "a", 4, "1.34.0", LEAVING), Some(approved()));
    let approval = after(&elsewhere, true).unwrap();
    assert_eq!(
        (
            approval.source.as_str(),
            approval.destination.as_str(),
            approval.generation
        ),
        ("a", "c", 4)
    );
    assert_eq!(version(&approval), "1.33.0");
    // Until the new destination is ready the move may not go there: the approval keeps naming the former
    // destination, which the Shoot does not name any more.
    assert_eq!(after(&elsewhere, false), Some(approved()));
    // A move that began under an older version has no approval yet, and gets an approval to continue.
    let unapproved = shoot("b", "a", 4, "1.34.0", LEAVING);
    assert_eq!(after(&unapproved, true).unwrap().destination, "b");
    assert_eq!(after(&unapproved, false), None);
}

#[test]
fn a_call_off_in_the_middle_takes_the_approval_back() {
    for state in [State::Processing, State::Error, State::Failed] {
        let called_off = with(
            shoot("a", "a", 4, "1.33.0", (Type::Migrate, state)),
            Some(approved()),
        );
        assert_eq!(after(&called_off, false), None);
    }
}

#[test]
fn a_shoot_that_nobody_has_begun_to_restore_is_handed_on() {
    let mut elsewhere = with(shoot("c", "b", 4, "1.34.0", ARRIVED), Some(approved()));
    let status = elsewhere.status.as_mut().unwrap();
    status.ownership = Some(Ownership::of_epoch(5));
    let source = FormerSeed {
        name: "a".into(),
        epoch: 4,
    };
    status.former_seeds = vec![source.clone()];
    let Decision { approval, hand_on } = decide(&elsewhere, true).unwrap();
    let approval = approval.unwrap();
    assert_eq!(
        (
            approval.source.as_str(),
            approval.destination.as_str(),
            approval.generation
        ),
        ("b", "c", 4)
    );
    assert_eq!(version(&approval), "1.33.0");
    let left = FormerSeed {
        name: "b".into(),
        epoch: 5,
    };
    let expected = HandOn {
        to: "c".into(),
        ownership: Ownership::of_epoch(6),
        former_seeds: vec![source, left],
    };
    assert_eq!(hand_on, Some(expected));
    // The bucket with the data stays, also where the epoch of the source is not recorded.
    let recorded = |epoch: i64| {
        let name = "bucket-a".to_owned();
        Some(SourceBucket { name, epoch })
    };
    let record = elsewhere.status.as_mut().unwrap().ownership.as_mut().unwrap();
    record.source_bucket = recorded(4);
    let again = decide(&elsewhere, true).unwrap().hand_on.unwrap();
    assert_eq!(again.ownership.source_bucket, recorded(5));
    // Not back to a former seed: that takes a request of a person, and a present seed that is dead.
    let mut back = with(shoot("a", "b", 4, "1.34.0", ARRIVED), Some(approved()));
    back.status.as_mut().unwrap().former_seeds = vec![FormerSeed {
        name: "a".into(),
        epoch: 4,
    }];
    assert_eq!(decide(&back, true).unwrap().hand_on, None);
    // Not to a destination that is not ready, and not once the restore may have begun.
    assert_eq!(after(&elsewhere, false), Some(approved()));
    for last in [
        RESTORING,
        (Type::Restore, State::Error),
        (Type::Migrate, State::Aborted),
    ] {
        let begun = with(shoot("c", "b", 4, "1.34.0", last), Some(approved()));
        assert_eq!(after(&begun, true), Some(approved()));
    }
    // Nor a shoot that still has its source, or that has arrived at its wanted seed.
    assert_eq!(
        decide(&shoot("c", "a", 4, "1.34.0", LEAVING), true)
            .unwrap()
            .hand_on,
        None
    );
    assert_eq!(
        decide(&shoot("b", "b", 4, "1.34.0", ARRIVED), true)
            .unwrap()
            .hand_on,
        None
    );
}

/// The host reports a hand-over that never came. The next seed would then get the shoot without an approval
/// and without a fence.
#[test]
fn a_host_that_only_reports_a_hand_over_hands_nothing_on() {
    let former = |name: &str, epoch| FormerSeed {
        name: name.into(),
        epoch,
    };
    for (epoch, former_seeds, is_handed_on) in [
        (None, vec![], false),
        (Some(1), vec![former("c", 0)], false),
        (Some(2), vec![], false),
        (Some(3), vec![former("c", 1)], false),
        (Some(3), vec![former("c", 1), former("d", 2)], true),
    ] {
        let mut reported = with(shoot("b", "a", 4, "1.34.0", ARRIVED), Some(approved()));
        let status = reported.status.as_mut().unwrap();
        status.ownership = epoch.map(Ownership::of_epoch);
        status.former_seeds = former_seeds;
        let decision = decide(&reported, true).unwrap();
        assert_eq!(decision.hand_on.is_some(), is_handed_on, "{epoch:?}");
        if !is_handed_on {
            assert_eq!(decision.approval, Some(approved()), "{epoch:?}");
        }
    }
}

/// A source that has opened nothing cleans up within a second, and removes its entry from the former seeds.
#[test]
fn a_claimant_hands_on_whose_source_has_cleaned_up_already() {
    let mut claimed = with(shoot("d", "c", 4, "1.34.0", ARRIVED), Some(approved()));
    let status = claimed.status.as_mut().unwrap();
    status.ownership = Some(Ownership {
        phase: Some(OwnershipPhase::Claiming),
        ..Ownership::of_epoch(3)
    });
    status.former_seeds = vec![FormerSeed {
        name: "a".into(),
        epoch: 1,
    }];
    let verdict = report_refused_hand_on(&claimed, ready());
    assert!(verdict.ready, "{}", verdict.message);
    let hand_on = decide(&claimed, verdict.ready).unwrap().hand_on.unwrap();
    assert_eq!((hand_on.to.as_str(), hand_on.ownership.epoch), ("d", 4));
    // A seed that has opened the data serves the shoot, whatever it reports.
    for phase in [OwnershipPhase::Opening, OwnershipPhase::Held] {
        let record = claimed.status.as_mut().unwrap().ownership.as_mut().unwrap();
        record.phase = Some(phase);
        assert_eq!(decide(&claimed, true).unwrap().hand_on, None, "{phase:?}");
    }
}

#[test]
fn a_refused_hand_on_is_reported_with_the_remedies() {
    let mut reported = with(shoot("b", "a", 4, "1.34.0", ARRIVED), Some(approved()));
    let verdict = report_refused_hand_on(&reported, ready());
    assert!(!verdict.ready);
    assert_eq!(verdict.reason, "HandOverNotRecorded");
    assert!(
        verdict.message.ends_with("set spec.seedName back to a."),
        "{}",
        verdict.message
    );
    // A takeover needs recorded phases.
    reported.status.as_mut().unwrap().ownership = Some(Ownership {
        phase: Some(OwnershipPhase::Held),
        ..Ownership::of_epoch(1)
    });
    let verdict = report_refused_hand_on(&reported, ready());
    assert!(verdict.message.contains("force-restore"), "{}", verdict.message);
    // An earlier obstacle stays.
    let earlier = Verdict {
        ready: false,
        ..ready()
    };
    assert_eq!(report_refused_hand_on(&reported, earlier.clone()), earlier);
    // A hand-over with its record, and a shoot that has not arrived.
    let status = reported.status.as_mut().unwrap();
    status.ownership = Some(Ownership::of_epoch(2));
    status.former_seeds = vec![FormerSeed {
        name: "c".into(),
        epoch: 1,
    }];
    assert!(report_refused_hand_on(&reported, ready()).ready);
    for last in [SETTLED, LEAVING, RESTORING, (Type::Migrate, State::Aborted)] {
        let other = shoot("b", "a", 4, "1.34.0", last);
        assert!(report_refused_hand_on(&other, ready()).ready, "{last:?}");
    }
}

fn ready() -> Verdict {
    Verdict {
        ready: true,
        reason: "DestinationSeedReady",
        message: "Fine.".into(),
    }
}
