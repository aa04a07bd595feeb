//! A source that is silent for the grace, a source that is alive and fails, a source that a person states to
//! be off, and a source that reports steps of a move without a move.

use super::*;
use crate::shoot_takeover::obstacle::FAILING_AFTER;

/// Each attempt is cut off and writes the status again, so that the status changes all the time.
#[test]
fn a_source_whose_migration_fails_in_a_loop_is_taken_from() {
    let failing = |last, errors, without_progress| Known {
        last,
        errors,
        silence: Silence::Fresh,
        unchanged: Duration::ZERO,
        without_progress: Some(without_progress),
        ..asked()
    };
    // Between two attempts, and during one.
    for (last, errors) in [
        ("Migrate Error", &[FAILED][..]),
        ("Migrate Error", &[]),
        ("Migrate Failed", &[FAILED]),
        (PROCESSING, &[FAILED]),
        (PROCESSING, &[OBSTACLE, FAILED]),
    ] {
        let Decision::Approve(approval) = failing(last, errors, FAILING_AFTER).decide() else {
            panic!("{last}: {:?}", failing(last, errors, FAILING_AFTER).decide());
        };
        assert!(
            approval
                .reason
                .contains("its migration fails and had made no progress for 60 s")
        );
        // An attempt has just got further than every attempt before: neither refused nor heeded.
        let left = failing(last, errors, Duration::from_secs(13)).decide();
        assert_eq!(left, Decision::Wait(Duration::from_secs(47)), "{last}");
        // The approval stays valid whether the next step meets `Error` or `Processing`.
        let mut consented = failing(last, errors, FAILING_AFTER).consented(&json!({}));
        consented.asked = false;
        assert!(matches!(consented.decide(), Decision::HandOver { .. }), "{last}");
    }
    // Without an error only the time without progress counts, however often the status was written.
    for (last, errors) in [
        (PROCESSING, &[][..]),
        (PROCESSING, &[OBSTACLE]),
        ("Restore Processing", &[]),
    ] {
        let known = failing(last, errors, FAILING_AFTER);
        refused(
            &known,
            "reports no error, and its operation has made no progress for 60 s only",
        );
        let known = failing(last, errors, STALLED_AFTER);
        assert_eq!(approved_by(&known.decide()), Some(ApprovedBy::Operator), "{last}");
    }
    // Errors of a different operation: the source has not begun.
    for last in ["Reconcile Error", "Migrate Pending"] {
        refused(
            &failing(last, &[FAILED], HOURS),
            "renews its Lease and has not begun",
        );
    }
    // No approval takes a shoot from a seed that writes to the Shoot.
    let written = Known {
        asked: false,
        silence: Silence::Silent(HOURS),
        ..failing(PROCESSING, &[FAILED], HOURS)
    };
    assert_eq!(written.decide(), Decision::Wait(STALLED_AFTER));
}

/// An operator's statement instead of the reports of the source's processes.
#[test]
fn a_source_that_is_stated_to_be_off_needs_no_fence() {
    for verified in [
        None,
        Some("OutlastsFence"),
        Some("NeverAnswered"),
        Some("NotConfirmed"),
    ] {
        let off = Known {
            off: true,
            verified,
            ..asked()
        };
        let Decision::Approve(approval) = off.decide() else {
            panic!("{verified:?}: {:?}", off.decide());
        };
        assert!(approval.source_is_off);
        let stated = "without its help and stated that no process of seed a runs any more; its Lease was not renewed for 60 s";
        assert!(approval.reason.contains(stated), "{}", approval.reason);
        // The statement is that of the approval once the annotation is gone.
        let mut used = Known { verified, ..facts() }.consented(&json!({"sourceIsOff": true}));
        assert!(
            matches!(used.decide(), Decision::HandOver { approval, .. } if approval.source_is_off),
            "{verified:?}"
        );
        used.asked = true;
        assert_eq!(used.decide(), Decision::Consume(Request::Takeover));
        // An approval without the statement is replaced: it must not count for more than its content.
        let mut more = Known {
            off: true,
            verified,
            ..asked()
        }
        .consented(&json!({}));
        assert!(matches!(more.decide(), Decision::Approve(approval) if approval.source_is_off));
        more.off = false;
        assert!(
            !matches!(more.decide(), Decision::Approve(_)),
            "{:?}",
            more.decide()
        );
    }
    // No other check is skipped.
    let off = || Known { off: true, ..asked() };
    refused(
        &Known {
            ready: false,
            ..off()
        },
        "Seed b has no spec.backup",
    );
    refused(
        &Known {
            checks: (true, false),
            ..off()
        },
        "seed b does not say",
    );
    // The error message asks for the statement if it is missing.
    refused(
        &Known {
            verified: None,
            ..asked()
        },
        "state that with shoot.gardener.cloud/force-restore=source-is-off",
    );
}

