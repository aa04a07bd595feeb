//! The record in the API, as client-go reads and writes the record.

#![allow(clippy::unwrap_used, clippy::unchecked_time_subtraction)]

use k8s_openapi::api::coordination::v1::Lease;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{ElectionRecord, Timing};

fn time(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

fn wire(record: &ElectionRecord) -> Value {
    serde_json::to_value(record.spec()).unwrap()
}

fn read(spec: &Value) -> ElectionRecord {
    let lease: Lease = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
    ElectionRecord::read(lease.spec.as_ref())
}

/// A record written by kube-controller-manager 1.34.
fn theirs() -> Value {
    json!({
        "holderIdentity": "node-1_0b0c27ad-6d42-4a63-8b71-f0d3ed1bfd7c",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-02T03:04:05.000006Z",
        "renewTime": "2026-01-02T04:00:00.123456Z",
        "leaseTransitions": 7,
    })
}

#[test]
fn what_client_go_writes_is_read_and_written_alike() {
    assert_eq!(wire(&read(&theirs())), theirs());
}

#[test]
fn a_new_lock_has_no_transitions_and_microseconds() {
    let record = ElectionRecord::created("me", &Timing::default(), time("2026-01-02T03:04:05.123456789Z"));
    let expected = json!({
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-02T03:04:05.123456Z",
        "renewTime": "2026-01-02T03:04:05.123456Z",
        "leaseTransitions": 0,
    });
    assert_eq!(wire(&record), expected);
}

#[test]
fn a_take_over_counts_one_more() {
    let record = read(&theirs()).taken_over("me", &Timing::default(), time("2026-01-02T05:00:00Z"));
    let expected = json!({
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-02T05:00:00.000000Z",
        "renewTime": "2026-01-02T05:00:00.000000Z",
        "leaseTransitions": 8,
    });
    assert_eq!(wire(&record), expected);
}

#[test]
fn a_release_names_nobody_for_one_second() {
    let record = read(&theirs()).released(time("2026-01-02T05:00:00Z"));
    let expected = json!({
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2026-01-02T05:00:00.000000Z",
        "renewTime": "2026-01-02T05:00:00.000000Z",
        "leaseTransitions": 7,
    });
    assert_eq!(wire(&record), expected);
    assert_eq!(read(&expected).holder, None, "an empty holder is nobody");
}

/// Candidates detect a renewal by a change of the record. So each renewal must change the record, whatever
/// the wall clock shows.
#[rstest]
#[case::a_clock_that_goes("2026-01-02T04:00:02Z", "2026-01-02T04:00:02.000000Z")]
#[case::a_clock_that_stands("2026-01-02T04:00:00.123456Z", "2026-01-02T04:00:01.123456Z")]
#[case::a_clock_that_crawls("2026-01-02T04:00:00.123456999Z", "2026-01-02T04:00:01.123456Z")]
#[case::twice_in_a_second("2026-01-02T04:00:00.9Z", "2026-01-02T04:00:01.900000Z")]
#[case::in_the_next_second("2026-01-02T04:00:01Z", "2026-01-02T04:00:01.000000Z")]
#[case::a_clock_that_went_back("2026-01-02T03:00:00Z", "2026-01-02T03:00:00.000000Z")]
fn a_renewal_always_changes_the_record(#[case] wall: &str, #[case] renewed: &str) {
    let before = read(&theirs());
    let record = before.renewed("me", &Timing::default(), time(wall));
    let written = wire(&record);
    assert_eq!(
        written["renewTime"].as_str().map(|t| &t[..26]),
        Some(&renewed[..26])
    );
    assert_eq!(written["acquireTime"], theirs()["acquireTime"]);
    assert_eq!(written["leaseTransitions"], 7);
    // client-go compares whole seconds.
    let seconds = |spec: &Value| spec["renewTime"].as_str().map(|time| time[..19].to_owned());
    assert_ne!(seconds(&written), seconds(&theirs()));
}

/// Two alternating values would look like no change to a candidate that sees every second renewal.
#[test]
fn a_clock_that_stands_still_never_repeats_a_renewal_soon() {
    let (timing, wall) = (Timing::default(), time("2026-01-02T05:00:00Z"));
    let mut record = read(&theirs());
    let mut seen = Vec::new();
    for _ in 0..10 {
        record = record.renewed("me", &timing, wall);
        assert!(
            !seen.contains(&record.renewed),
            "{:?} after {seen:?}",
            record.renewed
        );
        seen.push(record.renewed);
    }
}

#[rstest]
#[case::nothing(json!({}))]
#[case::an_empty_holder(json!({"holderIdentity": ""}))]
fn a_prepared_lease_is_free(#[case] spec: Value) {
    let record = read(&spec);
    assert_eq!(record.holder, None);
    assert_eq!(
        record
            .taken_over("me", &Timing::default(), time("2026-01-02T05:00:00Z"))
            .transitions,
        1
    );
}
