#![allow(clippy::unwrap_used, clippy::panic)]

use api::gardencore::{Seed, Shoot};
use ownership::{Phase, SeedEpoch};
use serde_json::{Value, json};

use super::*;
use crate::shoot_migration::Verdict;
#[path = "decision_source_tests.rs"]
mod source;

const MINUTE: Duration = Duration::from_secs(60);
const HOURS: Duration = Duration::from_secs(10800);
const PROCESSING: &str = "Migrate Processing";
/// The obstacle that the preflight reports at the destination.
const OBSTACLE: &str = "Seed b has no spec.backup.";
/// The error that the source reports of its own attempt.
const FAILED: &str = "task \"Deleting machines\" failed: not done after 600s";

/// The facts; each test changes the facts under test.
#[allow(clippy::struct_excessive_bools)] // The fields are independent facts.
struct Known {
    to: &'static str,
    last: &'static str,
    ownership: Value,
    asked: bool,
    /// `force-restore=source-is-off` instead of `true`.
    off: bool,
    deleting: bool,
    checks: (bool, bool),
    verified: Option<&'static str>,
    ready: bool,
    silence: Silence,
    unchanged: Duration,
    /// The same as `unchanged` unless given.
    without_progress: Option<Duration>,
    errors: &'static [&'static str],
    grace: Option<Duration>,
    host_clock: &'static str,
}

fn facts() -> Known {
    Known {
        to: "b",
        last: "Reconcile Succeeded",
        ownership: Value::Null,
        asked: false,
        off: false,
        deleting: false,
        checks: (true, true),
        // The status of the condition does not matter: the seed has an owner check.
        verified: Some("NotConfirmed"),
        ready: true,
        silence: Silence::Silent(MINUTE),
        unchanged: HOURS,
        without_progress: None,
        errors: &[],
        grace: Some(Duration::from_secs(7200)),
        host_clock: "Rtc",
    }
}

fn at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second).unwrap()
}

impl Known {
    fn shoot(&self) -> Shoot {
        let (type_, state) = self.last.split_once(' ').unwrap();
        let mut annotations = json!({"confirmation.gardener.cloud/deletion": "true"});
        if self.asked {
            let value = if self.off { "source-is-off" } else { "true" };
            annotations["shoot.gardener.cloud/force-restore"] = json!(value);
        }
        let mut metadata = json!({"name": "web", "uid": "u-1", "annotations": annotations});
        if self.deleting {
            metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let told = |type_: &str, reason: &str| {
            json!({"type": type_, "status": "Unknown", "reason": reason, "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
        };
        let verified = self.verified.map(|reason| told("OwnershipVerified", reason));
        let mut complete = told("OwnerChecksComplete", "TermsApplied");
        complete["status"] = json!("True");
        let conditions: Vec<_> = verified.into_iter().chain([complete]).collect();
        let epoch = self.ownership.get("epoch").cloned().unwrap_or(json!(1));
        let terms = placement::owner_terms::hash(&seed("a", self.checks.0), epoch.as_i64().unwrap());
        let entry = json!({"seedName": "a", "epoch": epoch, "serversNamed": false, "terms": terms, "hostClock": self.host_clock});
        let errors: Vec<_> = self
            .errors
            .iter()
            .map(|error| json!({"description": error}))
            .collect();
        let mut preflight = told("ReadyForMigration", "R");
        preflight["message"] = json!(OBSTACLE);
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": metadata,
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": self.to, "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "a", "technicalID": "t", "uid": "u", "ownership": self.ownership, "conditions": conditions,
                "ownerChecks": [entry],
                "constraints": [told("ShootStateUpToDate", "ShootStateNotSynced"), preflight], "lastErrors": errors,
                "lastOperation": {"type": type_, "state": state, "progress": 5, "description": "d",
                    "lastUpdateTime": "2026-01-01T00:00:00Z"}},
        }))
        .unwrap()
    }

    fn decide(&self) -> Decision {
        self.decide_on(&self.shoot())
    }

    fn decide_on(&self, shoot: &Shoot) -> Decision {
        let verdict = self.verdict();
        let (source, destination) = (seed("a", self.checks.0), seed("b", self.checks.1));
        let facts = Facts {
            shoot,
            source: Some(&source),
            destination: Some(&destination),
            verdict: verdict.as_ref(),
            silence: self.silence,
            unchanged: self.unchanged,
            without_progress: self.without_progress.unwrap_or(self.unchanged),
            grace: self.grace,
            now: at(1000),
        };
        let decision = decide(&facts);
        // `is_open` must be true, or the decision would be missed.
        if !matches!(decision, Decision::Nothing | Decision::Wait(_)) {
            assert!(is_open(&facts), "{decision:?}");
        }
        decision
    }

    fn verdict(&self) -> Option<Verdict> {
        (self.to != "a").then(|| Verdict {
            ready: self.ready,
            reason: "R",
            message: OBSTACLE.to_owned(),
        })
    }

    fn consented(mut self, approval: &Value) -> Self {
        let mut whole = json!({"uid": "u-1", "from": "a", "to": "b", "epoch": 1, "acceptedLoss": "SinceLastSnapshot",
            "expiry": "1970-01-01T01:00:00Z", "by": "Operator", "reason": "r"});
        for (key, value) in approval.as_object().unwrap() {
            whole[key] = value.clone();
        }
        if self.ownership.is_null() {
            self.ownership = json!({"epoch": 1});
        }
        self.ownership["approval"] = whole;
        self
    }
}