/// A seed that has switched its owner checks off could otherwise keep the shoot for ever.
#[test]
fn a_source_that_is_stated_to_be_off_needs_no_owner_checks() {
    let without_checks = |off: bool| Known {
        off,
        checks: (false, true),
        ..asked()
    };
    refused(&without_checks(false), "seed a does not say");
    let decision = without_checks(true).decide();
    assert!(
        matches!(&decision, Decision::Approve(approval) if approval.source_is_off),
        "{decision:?}"
    );
    let lives = Known {
        silence: Silence::Fresh,
        ..without_checks(true)
    };
    refused(&lives, "the source is not off");
}

/// A gardenlet that renews its Lease contradicts the statement, in any state of its operation.
#[test]
fn a_source_that_renews_its_lease_is_not_off() {
    for last in ["Reconcile Succeeded", "Migrate Error", PROCESSING] {
        let mut known = Known {
            off: true,
            last,
            silence: Silence::Fresh,
            ..asked()
        };
        refused(
            &known,
            "the source is not off: its gardenlet renewed its Lease within the monitor period",
        );
        known.silence = Silence::Unknown(MINUTE);
        assert_eq!(known.decide(), Decision::Wait(MINUTE));
        let consented = Known {
            last,
            silence: Silence::Fresh,
            ..facts()
        }
        .consented(&json!({"sourceIsOff": true}));
        withdrawn(&consented, "the source is not off");
    }
    // Silence alone is no statement.
    let Decision::Approve(approval) = (Known {
        silence: Silence::Silent(HOURS),
        ..facts()
    })
    .decide() else {
        panic!("the grace is over");
    };
    assert!(!approval.source_is_off);
}

#[test]
fn after_the_grace_nobodys_word_is_needed() {
    let silent = |silence, last, unchanged, grace| {
        let known = Known {
            silence: Silence::Silent(silence),
            last,
            unchanged,
            grace,
            ..facts()
        };
        known.decide()
    };
    let two = Some(Duration::from_secs(7200));
    let begun = "Reconcile Succeeded";
    assert_eq!(
        approved_by(&silent(HOURS, begun, Duration::ZERO, two)),
        Some(ApprovedBy::Silence)
    );
    assert_eq!(
        approved_by(&silent(HOURS, PROCESSING, HOURS, two)),
        Some(ApprovedBy::Silence)
    );
    // A sign of life by another path: the source writes to the Shoot.
    assert_eq!(
        silent(HOURS, PROCESSING, Duration::from_secs(180), two),
        Decision::Wait(Duration::from_secs(420))
    );
    // Looked at again in time, and never later than after ten minutes.
    let almost = Duration::from_secs(2 * 3600 - 5);
    assert_eq!(
        silent(almost, begun, HOURS, two),
        Decision::Wait(Duration::from_secs(5))
    );
    assert_eq!(
        silent(MINUTE, begun, HOURS, two),
        Decision::Wait(Duration::from_secs(600))
    );
    // 0: never.
    assert_eq!(silent(HOURS, begun, HOURS, None), Decision::Nothing);
    for known in [
        Known { to: "a", ..facts() },
        Known {
            deleting: true,
            silence: Silence::Silent(HOURS),
            ..facts()
        },
        Known {
            checks: (false, false),
            silence: Silence::Silent(HOURS),
            ..facts()
        },
        Known {
            ready: false,
            silence: Silence::Silent(HOURS),
            ..facts()
        },
    ] {
        assert_eq!(known.decide(), Decision::Nothing);
    }
}

