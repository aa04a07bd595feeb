//! The status of an etcd that is deliberately kept away from clients (R17-40..49).
#![allow(clippy::unwrap_used)]

use api::druid::{Etcd, EtcdStatus};
use serde_json::{Value, json};
use sidecar_protocol::{SidecarHealth, SidecarOwnership, SnapshotterPhase};

use super::{
    compute,
    tests::{now, observed, pod, set},
};
use crate::{
    objects::{
        owner_tests::checked,
        tests::{MAIN, etcd},
    },
    observed::Observed,
};

/// etcd runs; its backup process runs and is not ready.
fn fenced(state: &str, why: &str, said: Option<SidecarHealth>) -> Observed {
    Observed {
        ownership: Some(SidecarOwnership {
            state: Some(state.into()),
            why: why.to_owned(),
            ..SidecarOwnership::default()
        }),
        sidecar: said,
        ..observed(&set(1), &[pod(false, true, false)])
    }
}

fn health(finished: bool, error: Option<&str>) -> SidecarHealth {
    SidecarHealth {
        phase: if finished {
            SnapshotterPhase::Finished
        } else {
            SnapshotterPhase::Starting
        },
        error: error.map(str::to_owned),
        finished,
        ..SidecarHealth::default()
    }
}

fn condition(status: &EtcdStatus, type_: &str) -> Option<(String, String, String)> {
    let found = status.conditions.iter().find(|c| c.type_ == type_)?;
    Some((found.status.clone(), found.reason.clone(), found.message.clone()))
}

fn status_of(etcd: &Etcd, observed: &Observed) -> EtcdStatus {
    compute(etcd, Ok(()), observed, &now())
}

/// An operator who reads the Etcd sees that this is no failure, and the reason.
#[test]
fn a_fenced_etcd_is_not_ready_and_says_why() {
    for (state, verified, reason, operation, sentence) in [
        (
            "Waiting",
            "Unknown",
            "NotConfirmed",
            "Processing",
            "etcd is not served until it is confirmed that the shoot is this seed's: no server answers.",
        ),
        (
            "Suspended",
            "Unknown",
            "NotConfirmed",
            "Processing",
            "etcd is not served until it is confirmed that the shoot is this seed's: no server answers.",
        ),
        (
            "Sealed",
            "False",
            "Lost",
            "Succeeded",
            "etcd is not served any more in this ownership epoch, as the shoot is not this seed's: no server answers.",
        ),
    ] {
        let status = status_of(
            &checked(),
            &fenced(state, "no server answers", Some(health(false, None))),
        );
        assert_eq!(status.ready, Some(false), "{state}");
        assert!(status.last_errors.is_empty(), "{state} {:?}", status.last_errors);
        for type_ in ["Ready", "AllMembersReady"] {
            let expected = ("False".to_owned(), "Fenced".to_owned(), sentence.to_owned());
            assert_eq!(condition(&status, type_), Some(expected), "{state}");
        }
        let expected = (verified.to_owned(), reason.to_owned(), sentence.to_owned());
        assert_eq!(condition(&status, "OwnershipVerified"), Some(expected), "{state}");
        let last = status.last_operation.unwrap();
        assert_eq!(
            (last.state.as_str(), last.description.as_str()),
            (operation, sentence),
            "{state}"
        );
    }
}

/// A user must not take over the shoot with the default fence.
#[test]
fn an_etcd_that_no_fence_outlasts_says_so_but_where_it_has_lost() {
    let told = |change: fn(&mut api::druid::OwnerCheckSpec), state: &str| {
        let mut etcd = checked();
        change(etcd.spec.backup.owner_check.as_mut().unwrap());
        let status = status_of(&etcd, &fenced(state, "w", Some(health(false, None))));
        let (status, reason, _) = condition(&status, "OwnershipVerified").unwrap();
        (status, reason)
    };
    let words = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
    let tolerates: fn(&mut api::druid::OwnerCheckSpec) =
        |check| check.silence = Some(api::druid::OwnerCheckSilence::Tolerate);
    let lasts: fn(&mut api::druid::OwnerCheckSpec) =
        |check| (check.validity, check.fence) = (Some("15s".into()), Some("30s".into()));
    let waits: fn(&mut api::druid::OwnerCheckSpec) = |check| check.fence = Some("30s".into());
    // Refused, so that etcd keeps running with the former settings.
    let too_long: fn(&mut api::druid::OwnerCheckSpec) =
        |check| (check.validity, check.fence) = (Some("90m".into()), Some("2h".into()));
    for (change, reason) in [
        (tolerates, "OutlastsAnyFence"),
        (lasts, "OutlastsFence"),
        (too_long, "OutlastsFence"),
    ] {
        assert_eq!(told(change, "Suspended"), words("Unknown", reason));
        assert_eq!(told(change, "Serving"), words("True", reason));
        assert_eq!(told(change, "Sealed"), words("False", "Lost"));
    }
    assert_eq!(told(waits, "Serving"), words("True", "Owner"));
}