fn seed(name: &str, checks: bool) -> Seed {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": name},
        "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "provider": {"type": "local", "region": "local"}, "settings": {"ownerChecks": {"enabled": checks}}},
    }))
    .unwrap()
}

fn approved_by(decision: &Decision) -> Option<ApprovedBy> {
    match decision {
        Decision::Approve(approval) => Some(approval.by),
        _ => None,
    }
}

#[track_caller]
fn refused(known: &Known, words: &str) {
    match known.decide() {
        Decision::Refuse(Request::Takeover, why) => assert!(why.contains(words), "{why}"),
        other => panic!("{other:?} instead of a refusal: {words}"),
    }
}

#[track_caller]
fn withdrawn(known: &Known, words: &str) {
    match known.decide() {
        Decision::Withdraw(why) => assert!(why.contains(words), "{why}"),
        other => panic!("{other:?} instead of a withdrawal: {words}"),
    }
}

fn asked() -> Known {
    Known {
        asked: true,
        ..facts()
    }
}

/// R17-05: regardless of the source's progress.
#[test]
fn an_operator_may_take_a_shoot_over_from_a_seed_that_is_silent() {
    for last in [
        "Reconcile Succeeded",
        "Reconcile Error",
        "Migrate Pending",
        PROCESSING,
        "Migrate Failed",
    ] {
        for unchanged in [Duration::ZERO, HOURS] {
            let known = Known {
                last,
                unchanged,
                ..asked()
            };
            let Decision::Approve(approval) = known.decide() else {
                panic!("{last}: {:?}", known.decide());
            };
            assert_eq!(
                (approval.from.as_str(), approval.to.as_str(), approval.epoch),
                ("a", "b", 1)
            );
            assert_eq!(
                (approval.uid.as_str(), approval.by),
                ("u-1", ApprovedBy::Operator)
            );
            assert_eq!(approval.expiry.0, at(1000 + 3600));
            assert!(
                approval.reason.contains("was not renewed for 60 s"),
                "{}",
                approval.reason
            );
        }
    }
}

/// A force-restore of a shoot with a healthy source.
#[test]
fn a_source_that_lives_and_gets_on_is_not_taken_from() {
    for last in ["Reconcile Succeeded", "Reconcile Processing", "Migrate Pending"] {
        let known = Known {
            last,
            silence: Silence::Fresh,
            ..asked()
        };
        refused(&known, "renews its Lease and has not begun");
    }
    let mut known = Known {
        last: PROCESSING,
        silence: Silence::Fresh,
        unchanged: STALLED_AFTER.saturating_sub(Duration::from_secs(1)),
        ..asked()
    };
    refused(
        &known,
        "reports no error, and its operation has made no progress for 599 s only, not for 600 s",
    );
    // R17-04: the operation began and is stuck.
    known.unchanged = STALLED_AFTER;
    assert_eq!(approved_by(&known.decide()), Some(ApprovedBy::Operator));
}