/// The planned move is wanted, and a pending edit would hold the move back without force.
#[test]
fn a_request_that_overrides_a_hold_is_refused_neither_at_a_busy_destination_nor_after_the_approval() {
    let decided = |reason: &str, approved: bool, silence: Silence| {
        let known = Known {
            last: "Reconcile Error",
            silence,
            // The planned move needs no fence.
            checks: if matches!(silence, Silence::Silent(_)) {
                (true, true)
            } else {
                (false, false)
            },
            ..asked()
        };
        let mut shoot = known.shoot();
        shoot.metadata.generation = Some(7);
        let status = shoot.status.as_mut().unwrap();
        for constraint in &mut status.constraints {
            if constraint.type_ == "ReadyForMigration" {
                constraint.reason = reason.to_owned();
            }
        }
        if approved {
            let approval = json!({"source": "a", "destination": "b", "generation": 7, "spec": {}});
            status.migration = serde_json::from_value(approval).unwrap();
        }
        known.decide_on(&shoot)
    };
    for reason in ["DestinationSeedBusy", "DestinationSeedFull"] {
        assert_eq!(
            decided(reason, false, Silence::Fresh),
            Decision::Wait(MINUTE),
            "{reason}"
        );
        let left = Duration::from_secs(17);
        assert_eq!(
            decided(reason, false, Silence::Unknown(left)),
            Decision::Wait(left),
            "{reason}"
        );
        // A takeover needs no slot.
        let approved = decided(reason, false, Silence::Silent(MINUTE));
        assert_eq!(approved_by(&approved), Some(ApprovedBy::Operator), "{reason}");
    }
    let approved = decided("DestinationSeedReady", true, Silence::Fresh);
    assert_eq!(approved, Decision::Consume(Request::Takeover));
    let dead = decided("DestinationSeedReady", true, Silence::Silent(MINUTE));
    assert_eq!(approved_by(&dead), Some(ApprovedBy::Operator));
    let other = decided("DestinationSeedNotReady", false, Silence::Fresh);
    assert!(
        matches!(other, Decision::Refuse(Request::Takeover, _)),
        "{other:?}"
    );
}

/// The source stays dead while the destination is restarted, or cleans up after an earlier move.
#[test]
fn a_destination_that_recovers_by_itself_loses_neither_a_request_nor_a_consent() {
    let decided = |known: &Known, reason: &'static str| {
        let (shoot, source, destination) = (known.shoot(), seed("a", true), seed("b", true));
        let verdict = Verdict {
            ready: false,
            reason,
            message: OBSTACLE.to_owned(),
        };
        decide(&Facts {
            shoot: &shoot,
            source: Some(&source),
            destination: Some(&destination),
            verdict: Some(&verdict),
            silence: known.silence,
            unchanged: known.unchanged,
            without_progress: known.unchanged,
            grace: known.grace,
            now: at(1000),
        })
    };
    for reason in [
        "DestinationSeedNotReady",
        "DestinationSeedNotHealthy",
        "DestinationBackupBucketNotReady",
        "DestinationExtensionsNotReady",
        "DestinationSeedNotCleanedUp",
    ] {
        for known in [asked(), facts().consented(&json!({}))] {
            assert_eq!(decided(&known, reason), Decision::Wait(MINUTE), "{reason}");
        }
        // All further obstacles are reported at once.
        let lives = Known {
            silence: Silence::Fresh,
            ..asked()
        };
        let late = facts().consented(&json!({"expiry": "1970-01-01T00:00:01Z"}));
        assert!(
            matches!(decided(&lives, reason), Decision::Refuse(..)),
            "{reason}"
        );
        assert!(
            matches!(decided(&late, reason), Decision::Withdraw(_)),
            "{reason}"
        );
    }
    for reason in ["DestinationSeedHasNoBackup", "DestinationLacksExtensions"] {
        assert!(
            matches!(decided(&asked(), reason), Decision::Refuse(..)),
            "{reason}"
        );
        let consented = facts().consented(&json!({}));
        assert!(
            matches!(decided(&consented, reason), Decision::Withdraw(_)),
            "{reason}"
        );
    }
}

