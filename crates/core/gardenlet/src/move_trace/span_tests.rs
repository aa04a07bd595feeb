//! The spans of both seeds of a move.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use api::meta::ErrorCode;
use flow::TaskFailure;
use parts::ExternalSystem;
use serde_json::{Value as Json, json};

use super::*;

/// A Shoot of the move from `a` to `b`, in this ownership epoch.
fn shoot(epoch: i64, more: &Json) -> Shoot {
    let mut status = json!({
        "uid": "u", "seedName": "a", "retryCycleStartTime": "2026-01-01T00:00:00Z",
        "ownership": {"epoch": epoch},
        "migration": {"source": "a", "destination": "b", "generation": 1, "spec": {}},
    });
    json_patch::merge(&mut status, more);
    serde_json::from_value(json!({
        "metadata": {"name": "demo", "namespace": "garden-dev", "uid": "u"},
        "spec": {"region": "r", "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"}},
        "status": status,
    }))
    .unwrap()
}

/// So many seconds after the first attempt.
fn after(seconds: u64) -> SystemTime {
    let begun: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    SystemTime::from(begun) + Duration::from_secs(seconds)
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|found| found.key.as_str() == key);
    found.map(|found| found.value.to_string())
}

fn ended(failure: Option<&TaskFailure<Error>>) -> TaskEnd<'_, Error> {
    TaskEnd {
        task: "Creating ETCD Snapshot",
        took: Duration::from_secs(3),
        attempts: 2,
        failure,
    }
}

#[test]
fn the_spans_of_both_seeds_are_one_trace_that_follows_from_the_operation_in_the_logs() {
    let none = json!({});
    let migrate = TracedOperation::new(&shoot(2, &none), Operation::Migrate, "a").unwrap();
    let restore = TracedOperation::new(&shoot(3, &none), Operation::Restore, "b").unwrap();
    let (source, destination) = (
        migrate.operation_span(after(40)),
        restore.operation_span(after(90)),
    );
    let trace = |span: &SpanData| span.span_context.trace_id().to_string();
    // The first 32 characters of `printf u-3 | sha256sum`.
    assert_eq!(trace(&source), "dba074d40fbe301b38795514c21ff913");
    assert_eq!(trace(&source), trace(&destination));
    // The first 16 characters of `printf 'u-3 Migrate' | sha256sum`.
    assert_eq!(source.span_context.span_id().to_string(), "999c3a98becc28c3");
    assert_eq!(source.parent_span_id, SpanId::INVALID);
    assert_eq!(destination.parent_span_id, source.span_context.span_id());
    assert!(destination.parent_span_is_remote);
    assert_eq!((&*source.name, &*destination.name), ("Migrate", "Restore"));
    assert_eq!((source.start_time, source.end_time), (after(0), after(40)));
    for (key, of_source, of_destination) in [
        ("gardener.operation.id", "u-3", "u-3"),
        ("gardener.shoot.namespace", "garden-dev", "garden-dev"),
        ("gardener.shoot.name", "demo", "demo"),
        ("gardener.ownership.epoch", "2", "3"),
        ("gardener.move.source", "a", "a"),
        ("gardener.move.destination", "b", "b"),
        ("gardener.move.takeover", "false", "false"),
    ] {
        assert_eq!(attribute(&source, key).as_deref(), Some(of_source), "{key}");
        assert_eq!(
            attribute(&destination, key).as_deref(),
            Some(of_destination),
            "{key}"
        );
    }
    // A different move is a different trace.
    let next = TracedOperation::new(&shoot(3, &none), Operation::Migrate, "a").unwrap();
    assert_ne!(trace(&next.operation_span(after(0))), trace(&source));
}

#[test]
fn a_takeover_has_no_span_of_the_source_above() {
    let approval = |epoch: i64| {
        json!({"ownership": {"approval": {"uid": "u", "from": "a", "to": "b", "epoch": epoch, "by": "Operator",
            "reason": "r", "acceptedLoss": "SinceLastSnapshot", "expiry": "2026-01-01T00:00:00Z"}}})
    };
    let restore = |epoch: i64| {
        let shoot = shoot(3, &approval(epoch));
        let operation = TracedOperation::new(&shoot, Operation::Restore, "b").unwrap();
        operation.operation_span(after(90))
    };
    let takeover = restore(2);
    assert_eq!(takeover.parent_span_id, SpanId::INVALID);
    assert_eq!(
        attribute(&takeover, "gardener.move.takeover").as_deref(),
        Some("true")
    );
    // The approval of an earlier takeover is still recorded.
    let planned = restore(1);
    assert_ne!(planned.parent_span_id, SpanId::INVALID);
    assert_eq!(
        attribute(&planned, "gardener.move.takeover").as_deref(),
        Some("false")
    );
}