/// Neither refused nor accepted: this process has just started.
#[test]
fn nothing_is_decided_before_it_can_be_known() {
    let left = Duration::from_secs(17);
    let mut known = Known {
        silence: Silence::Unknown(left),
        ..asked()
    };
    assert_eq!(known.decide(), Decision::Wait(left));
    known.silence = Silence::Unknown(Duration::ZERO);
    assert_eq!(known.decide(), Decision::Wait(Duration::from_secs(1)));
    known.asked = false;
    assert_eq!(known.decide(), Decision::Wait(Duration::from_secs(600)));
}

#[test]
fn each_refusal_says_what_is_in_the_way() {
    refused(&Known { to: "a", ..asked() }, "is to move nowhere");
    let deleting = true;
    refused(&Known { deleting, ..asked() }, "is being deleted");
    let ready = false;
    refused(&Known { ready, ..asked() }, "Seed b has no spec.backup");
    refused(
        &Known {
            checks: (false, true),
            ..asked()
        },
        "without a fence two control planes could write: seed a does not say",
    );
    refused(
        &Known {
            checks: (true, false),
            ..asked()
        },
        "without a fence two control planes could write: seed b does not say",
    );
    // No process of the seed has an owner check: the setting was introduced when the seed was already cut
    // off.
    let unasked = Known {
        verified: None,
        ..asked()
    };
    refused(
        &unasked,
        "seed a has never told whether it asks who owns the shoot",
    );
    let verified = Some("OutlastsFence");
    refused(&Known { verified, ..asked() }, "for longer than a fence lasts");
    // The data may be in either bucket.
    for last in ["Migrate Succeeded", "Migrate Aborted", "Restore Processing"] {
        let ownership = json!({"epoch": 2});
        let known = Known {
            last,
            ownership,
            ..asked()
        };
        refused(&known, "its phases are not recorded");
    }
    // The source takes back a shoot that it has never handed over, and dies.
    let last = "Restore Processing";
    let known = Known { last, ..asked() };
    assert_eq!(approved_by(&known.decide()), Some(ApprovedBy::Operator));
    // A seed that has opened no data acknowledges no writes.
    let known = Known {
        last,
        ownership: json!({"epoch": 2, "phase": "Claiming", "source": {"name": "c", "epoch": 1}}),
        verified: None,
        ..asked()
    };
    assert_eq!(approved_by(&known.decide()), Some(ApprovedBy::Operator));
}

/// A hypervisor may pause such a seed, and the seed continues to write when it resumes.
#[test]
fn silence_is_no_approval_where_the_clock_of_the_source_may_stop() {
    let known = Known {
        silence: Silence::Silent(HOURS),
        host_clock: "None",
        ..facts()
    };
    assert_eq!(known.decide(), Decision::Nothing);
    // A person decides all the same.
    let known = Known {
        silence: Silence::Silent(HOURS),
        host_clock: "None",
        ..asked()
    };
    assert_eq!(approved_by(&known.decide()), Some(ApprovedBy::Operator));
}

#[test]
fn consent_is_used_when_the_annotation_is_gone() {
    let mut known = facts().consented(&json!({}));
    known.asked = true;
    assert_eq!(known.decide(), Decision::Consume(Request::Takeover));
    known.asked = false;
    let Decision::HandOver { becomes, approval } = known.decide() else {
        panic!("{:?}", known.decide());
    };
    assert_eq!(approval.by, ApprovedBy::Operator);
    let seed_epoch = |seed: &str, epoch| SeedEpoch {
        seed: seed.to_owned(),
        epoch,
    };
    assert_eq!(becomes.now, seed_epoch("b", 2));
    assert_eq!(becomes.phase, Phase::Claiming);
    assert_eq!(becomes.source, Some(seed_epoch("a", 1)));
    assert!(!becomes.drained);
    known.silence = Silence::Unknown(MINUTE);
    assert_eq!(known.decide(), Decision::Wait(MINUTE));
}