/// A seed that serves the shoot reports hibernation, so that no fence protects the writes of its processes.
#[test]
fn hibernation_waives_the_fence_only_at_the_request_of_a_user() {
    let unanswered = || Known {
        verified: None,
        ..asked()
    };
    let decided = |known: &Known, enabled: Option<bool>| {
        let mut shoot = known.shoot();
        shoot.status.as_mut().unwrap().hibernated = true;
        shoot.spec.hibernation = serde_json::from_value(json!({"enabled": enabled})).unwrap();
        known.decide_on(&shoot)
    };
    for enabled in [None, Some(false)] {
        let decision = decided(&unanswered(), enabled);
        let words = "has never told whether it asks who owns the shoot";
        let is_refused = matches!(&decision, Decision::Refuse(_, why) if why.contains(words));
        assert!(is_refused, "{enabled:?}: {decision:?}");
    }
    let approved = decided(&unanswered(), Some(true));
    assert_eq!(approved_by(&approved), Some(ApprovedBy::Operator));
}

/// The destination would wait for a snapshot without end, and the Shoot could be neither moved nor deleted.
#[test]
fn a_shoot_whose_creation_never_ended_is_not_taken_over() {
    let words = "has not reported the end of the creation";
    for last in ["Create Processing", "Create Error", "Create Failed"] {
        for off in [false, true] {
            let known = Known { last, off, ..asked() };
            refused(&known, words);
            refused(&known, "delete the Shoot");
        }
        withdrawn(&Known { last, ..facts() }.consented(&json!({})), words);
        let silent = Known {
            last,
            silence: Silence::Silent(HOURS),
            ..facts()
        };
        assert_eq!(silent.decide(), Decision::Nothing, "{last}");
    }
    // A hostile seed takes the Shoot and records no operation.
    let known = asked();
    let mut unrecorded = known.shoot();
    unrecorded.status.as_mut().unwrap().last_operation = None;
    let decision = known.decide_on(&unrecorded);
    assert!(
        matches!(&decision, Decision::Refuse(Request::Takeover, why) if why.contains(words)),
        "{decision:?}"
    );
    // Also after an operator has stated by hand that the shoot has run.
    for last in ["Create Succeeded", "Reconcile Processing"] {
        let known = Known { last, ..asked() };
        assert_eq!(approved_by(&known.decide()), Some(ApprovedBy::Operator), "{last}");
    }
    // A seed that claims the shoot has the data of an earlier epoch.
    let claims = Known {
        last: "Create Error",
        ownership: json!({"epoch": 2, "phase": "Claiming", "source": {"name": "c", "epoch": 1}}),
        ..asked()
    };
    assert_eq!(approved_by(&claims.decide()), Some(ApprovedBy::Operator));
}

/// Otherwise a host keeps each reconciliation of the shoot back, until an operator requests a new epoch.
#[test]
fn a_seal_without_a_move_begins_a_new_epoch() {
    let sealed = |to, last| Known {
        to,
        last,
        ownership: json!({"epoch": 1, "phase": "Sealing"}),
        ..facts()
    };
    for last in [
        "Create Succeeded",
        "Reconcile Processing",
        "Reconcile Succeeded",
        "Restore Succeeded",
    ] {
        let Decision::Renew {
            becomes,
            approval: None,
        } = sealed("a", last).decide()
        else {
            panic!("{last}: {:?}", sealed("a", last).decide());
        };
        assert_eq!((becomes.now.seed.as_str(), becomes.now.epoch), ("a", 2));
        // The move goes on, or begins.
        let decision = sealed("b", last).decide();
        assert!(!matches!(decision, Decision::Renew { .. }), "{decision:?}");
    }
    // A creation without an end has no data that a new epoch could begin with.
    let decision = sealed("a", "Create Processing").decide();
    assert!(!matches!(decision, Decision::Renew { .. }), "{decision:?}");
}

/// Otherwise a host refuses each takeover for good by a single report. No hand-over leaves the epoch at 1.
#[test]
fn a_shoot_that_was_never_handed_over_is_taken_over_whatever_its_host_reports() {
    for last in ["Migrate Succeeded", "Migrate Aborted"] {
        for ownership in [Value::Null, json!({"epoch": 1})] {
            let known = Known {
                last,
                ownership,
                ..asked()
            };
            assert_eq!(approved_by(&known.decide()), Some(ApprovedBy::Operator), "{last}");
        }
        let handed_over = Known {
            last,
            ownership: json!({"epoch": 2}),
            ..asked()
        };
        refused(&handed_over, "its phases are not recorded");
    }
}
