//! The spans of a move, and the ids of the trace and the spans. All functions are pure.
//!
//! The ids follow from the identity of the move, which the logs of both seeds show as `operationID`. So both
//! gardenlets export spans of the same trace, and exchange no message for the trace. A gardenlet that has
//! restarted continues the trace.
//!
//! | span | from | to | parent |
//! |---|---|---|---|
//! | `Migrate` | first attempt in the source | hand-over | none |
//! | `Restore` | first attempt in the destination | success | `Migrate`; none after a takeover |
//! | name of a task | start of the task | end of the task | the operation of the task |
//!
//! The spans of an operation are exported at the end of each task, the span of the operation itself at the
//! end of the operation. So a source that dies leaves tasks without a parent in the trace.
//!
//! A span has names, numbers and the class of an error, and no text of an error.

use std::{borrow::Cow, time::SystemTime};

use api::gardencore::{Shoot, shoot::ShootStatus};
use flow::{Cause, TaskEnd};
use kube::ResourceExt;
use opentelemetry::{
    Array, InstrumentationScope, KeyValue, StringValue, Value,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use parts::ExternalSystems;
use placement::Operation;
use runtime::Error;
use sha2::{Digest, Sha256};

use crate::shoot::operation::identity::OperationIdentity;

/// Name of the operation of the source.
const MIGRATE: &str = "Migrate";
/// Name of the operation of the destination.
const RESTORE: &str = "Restore";

/// An operation of this seed that is part of a move.
#[derive(Clone, Debug)]
pub(super) struct TracedOperation {
    /// Identity of the move.
    id: String,
    seed: String,
    name: &'static str,
    is_takeover: bool,
    /// Time of the first attempt, in whole seconds.
    begun: Option<SystemTime>,
    /// The attributes of all spans of the operation.
    attributes: Vec<KeyValue>,
}

impl TracedOperation {
    /// `None` for an operation that is not part of a move from or to this seed. `shoot`: the Shoot after the
    /// start of the operation was recorded.
    pub(super) fn new(shoot: &Shoot, operation: Operation, seed: &str) -> Option<Self> {
        let status = shoot.status.as_ref()?;
        let approval = status.migration.as_ref()?;
        let name = match operation {
            Operation::Migrate if approval.source == seed => MIGRATE,
            // The restoration after a cancelled move has no approval, or an approval for a different seed.
            Operation::Restore if approval.destination == seed => RESTORE,
            _ => return None,
        };
        let id = OperationIdentity::new(shoot, operation).id().to_owned();
        let is_takeover = name == RESTORE && is_taken_over(status);
        let attributes = vec![
            KeyValue::new("gardener.operation.id", id.clone()),
            KeyValue::new("gardener.operation.type", name),
            KeyValue::new("gardener.shoot.namespace", shoot.namespace().unwrap_or_default()),
            KeyValue::new("gardener.shoot.name", shoot.name_any()),
            KeyValue::new("gardener.ownership.epoch", status.epoch()),
            KeyValue::new("gardener.move.source", approval.source.clone()),
            KeyValue::new("gardener.move.destination", approval.destination.clone()),
            KeyValue::new("gardener.move.takeover", is_takeover),
        ];
        let begun = status.retry_cycle_start_time.as_ref();
        Some(Self {
            id,
            seed: seed.to_owned(),
            name,
            is_takeover,
            begun: begun.map(|time| SystemTime::from(time.0)),
            attributes,
        })
    }

    /// The span of the operation, with all attempts. `ended`: the time of the success.
    pub(super) fn operation_span(&self, ended: SystemTime) -> SpanData {
        let begun = self.begun.unwrap_or(ended);
        let mut span = self.span(self.name, operation_span_id(&self.id, self.name), [begun, ended]);
        if self.name == RESTORE && !self.is_takeover {
            span.parent_span_id = operation_span_id(&self.id, MIGRATE);
            span.parent_span_is_remote = true;
        }
        span
    }

    /// The span of a task that has ended now. `systems`: the external systems that the task may change.
    pub(super) fn task_span(
        &self,
        flow: &'static str,
        end: &TaskEnd<'_, Error>,
        systems: ExternalSystems,
        now: SystemTime,
    ) -> SpanData {
        let begun = now.checked_sub(end.took).unwrap_or(now);
        let id = self.task_span_id(end.task, begun);
        let mut span = self.span(end.task, id, [begun, now]);
        span.parent_span_id = operation_span_id(&self.id, self.name);
        span.attributes.extend([
            KeyValue::new("gardener.flow.name", flow),
            KeyValue::new("gardener.task.outcome", end.outcome()),
            KeyValue::new("gardener.task.attempts", i64::from(end.attempts)),
        ]);
        if !systems.is_empty() {
            let names = systems.iter().map(|system| StringValue::from(system.to_string()));
            let names = Value::Array(Array::String(names.collect()));
            span.attributes
                .push(KeyValue::new("gardener.task.external_systems", names));
        }
        if let Some(failure) = end.failure {
            let (class, is_failure) = class_of(&failure.cause);
            span.attributes.push(KeyValue::new("error.type", class));
            if is_failure {
                span.status = Status::error(class);
            }
        }
        span
    }

    fn span(&self, name: &'static str, id: SpanId, [begun, ended]: [SystemTime; 2]) -> SpanData {
        let trace = TraceId::from_bytes(first_bytes(&self.id));
        let scope = InstrumentationScope::builder("gardenlet").with_version(env!("CARGO_PKG_VERSION"));
        SpanData {
            span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::NONE),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: Cow::Borrowed(name),
            start_time: begun.min(ended),
            end_time: ended,
            attributes: self.attributes.clone(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: scope.build(),
        }
    }

    /// Each run of a task has an id of its own.
    fn task_span_id(&self, task: &str, begun: SystemTime) -> SpanId {
        let begun = begun.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (seed, nanoseconds) = (&self.seed, begun.as_nanos());
        let text = format!("{} {} {seed} {task} {nanoseconds}", self.id, self.name);
        SpanId::from_bytes(first_bytes(&text))
    }
}

/// Whether the present ownership epoch began without the help of the source.
fn is_taken_over(status: &ShootStatus) -> bool {
    status.ownership.as_ref().is_some_and(|ownership| {
        let approval = ownership.approval.as_ref();
        approval.is_some_and(|approval| approval.epoch + 1 == ownership.epoch)
    })
}

/// The class of an error, and whether the error is a failure. A task that waited for its whole time has
/// failed.
fn class_of(cause: &Cause<Error>) -> (&'static str, bool) {
    match cause {
        Cause::Error(error) => (error.class(), error.is_failure()),
        Cause::TimedOut { last, .. } => (last.as_ref().map_or("TimedOut", Error::class), true),
    }
}

fn operation_span_id(id: &str, operation: &str) -> SpanId {
    SpanId::from_bytes(first_bytes(&format!("{id} {operation}")))
}

/// The first bytes of the SHA-256 of a text. `N` is at most 32.
fn first_bytes<const N: usize>(text: &str) -> [u8; N] {
    let digest = Sha256::digest(text.as_bytes());
    std::array::from_fn(|index| digest[index])
}

#[cfg(test)]
#[path = "span_tests.rs"]
mod tests;