/// A destination that died before it had opened any data: the data are still at the source.
#[test]
fn a_seed_that_has_opened_nothing_is_no_source() {
    for (phase, source) in [("Claiming", ("c", 4)), ("Opening", ("a", 5))] {
        let mut known = facts();
        known.last = "Restore Processing";
        known.ownership = json!({"epoch": 5, "phase": phase, "source": {"name": "c", "epoch": 4}});
        let known = known.consented(&json!({"epoch": 5}));
        let Decision::HandOver { becomes, .. } = known.decide() else {
            panic!("{:?}", known.decide());
        };
        let found = becomes
            .source
            .as_ref()
            .map(|seed_epoch| (seed_epoch.seed.as_str(), seed_epoch.epoch));
        assert_eq!(found, Some(source));
        assert_eq!(becomes.now.epoch, 6);
    }
}

/// A sealed epoch never serves again: after the cancellation the shoot stays in a new epoch.
#[test]
fn a_call_off_after_the_seal_begins_a_new_epoch() {
    let in_phase = |phase: &str, to, last, deleting| {
        let known = Known {
            to,
            last,
            deleting,
            ownership: json!({"epoch": 7, "phase": phase, "source": {"name": "c", "epoch": 6}, "drained": true}),
            ..facts()
        };
        known.decide()
    };
    for (to, deleting) in [("a", false), ("a", true), ("b", true)] {
        let Decision::Renew {
            becomes,
            approval: None,
        } = in_phase("Sealing", to, PROCESSING, deleting)
        else {
            panic!("{to}: {:?}", in_phase("Sealing", to, PROCESSING, deleting));
        };
        assert_eq!((becomes.now.seed.as_str(), becomes.now.epoch), ("a", 8));
        assert_eq!((becomes.phase, becomes.drained), (Phase::Claiming, false));
        let source = becomes.source.unwrap();
        assert_eq!((source.seed.as_str(), source.epoch), ("a", 7));
        // The owner goes back without a new epoch, or is not on its way.
        for phase in ["Held", "Leaving", "Claiming", "Opening"] {
            let decision = in_phase(phase, to, PROCESSING, deleting);
            assert!(
                !matches!(decision, Decision::Renew { .. }),
                "{phase}: {decision:?}"
            );
        }
    }
    // The source continues to leave, even if its seed reports a restore: the user has not cancelled the move.
    for last in [PROCESSING, "Restore Processing"] {
        let decision = in_phase("Sealing", "b", last, false);
        assert!(!matches!(decision, Decision::Renew { .. }), "{decision:?}");
    }
    // The gardenlet was faster, and works in an epoch in which etcd does not open.
    assert!(matches!(
        in_phase("Sealing", "a", "Restore Processing", false),
        Decision::Renew { .. }
    ));
}

#[test]
fn consent_is_for_one_move_and_not_for_long() {
    for other in [
        json!({"uid": "u-2"}),
        json!({"from": "c"}),
        json!({"to": "c"}),
        json!({"epoch": 2}),
    ] {
        withdrawn(&facts().consented(&other), "it is for seed");
    }
    // A used approval is history.
    let used = facts().consented(&json!({"epoch": 0}));
    assert_eq!(used.decide(), Decision::Wait(AT_MOST));
    withdrawn(
        &facts().consented(&json!({"expiry": "1970-01-01T00:16:40Z"})),
        "too old",
    );
    let given = || facts().consented(&json!({}));
    withdrawn(&Known { to: "a", ..given() }, "is to move nowhere");
    withdrawn(
        &Known {
            deleting: true,
            ..given()
        },
        "being deleted",
    );
    withdrawn(
        &Known {
            checks: (false, true),
            ..given()
        },
        "without a fence",
    );
    withdrawn(
        &Known {
            ready: false,
            ..given()
        },
        "no spec.backup",
    );
    withdrawn(
        &Known {
            silence: Silence::Fresh,
            ..given()
        },
        "renews its Lease",
    );
    let by_silence = || facts().consented(&json!({"by": "Silence"}));
    withdrawn(
        &Known {
            silence: Silence::Fresh,
            ..by_silence()
        },
        "was heard again",
    );
    withdrawn(
        &Known {
            silence: Silence::Silent(HOURS),
            grace: None,
            ..by_silence()
        },
        "not long enough",
    );
}
