//! Fail everywhere, run twice: a single driver that disturbs any flow at each task and checks invariants.
//!
//! A test implements [`Scenario`] for a flow, and calls [`run`], [`spread`], [`in_one_world`] or
//! [`end_after_each`]. For each task of an undisturbed run and for each [`Fault`], the driver resets the
//! world and runs the flow with the fault in that task. Then the scenario checks the invariants that must
//! hold even now. The driver runs the flow again to the end, and the scenario checks the final state. Hence a
//! new task is tested as soon as the task is in the graph.
//!
//! The driver finds the disturbed tasks by name, so a flow may be built differently on the second run.

mod interceptors;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use flow::{FlowError, Interceptor, Report, TaskRef, Undisturbed};
use futures::StreamExt;
use tokio::sync::Notify;

use interceptors::{End, Front};

/// The fault of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The task fails before any work.
    FailBefore,
    /// The task does the work and then fails: the next run does the same work again.
    FailAfter,
    /// The task's work is done two times in a row.
    RunTwice,
    /// The process dies while the task runs: the flow's future is dropped.
    Kill,
    /// The task does the work and then the process dies: the same fault at a different moment.
    EndAfter,
    /// [`Fault::FailAfter`] in the first run and [`Fault::RunTwice`] in the second run, to test both in a
    /// single case.
    FailThenTwice,
}

impl Fault {
    /// The separate faults.
    pub const ALL: [Self; 4] = [Self::FailBefore, Self::FailAfter, Self::RunTwice, Self::Kill];
}

/// A single disturbance of a single task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The fault.
    pub fault: Fault,
    /// The task.
    pub task: &'static str,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.fault, self.task)
    }
}

/// The moment of a scenario's check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The flow was disturbed and has not ended: only invariants that hold at any time.
    Disturbed(Case),
    /// The flow has succeeded, after this disturbance if any: also the invariants of the end.
    Finished(Option<Case>),
}

/// A flow under test and the world that the flow changes.
pub trait Scenario {
    /// The flow's error.
    type Error: fmt::Display + fmt::Debug + Send;

    /// The error of a disturbed task.
    fn injected(&self, message: String) -> Self::Error;

    /// Brings the world into the state before the flow.
    fn reset(&mut self) -> impl Future<Output = Result<(), Self::Error>>;

    /// Builds the flow again and runs the flow with [`flow::Flow::run_with`] and this interceptor.
    fn run(
        &mut self,
        interceptor: &dyn Interceptor<Self::Error>,
    ) -> impl Future<Output = Result<Report, FlowError<Self::Error>>>;

    /// Fails with a sentence when an invariant is broken.
    fn check(&mut self, moment: Moment) -> impl Future<Output = Result<(), Self::Error>>;
}

/// The extent of a drill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Tasks that were disturbed.
    pub tasks: Vec<&'static str>,
    /// Number of cases.
    pub cases: usize,
}

/// The first case that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{step}: {message}", match case { Some(case) => format!("{case}, "), None => String::new() })]
pub struct DrillError {
    /// `None`: the run without a disturbance.
    pub case: Option<Case>,
    /// The step of the case.
    pub step: &'static str,
    /// The failure.
    pub message: String,
}

/// All cases that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures(pub Vec<DrillError>);

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} case(s) failed:", self.0.len())?;
        self.0.iter().try_for_each(|failure| write!(f, "\n- {failure}"))
    }
}

impl std::error::Error for Failures {}

/// Disturbs the flow of `scenario` with each of `faults` at each task, in sequence, until a case fails.
pub async fn run<S: Scenario>(scenario: &mut S, faults: &[Fault]) -> Result<Summary, DrillError> {
    let tasks = survey(scenario).await?;
    let cases = cases(&tasks, faults);
    for case in &cases {
        one(scenario, *case).await?;
    }
    Ok(Summary {
        tasks,
        cases: cases.len(),
    })
}