#[test]
fn an_owner_that_the_record_does_not_confirm_names_the_servers() {
    let why = "the seed owns the shoot by its bucket alone: 192.0.2.1:53: no answer";
    let status = status_of(&checked(), &fenced("Serving", why, Some(health(false, None))));
    let (status, reason, message) = condition(&status, "OwnershipVerified").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Owner"));
    assert!(
        message.contains("by its bucket alone: 192.0.2.1:53: no answer."),
        "{message}"
    );
}

/// The running process may have other settings than the specification requires: a user has changed the
/// specification, and the process was not restarted.
#[test]
fn whether_a_fence_outlasts_it_the_process_says_that_runs() {
    use api::druid::OwnerCheckSilence::{Deactivate, Tolerate};
    // The specification, the settings that the process reports, the last reported reason, and the expected
    // reason.
    for (asked, goes_by, before, expected) in [
        (Deactivate, Some(("Deactivate", 23_036)), None, "Owner"),
        (Deactivate, Some(("Tolerate", 23_036)), None, "OutlastsAnyFence"),
        (
            Deactivate,
            Some(("Tolerate", 23_036)),
            Some("Owner"),
            "OutlastsAnyFence",
        ),
        (
            Deactivate,
            Some(("Deactivate", 26_000)),
            Some("Owner"),
            "OutlastsAnyFence",
        ),
        (
            Deactivate,
            Some(("Deactivate", 23_036)),
            Some("OutlastsFence"),
            "Owner",
        ),
        // The process does not report its settings.
        (Deactivate, None, None, "Owner"),
        (Deactivate, None, Some("Owner"), "Owner"),
        (Deactivate, None, Some("OutlastsFence"), "OutlastsAnyFence"),
        (
            Deactivate,
            Some(("Deactivate", 23_036)),
            Some("OutlastsAnyFence"),
            "Owner",
        ),
        (Deactivate, None, Some("OutlastsAnyFence"), "OutlastsAnyFence"),
        // A process with the specified settings may start at any time.
        (
            Tolerate,
            Some(("Deactivate", 23_036)),
            Some("Owner"),
            "OutlastsAnyFence",
        ),
        (Tolerate, None, Some("Owner"), "OutlastsAnyFence"),
        (Tolerate, Some(("Tolerate", 23_036)), None, "OutlastsAnyFence"),
        (
            Tolerate,
            Some(("Tolerate", 26_000)),
            Some("OutlastsFence"),
            "OutlastsAnyFence",
        ),
    ] {
        let mut etcd = checked();
        etcd.spec.backup.owner_check.as_mut().unwrap().silence = Some(asked);
        etcd.status = before.map(|reason| status_with("True", reason, "2026-01-01T00:00:00Z"));
        let mut observed = fenced("Serving", "", None);
        if let Some((silence, fence)) = goes_by {
            let said = observed.ownership.as_mut().unwrap();
            (said.silence, said.least_fence_milliseconds) = (Some(silence.to_owned()), Some(fence));
        }
        let (_, reason, _) = condition(&status_of(&etcd, &observed), "OwnershipVerified").unwrap();
        assert_eq!(reason, expected, "{asked:?} {goes_by:?} {before:?}");
        // The process does not answer at all.
        observed.ownership = None;
        let (is, reason, _) = condition(&status_of(&etcd, &observed), "OwnershipVerified").unwrap();
        let expected = match (before, asked) {
            (Some("OutlastsFence" | "OutlastsAnyFence"), _) | (_, Tolerate) => "OutlastsAnyFence",
            (None, _) => "NeverAnswered",
            _ => "NoAnswer",
        };
        assert_eq!(
            (is.as_str(), reason.as_str()),
            ("Unknown", expected),
            "{asked:?} {before:?}"
        );
    }
}