#[test]
fn an_operation_that_is_not_part_of_a_move_has_no_spans() {
    let moves = shoot(2, &json!({}));
    let is_traced = |shoot: &Shoot, operation, seed| TracedOperation::new(shoot, operation, seed).is_some();
    assert!(is_traced(&moves, Operation::Migrate, "a"));
    for operation in [Operation::Create, Operation::Reconcile, Operation::Delete] {
        assert!(!is_traced(&moves, operation, "a"), "{operation:?}");
    }
    // A cancelled move: the source restores the shoot in the same epoch.
    assert!(!is_traced(&moves, Operation::Restore, "a"));
    let cancelled = shoot(2, &json!({"migration": null}));
    assert!(!is_traced(&cancelled, Operation::Restore, "a"));
}

/// A task of the source that has ended after so many seconds.
fn task_of_source(failure: Option<&TaskFailure<Error>>, seconds: u64) -> SpanData {
    let migrate = TracedOperation::new(&shoot(2, &json!({})), Operation::Migrate, "a").unwrap();
    let systems = &[ExternalSystem::Cloud, ExternalSystem::Dns];
    migrate.task_span("a flow", &ended(failure), systems, after(seconds))
}

#[test]
fn a_task_is_below_its_operation() {
    let migrate = TracedOperation::new(&shoot(2, &json!({})), Operation::Migrate, "a").unwrap();
    let operation = migrate.operation_span(after(40)).span_context;
    let task = task_of_source(None, 10);
    assert_eq!(task.parent_span_id, operation.span_id());
    assert_eq!(task.span_context.trace_id(), operation.trace_id());
    assert_eq!(task.name, "Creating ETCD Snapshot");
    assert_eq!((task.start_time, task.end_time), (after(7), after(10)));
    assert_eq!(task.status, Status::Unset);
    for (key, value) in [
        ("gardener.flow.name", "a flow"),
        ("gardener.task.outcome", "succeeded"),
        ("gardener.task.attempts", "2"),
        ("gardener.task.external_systems", "[\"cloud\",\"DNS\"]"),
    ] {
        assert_eq!(attribute(&task, key).as_deref(), Some(value), "{key}");
    }
    assert_eq!(attribute(&task, "error.type"), None);
    // The next attempt of the operation runs the task again.
    let again = task_of_source(None, 20);
    assert_ne!(again.span_context.span_id(), task.span_context.span_id());
}

#[test]
fn a_failed_task_has_the_class_of_the_error_and_no_text() {
    let secret = "a message with a secret";
    let wait = || Error::not_ready(Duration::ZERO, secret);
    let timed_out = |last| Cause::TimedOut {
        after: Duration::from_secs(3),
        last,
    };
    let wrong = Error::config(ErrorCode::ErrConfigurationProblem, secret);
    for (cause, outcome, class, status) in [
        (Cause::Error(wrong), "failed", "Config", Status::error("Config")),
        (Cause::Error(wait()), "failed", "NotReady", Status::Unset),
        (
            timed_out(Some(wait())),
            "timed_out",
            "NotReady",
            Status::error("NotReady"),
        ),
        (
            timed_out(None),
            "timed_out",
            "TimedOut",
            Status::error("TimedOut"),
        ),
    ] {
        let failure = TaskFailure {
            task: "Creating ETCD Snapshot",
            cause,
            attempts: 2,
        };
        let span = task_of_source(Some(&failure), 10);
        assert_eq!(
            attribute(&span, "gardener.task.outcome").as_deref(),
            Some(outcome)
        );
        assert_eq!(attribute(&span, "error.type").as_deref(), Some(class));
        assert_eq!(span.status, status);
        assert!(!format!("{span:?}").contains("secret"), "{span:?}");
    }
}