/// Like [`run`], with up to `width` cases in parallel, each with a separate scenario. All cases are run, and
/// all failures are reported.
pub async fn spread<S: Scenario>(
    width: usize,
    faults: &[Fault],
    mut scenario: impl FnMut() -> S,
) -> Result<Summary, Failures> {
    let tasks = survey(&mut scenario())
        .await
        .map_err(|failure| Failures(vec![failure]))?;
    let cases = cases(&tasks, faults);
    let runs = futures::stream::iter(cases.iter().map(|case| {
        let mut scenario = scenario();
        async move { one(&mut scenario, *case).await }
    }));
    let results: Vec<_> = runs.buffer_unordered(width).collect().await;
    let failures: Vec<DrillError> = results.into_iter().filter_map(Result::err).collect();
    if failures.is_empty() {
        Ok(Summary {
            tasks,
            cases: cases.len(),
        })
    } else {
        Err(Failures(failures))
    }
}

/// Disturbs the flow at every task in a single world. Each run fails after every reached task that has not
/// failed in a former run. So the next run reaches the tasks that depend on the failed tasks. At last a run
/// does every task twice. The invariants of any time are checked after each run. A single reset is enough for
/// all tasks, where [`spread`] needs a reset for each task; the longest chain of tasks determines the number
/// of runs. No task is left out: a task that is not reached, since a former run has left no work for the
/// task, gets a separate case.
pub async fn in_one_world<S: Scenario>(scenario: impl FnMut() -> S) -> Result<Summary, DrillError> {
    everywhere(scenario, Way::Fail).await
}

/// Ends the process after every task, in a single world. Each run is dropped when a task has done the work
/// for which no former run was dropped. Parallel tasks end in the middle: no task fails, no task cleans up,
/// and the next process continues from the present state. Otherwise as [`in_one_world`], except that the last
/// run is undisturbed.
pub async fn end_after_each<S: Scenario>(scenario: impl FnMut() -> S) -> Result<Summary, DrillError> {
    everywhere(scenario, Way::End).await
}

/// The disturbance of tasks in a single world.
#[derive(Clone, Copy)]
enum Way {
    /// All reached tasks fail, in parallel.
    Fail,
    /// The process ends after each task, in sequence.
    End,
}

impl Way {
    /// The fault in the shared world, and the fault in a separate world.
    fn faults(self) -> [Fault; 2] {
        match self {
            Self::Fail => [Fault::FailAfter, Fault::FailThenTwice],
            Self::End => [Fault::EndAfter, Fault::EndAfter],
        }
    }

    fn last(self) -> (Which, &'static str) {
        match self {
            Self::Fail => (Which::All, "run with each task done twice"),
            Self::End => (Which::None, "run that is left alone"),
        }
    }
}

async fn everywhere<S: Scenario>(mut scenario: impl FnMut() -> S, way: Way) -> Result<Summary, DrillError> {
    let [_, alone] = way.faults();
    let tasks = survey(&mut scenario()).await?;
    let missed = disturb_all(&mut scenario(), &tasks, way).await?;
    for case in cases(&missed, &[alone]) {
        one(&mut scenario(), case).await?;
    }
    Ok(Summary {
        cases: tasks.len() + missed.len(),
        tasks,
    })
}

/// Returns the tasks that were not reached.
async fn disturb_all<S: Scenario>(
    world: &mut S,
    tasks: &[&'static str],
    way: Way,
) -> Result<Vec<&'static str>, DrillError> {
    let [fault, _] = way.faults();
    let mut left = tasks.to_vec();
    world.reset().await.map_err(at(None, "reset"))?;
    while !left.is_empty() {
        let (reached, went) = match way {
            Way::Fail => fail_after(world, &left).await,
            Way::End => end_after_first(world, tasks, &left).await,
        };
        let Some(task) = reached.first() else {
            went.map_err(at(None, "run in which no task was left to disturb"))?;
            break;
        };
        let case = Case { fault, task };
        went.map_err(at(Some(case), "disturbed run"))?;
        let checked = world.check(Moment::Disturbed(case)).await;
        checked.map_err(at(Some(case), "check after the fault"))?;
        left.retain(|task| !reached.contains(task));
    }
    let (times, step) = way.last();
    let last = world.run(&Twice(times)).await;
    last.map_err(at(None, step))?;
    let checked = world.check(Moment::Finished(None)).await;
    checked.map_err(at(None, "check at the end"))?;
    Ok(left)
}