/// The kubelet of the pod may be dead.
#[test]
fn one_that_is_to_stop_and_outlasts_a_fence_says_so_until_its_pod_is_gone() {
    for (before, pods, expected) in [
        (
            "OutlastsFence",
            &[pod(false, true, false)][..],
            Some("OutlastsAnyFence"),
        ),
        ("OutlastsFence", &[], None),
        ("Owner", &[pod(false, true, false)], None),
    ] {
        let mut etcd = checked();
        etcd.spec.replicas = 0;
        etcd.status = Some(status_with("True", before, "2026-01-01T00:00:00Z"));
        let status = status_of(&etcd, &observed(&set(1), pods));
        let found = condition(&status, "OwnershipVerified");
        let found = found
            .as_ref()
            .map(|(is, reason, _)| (is.as_str(), reason.as_str()));
        assert_eq!(
            found,
            expected.map(|reason| ("Unknown", reason)),
            "{before} {}",
            pods.len()
        );
    }
}

/// The last `OwnershipVerified` condition of an Etcd.
fn status_with(status: &str, reason: &str, time: &str) -> EtcdStatus {
    serde_json::from_value(json!({"conditions": [{
        "type": "OwnershipVerified", "status": status, "reason": reason,
        "message": "It is confirmed that the shoot is this seed's.",
        "lastTransitionTime": "2025-12-31T00:00:00Z", "lastUpdateTime": time,
    }]}))
    .unwrap()
}

/// The time is that of the last answer, and not written more than once a minute.
#[test]
fn that_it_is_confirmed_still_is_told_once_a_minute_while_the_process_answers() {
    let now = now();
    for (told_at, answers, renewed) in [
        ("2026-01-01T00:00:00Z", true, false),
        ("2025-12-31T23:59:11Z", true, false),
        ("2025-12-31T23:59:10Z", true, true),
        ("2025-12-31T00:00:00Z", true, true),
        // A clock was wrong.
        ("2026-01-01T01:00:00Z", true, true),
        ("2025-12-31T00:00:00Z", false, false),
    ] {
        let mut etcd = checked();
        let before = if answers {
            status_with("True", "Owner", told_at)
        } else {
            let mut before = status_with("Unknown", "NoAnswer", told_at);
            before.conditions[0].message =
                "etcd-backup-restore does not answer whether the shoot is this seed's.".to_owned();
            before
        };
        let old = before.conditions[0].clone();
        etcd.status = Some(before);
        let mut observed = fenced("Serving", "the seed owns the shoot", None);
        observed.ownership = observed.ownership.filter(|_| answers);
        let status = status_of(&etcd, &observed);
        let new = status
            .conditions
            .iter()
            .find(|c| c.type_ == "OwnershipVerified")
            .unwrap();
        let expected = api::druid::EtcdCondition {
            last_update_time: if renewed {
                now.clone()
            } else {
                old.last_update_time.clone()
            },
            ..old
        };
        assert_eq!(new, &expected, "{told_at} {answers}");
        // The times of all other conditions stay, and a second computation directly afterwards has the same
        // result.
        etcd.status = Some(status.clone());
        assert_eq!(status_of(&etcd, &observed), status, "{told_at} {answers}");
    }
}

#[test]
fn a_fenced_etcd_tells_what_becomes_of_its_final_snapshot() {
    for (state, said, expected) in [
        ("Suspended", Some(health(true, None)), ("Unknown", "NotConfirmed")),
        (
            "Suspended",
            Some(health(false, None)),
            ("Unknown", "NotConfirmed"),
        ),
        ("Sealed", Some(health(true, None)), ("True", "FinalSnapshotTaken")),
        (
            "Sealed",
            Some(health(false, Some("StoreUnavailable: no answer"))),
            ("False", "FinalSnapshotMissing"),
        ),
        (
            "Sealed",
            Some(health(false, None)),
            ("Unknown", "FinalSnapshotPending"),
        ),
        ("Sealed", None, ("Unknown", "FinalSnapshotPending")),
    ] {
        let status = status_of(&checked(), &fenced(state, "", said));
        let (is, reason, _) = condition(&status, "BackupReady").unwrap();
        assert_eq!((is.as_str(), reason.as_str()), expected, "{state}");
    }
}

