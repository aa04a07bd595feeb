//! Runs a flow: starts ready tasks, waits for the first task to end, and starts the tasks that became ready.

use std::fmt::Display;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument;

use crate::current::on_behalf_of;
use crate::expected::ExpectedTimes;
use crate::graph::Flow;
use crate::intercept::{Interceptor, TaskRef, Undisturbed};
use crate::metrics::TaskMeter;
use crate::observer::TaskEnd;
use crate::outcome::{Cause, FlowError, Report, TaskFailure};
use crate::progress::{Progress, percent};
use crate::task::Task;

/// Limit of a task without a limit. Longer than any wait in a flow; the constant only makes the code uniform.
const UNBOUNDED: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// From this failed attempt on a retry is logged at info. The first attempts fail in most flows, since
/// objects take a moment to be ready.
const RETRY_REPORTED_FROM: u32 = 3;

impl<E: Display + Send> Flow<'_, E> {
    /// Runs all tasks, and calls `observe` whenever a task has started or ended. `observe` must not block. To
    /// write progress to an API, let `observe` set a `tokio::sync::watch` channel and write from the
    /// receiver.
    pub async fn run(self, observe: impl FnMut(Progress)) -> Result<Report, FlowError<E>> {
        self.run_with(observe, &Undisturbed).await
    }

    /// Like [`Flow::run`], with a hook around every task.
    pub async fn run_with(
        self,
        mut observe: impl FnMut(Progress),
        interceptor: &dyn Interceptor<E>,
    ) -> Result<Report, FlowError<E>> {
        let Self {
            name: flow,
            tasks,
            retryable,
            metrics,
            observer,
        } = self;
        let mut board = Board::new(&tasks);
        let mut waiting: Vec<Option<Task<'_, E>>> = tasks.into_iter().map(Some).collect();
        let mut in_flight = FuturesUnordered::new();
        let mut failures = Vec::new();
        loop {
            for index in board.take_ready() {
                if let Some(task) = waiting[index].take() {
                    let span = tracing::info_span!("task", flow, task = task.name);
                    let name = task.name;
                    let meter = metrics.meter(flow, name);
                    let work = execute(index, task, &*retryable, interceptor, meter, &*observer);
                    in_flight.push(on_behalf_of(name, work.instrument(span)));
                }
            }
            observe(board.progress());
            match in_flight.next().await {
                Some((index, Ok(()))) => board.succeeded(index),
                Some((index, Err(failure))) => {
                    board.failed(index);
                    failures.push(failure);
                }
                None => break,
            }
        }
        let report = board.report();
        if failures.is_empty() {
            Ok(report)
        } else {
            Err(FlowError {
                flow,
                failures,
                report,
            })
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Ended,
    Failed,
}

/// The state of all tasks and of the dependencies.
struct Board {
    names: Vec<&'static str>,
    skip: Vec<bool>,
    state: Vec<State>,
    /// Number of unfinished tasks before each task.
    blockers: Vec<usize>,
    dependents: Vec<Vec<usize>>,
    expected: Option<ExpectedTimes>,
    report: Report,
}

impl Board {
    fn new<E>(tasks: &[Task<'_, E>]) -> Self {
        let mut dependents = vec![Vec::new(); tasks.len()];
        for (index, task) in tasks.iter().enumerate() {
            for before in &task.after {
                dependents[before.index].push(index);
            }
        }
        Self {
            names: tasks.iter().map(|task| task.name).collect(),
            skip: tasks.iter().map(|task| task.skipped).collect(),
            state: vec![State::Waiting; tasks.len()],
            blockers: tasks.iter().map(|task| task.after.len()).collect(),
            dependents,
            expected: ExpectedTimes::new(tasks),
            report: Report::default(),
        }
    }

    /// Marks all tasks that can start as running and returns these tasks. Skipped tasks end here and may make
    /// other tasks ready. Since dependencies point backwards, a single pass in order sees all tasks.
    fn take_ready(&mut self) -> Vec<usize> {
        let mut ready = Vec::new();
        for index in 0..self.names.len() {
            if self.state[index] != State::Waiting || self.blockers[index] > 0 {
                continue;
            }
            if self.skip[index] {
                self.report.skipped.push(self.names[index]);
                self.end(index);
            } else {
                self.state[index] = State::Running;
                ready.push(index);
            }
        }
        ready
    }

    fn end(&mut self, index: usize) {
        self.state[index] = State::Ended;
        for dependent in std::mem::take(&mut self.dependents[index]) {
            self.blockers[dependent] -= 1;
        }
    }

    fn succeeded(&mut self, index: usize) {
        self.report.succeeded.push(self.names[index]);
        self.end(index);
    }

    fn failed(&mut self, index: usize) {
        self.state[index] = State::Failed;
    }

    fn names_of(&self, is_meant: impl Fn(State) -> bool) -> Vec<&'static str> {
        (0..self.names.len())
            .filter(|i| is_meant(self.state[*i]))
            .map(|i| self.names[i])
            .collect()
    }

    fn progress(&self) -> Progress {
        let done = self.report.succeeded.len() + self.report.skipped.len();
        let unfinished = (0..self.names.len()).filter(|i| self.state[*i] != State::Ended);
        Progress {
            percent: self.expected.as_ref().map_or_else(
                || percent(done, self.names.len()),
                |expected| expected.percent(unfinished),
            ),
            running: self.names_of(|state| state == State::Running),
            succeeded: self.report.succeeded.clone(),
            unfinished: self.names_of(|state| state != State::Ended),
            total: self.names.len(),
        }
    }

    fn report(self) -> Report {
        Report {
            not_run: self.names_of(|state| state == State::Waiting),
            ..self.report
        }
    }
}

/// Runs a task from start to end.
async fn execute<E: Display>(
    index: usize,
    mut task: Task<'_, E>,
    retryable: &(dyn Fn(&E) -> bool + Send + Sync),
    interceptor: &dyn Interceptor<E>,
    meter: TaskMeter<'_>,
    observer: &(dyn Fn(&TaskEnd<'_, E>) + Send + Sync),
) -> (usize, Result<(), TaskFailure<E>>) {
    let started = Instant::now();
    let this = TaskRef {
        index,
        name: task.name,
    };
    let mut attempts = 0;
    tracing::debug!("task started");
    let result = async {
        interceptor.before(this).map_err(Cause::Error)?;
        for _ in 0..interceptor.times(this) {
            work(&mut task, retryable, &mut attempts, meter).await?;
        }
        interceptor.after(this).map_err(Cause::Error)
    }
    .await
    .map_err(|cause| TaskFailure {
        task: this.name,
        cause,
        attempts,
    });
    let end = TaskEnd {
        task: this.name,
        took: started.elapsed(),
        attempts,
        failure: result.as_ref().err(),
    };
    meter.observe(&end);
    observer(&end);
    let seconds = end.took.as_secs_f64();
    match &result {
        Ok(()) => tracing::info!(seconds, attempts, "task succeeded"),
        Err(failure) => tracing::warn!(
            seconds,
            attempts,
            failure = format_args!("{failure:#}"),
            "task failed"
        ),
    }
    (index, result)
}

/// Runs the work until the work succeeds, the error is final, or the time limit has passed.
async fn work<E: Display>(
    task: &mut Task<'_, E>,
    retryable: &(dyn Fn(&E) -> bool + Send + Sync),
    attempts: &mut u32,
    meter: TaskMeter<'_>,
) -> Result<(), Cause<E>> {
    let retry = task.retry;
    let limit = [task.timeout, retry.map(|r| r.limit)].into_iter().flatten().min();
    let mut last = None;
    let tries = async {
        let mut pause = retry.map(|r| r.interval);
        loop {
            *attempts += 1;
            match ((task.work)().await, retry, pause) {
                (Ok(()), ..) => return Ok(()),
                (Err(error), Some(retry), Some(delay)) if retryable(&error) => {
                    if *attempts < RETRY_REPORTED_FROM {
                        tracing::debug!(error = format_args!("{error:#}"), "task is tried again");
                    } else {
                        tracing::info!(
                            error = format_args!("{error:#}"),
                            attempts = *attempts,
                            "task is tried again"
                        );
                    }
                    last = Some(error);
                    sleep(delay).await;
                    meter.count_retry();
                    pause = Some(retry.next(delay));
                }
                (Err(error), ..) => return Err(Cause::Error(error)),
            }
        }
    };
    match timeout(limit.unwrap_or(UNBOUNDED), tries).await {
        Ok(result) => result,
        Err(_) => Err(Cause::TimedOut {
            after: limit.unwrap_or(UNBOUNDED),
            last,
        }),
    }
}