/// A run that fails after all reached tasks of `left`. Returns these tasks, and the failure of the drill, if
/// any.
async fn fail_after<S: Scenario>(
    world: &mut S,
    left: &[&'static str],
) -> (Vec<&'static str>, Result<(), String>) {
    let case = |task| Case {
        fault: Fault::FailAfter,
        task,
    };
    let front = Front::new(errors(world, left, |task| case(task).to_string()));
    let result = world.run(&front).await;
    let failed = front.failed();
    let went = if failed.is_empty() {
        result.map(drop).map_err(|error| error.to_string())
    } else {
        only_these_failed(&failed, result)
    };
    (failed, went)
}

/// A run that is dropped after the first task of `left` that does the work. Returns the finished tasks, and
/// an error if the run failed before any.
async fn end_after_first<S: Scenario>(
    world: &mut S,
    tasks: &[&'static str],
    left: &[&'static str],
) -> (Vec<&'static str>, Result<(), String>) {
    let end = End::new(
        errors(world, tasks, |task| format!("too late for {task:?}")),
        left,
    );
    let result = tokio::select! {
        biased;
        () = end.has_come() => None,
        result = world.run(&end) => Some(result),
    };
    let done = end.done();
    let went = match result {
        Some(Err(error)) if done.is_empty() => Err(error.to_string()),
        _ => Ok(()),
    };
    (done, went)
}

/// A single error for each of these tasks.
fn errors<S: Scenario>(
    scenario: &S,
    tasks: &[&'static str],
    why: impl Fn(&'static str) -> String,
) -> BTreeMap<&'static str, S::Error> {
    let error = |task: &&'static str| (*task, scenario.injected(format!("drill: {}", why(task))));
    tasks.iter().map(error).collect()
}

/// Adds case and step to an error.
fn at<E: fmt::Display>(case: Option<Case>, step: &'static str) -> impl FnOnce(E) -> DrillError {
    move |error| DrillError {
        case,
        step,
        message: error.to_string(),
    }
}

/// Runs a flow without a disturbance, and returns the names of the executed tasks.
pub async fn survey<S: Scenario>(scenario: &mut S) -> Result<Vec<&'static str>, DrillError> {
    scenario.reset().await.map_err(at(None, "reset"))?;
    let report = scenario.run(&Undisturbed).await;
    let report = report.map_err(at(None, "undisturbed run"))?;
    let checked = scenario.check(Moment::Finished(None)).await;
    checked.map_err(at(None, "check at the end"))?;
    Ok(report.succeeded)
}

fn cases(tasks: &[&'static str], faults: &[Fault]) -> Vec<Case> {
    tasks
        .iter()
        .flat_map(|&task| faults.iter().map(move |&fault| Case { fault, task }))
        .collect()
}

/// A single case from the reset to the last check.
pub async fn one<S: Scenario>(scenario: &mut S, case: Case) -> Result<(), DrillError> {
    tracing::info!(%case, "drill");
    scenario.reset().await.map_err(at(Some(case), "reset"))?;
    let disturbed = disturb(scenario, case).await;
    disturbed.map_err(at(Some(case), "disturbed run"))?;
    if case.fault != Fault::RunTwice {
        let checked = scenario.check(Moment::Disturbed(case)).await;
        checked.map_err(at(Some(case), "check after the fault"))?;
        let again = Twice(if case.fault == Fault::FailThenTwice {
            Which::One(case.task)
        } else {
            Which::None
        });
        let second = scenario.run(&again).await;
        second.map_err(at(Some(case), "second run"))?;
    }
    let checked = scenario.check(Moment::Finished(Some(case))).await;
    checked.map_err(at(Some(case), "check at the end"))
}

/// Runs the disturbed flow. Fails with a sentence when the disturbance had the wrong effect.
async fn disturb<S: Scenario>(scenario: &mut S, case: Case) -> Result<(), String> {
    let injector = Injector {
        case,
        error: std::sync::Mutex::new(Some(scenario.injected(format!("drill: {case}")))),
        fired: AtomicBool::new(false),
        reached: Notify::new(),
    };
    let is_death = matches!(case.fault, Fault::Kill | Fault::EndAfter);
    let result = {
        let run = scenario.run(&injector);
        tokio::select! {
            biased;
            result = run => Some(result),
            () = injector.reached.notified(), if is_death => None,
        }
    };
    if !injector.fired.load(Ordering::SeqCst) {
        return Err(match result {
            Some(Err(error)) => format!("ended before the task was reached: {error}"),
            _ => "the task was not reached, though the first run did it".to_owned(),
        });
    }
    match (case.fault, result) {
        (Fault::FailBefore | Fault::FailAfter | Fault::FailThenTwice, Some(result)) => {
            only_these_failed(&[case.task], result)
        }
        (_, Some(Err(error))) => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Checks that a flow with these injected failures failed only by these failures.
fn only_these_failed<E: fmt::Display>(
    tasks: &[&'static str],
    result: Result<Report, FlowError<E>>,
) -> Result<(), String> {
    let Err(error) = result else {
        return Err("the flow succeeded though a task failed".to_owned());
    };
    match error
        .failures
        .iter()
        .find(|failure| !tasks.contains(&failure.task))
    {
        Some(other) => Err(format!("another task failed, too: {other}")),
        None => Ok(()),
    }
}

/// Runs these tasks two times in a row, without a fault.
struct Twice(Which);

#[derive(Clone, Copy)]
enum Which {
    None,
    One(&'static str),
    All,
}

impl<E> Interceptor<E> for Twice {
    fn times(&self, task: TaskRef) -> u32 {
        match self.0 {
            Which::All => 2,
            Which::One(name) if name == task.name => 2,
            Which::One(_) | Which::None => 1,
        }
    }
}

/// Disturbs a single task once.
struct Injector<E> {
    case: Case,
    error: std::sync::Mutex<Option<E>>,
    fired: AtomicBool,
    reached: Notify,
}

impl<E> Injector<E> {
    fn hits(&self, task: TaskRef, fault: Fault) -> bool {
        let hit = task.name == self.case.task && fault == self.case.fault;
        if hit {
            self.fired.store(true, Ordering::SeqCst);
        }
        hit
    }

    fn inject(&self) -> Result<(), E> {
        match self.error.lock().ok().and_then(|mut error| error.take()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl<E: Send> Interceptor<E> for Injector<E> {
    fn before(&self, task: TaskRef) -> Result<(), E> {
        if self.hits(task, Fault::Kill) {
            self.reached.notify_one();
        }
        if self.hits(task, Fault::FailBefore) {
            self.inject()
        } else {
            Ok(())
        }
    }

    fn times(&self, task: TaskRef) -> u32 {
        if self.hits(task, Fault::RunTwice) { 2 } else { 1 }
    }

    fn after(&self, task: TaskRef) -> Result<(), E> {
        if self.hits(task, Fault::EndAfter) {
            self.reached.notify_one();
        }
        if self.hits(task, Fault::FailAfter) || self.hits(task, Fault::FailThenTwice) {
            self.inject()
        } else {
            Ok(())
        }
    }
}
