//! Traces of moves for a collector of OpenTelemetry. Without flag `--otlp-endpoint` this module starts
//! nothing and records nothing.
//!
//! | module | content |
//! |---|---|
//! | `span` | the spans, and the ids by which the spans of two seeds are one trace |
//! | `export` | the queue of spans, and the part of the process that sends the spans |
//!
//! No flow waits for the collector, and no flow learns of a failure of the export: the queue has a bound, and
//! a span beyond the bound is dropped and counted. The export needs no permit, because a span only describes
//! work of the past.

mod export;
mod span;

use std::{collections::HashMap, sync::Arc};

use api::gardencore::Shoot;
use flow::Flow;
use placement::Operation;
use runtime::{Error, clock, process::Process};

use self::{export::SpanQueue, span::TracedOperation};
use crate::{config::MoveTraceFlags, shoot::flows::graph::ShootFlow};

/// Records the spans of moves. The default records nothing. Clones share the queue.
#[derive(Clone, Debug, Default)]
pub struct MoveTraces(Option<SpanQueue>);

impl MoveTraces {
    /// Starts the export as a part of the process, if the flags name a collector. `instance`: identifies this
    /// process among the gardenlets of the seed.
    ///
    /// # Errors
    /// The flags contradict each other, or the file with the CA cannot be read.
    pub fn start(
        process: &mut Process,
        flags: &MoveTraceFlags,
        seed: &str,
        instance: &str,
    ) -> Result<Self, String> {
        export::start(process, flags, seed, instance).map(Self)
    }

    /// Records the end of an operation that has succeeded, if the operation is part of a move. `shoot`: the
    /// Shoot after the start of the operation was recorded.
    pub fn operation_succeeded(&self, shoot: &Shoot, operation: Operation, seed: &str) {
        if let Some(trace) = self.operation(shoot, operation, seed) {
            let span = trace.operation.operation_span(clock::now().into());
            trace.queue.push(span);
        }
    }

    /// The trace of an operation; `None` where no spans of the operation are recorded.
    pub(crate) fn operation(
        &self,
        shoot: &Shoot,
        operation: Operation,
        seed: &str,
    ) -> Option<OperationTrace> {
        let queue = self.0.as_ref()?;
        Some(OperationTrace {
            queue: queue.clone(),
            operation: Arc::new(TracedOperation::new(shoot, operation, seed)?),
        })
    }
}

/// Records the spans of an operation.
#[derive(Clone)]
pub(crate) struct OperationTrace {
    queue: SpanQueue,
    operation: Arc<TracedOperation>,
}

impl OperationTrace {
    /// The flow, which records a span at the end of each task.
    pub(crate) fn observe<'a>(&self, flow: ShootFlow<'a>) -> Flow<'a, Error> {
        let (trace, name) = (self.clone(), flow.flow().name());
        let systems: HashMap<_, _> = flow.touches().collect();
        flow.into_flow().observe_tasks(move |end| {
            let systems = systems.get(end.task).copied().unwrap_or_default();
            let span = trace.operation.task_span(name, end, systems, clock::now().into());
            trace.queue.push(span);
        })
    }
}