#[test]
fn one_that_is_confirmed_is_as_any_other_and_says_so() {
    let serving = Observed {
        ownership: fenced("Serving", "the seed owns the shoot", None).ownership,
        ..observed(&set(1), &[pod(true, true, true)])
    };
    let status = status_of(&checked(), &serving);
    assert_eq!(status.ready, Some(true));
    let (is, reason, _) = condition(&status, "OwnershipVerified").unwrap();
    assert_eq!((is.as_str(), reason.as_str()), ("True", "Owner"));
    // etcd fails for a different reason.
    let failing = Observed {
        members: observed(&set(1), &[pod(false, false, true)]).members,
        ..serving
    };
    let (is, reason, _) = condition(&status_of(&checked(), &failing), "Ready").unwrap();
    assert_eq!((is.as_str(), reason.as_str()), ("False", "QuorumLost"));
    // Without an answer; a stopped etcd; an etcd without a check.
    let silent = observed(&set(1), &[pod(false, true, false)]);
    let (is, reason, _) = condition(&status_of(&checked(), &silent), "OwnershipVerified").unwrap();
    assert_eq!((is.as_str(), reason.as_str()), ("Unknown", "NeverAnswered"));
    let mut stopped = checked();
    stopped.spec.replicas = 0;
    let status = status_of(&stopped, &fenced("Sealed", "", None));
    assert_eq!(condition(&status, "OwnershipVerified"), None);
    assert_eq!(condition(&status, "Ready").unwrap().1, "NoMembers");
    assert_eq!(
        condition(&status_of(&etcd(MAIN), &silent), "OwnershipVerified"),
        None
    );
}

fn ended(state: &Value, last: &Value) -> Value {
    let mut pod = pod(false, false, false);
    let etcd = &mut pod["status"]["containerStatuses"][0];
    (etcd["state"], etcd["lastState"]) = (state.clone(), last.clone());
    pod
}

/// R17-41: the backup process ends etcd. That is no error of etcd; any other exit is an error, also then.
#[test]
fn an_etcd_that_was_told_to_end_did_not_fail() {
    let ended_with = |code: i32| json!({"terminated": {"exitCode": code}});
    let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    for (pod, state, errors) in [
        (ended(&ended_with(143), &json!({})), "Sealed", 0),
        (ended(&ended_with(143), &json!({})), "Suspended", 0),
        (ended(&waits, &ended_with(143)), "Sealed", 0),
        (ended(&ended_with(143), &json!({})), "Serving", 1),
        (ended(&ended_with(1), &json!({})), "Sealed", 1),
        (ended(&waits, &ended_with(2)), "Sealed", 1),
    ] {
        let observed = Observed {
            ownership: fenced(state, "", None).ownership,
            ..observed(&set(1), std::slice::from_ref(&pod))
        };
        let status = status_of(&checked(), &observed);
        assert_eq!(
            status.last_errors.len(),
            errors,
            "{state} {pod} {:?}",
            status.last_errors
        );
    }
}

/// A destination asks these servers when this seed is dead, and reads their addresses from the Shoot.
#[test]
fn the_servers_that_the_process_asks_are_kept_while_it_does_not_answer() {
    let mut etcd = checked();
    let answers = |answer: Value| Observed {
        ownership: Some(serde_json::from_value(answer).unwrap()),
        ..observed(&set(1), &[pod(true, true, true)])
    };
    let full = json!({"state": "Serving", "servers": ["192.0.2.1:53"], "serversNamed": false, "leastFenceMilliseconds": 19_032,
        "hostClock": "Rtc"});
    let reported = |status: &EtcdStatus| status.owner_check.as_ref().map(|check| json!(check));
    let expected = json!({"servers": ["192.0.2.1:53"], "serversNamed": false, "leastFenceSeconds": 20, "hostClock": "Rtc"});
    let status = status_of(&etcd, &answers(full.clone()));
    assert_eq!(reported(&status), Some(expected.clone()));
    etcd.status = Some(status);
    let silent = observed(&set(1), &[pod(false, false, false)]);
    // An older process does not report its servers, and a process that has just started may not have found
    // its servers.
    let older = answers(json!({"state": "Serving", "leastFenceMilliseconds": 19_032}));
    let started = answers(json!({"state": "Waiting", "servers": [], "serversNamed": false}));
    for observed in [&silent, &older, &started] {
        assert_eq!(reported(&status_of(&etcd, observed)), Some(expected.clone()));
    }
    let mut other = full.clone();
    other["servers"] = json!(["192.0.2.9:53"]);
    other["serversNamed"] = json!(true);
    let status = status_of(&etcd, &answers(other));
    let check = status.owner_check.unwrap();
    assert_eq!(
        (check.servers, check.servers_named),
        (vec!["192.0.2.9:53".to_owned()], true)
    );
    etcd.spec.backup.owner_check = None;
    assert_eq!(reported(&status_of(&etcd, &answers(full))), None);
}
