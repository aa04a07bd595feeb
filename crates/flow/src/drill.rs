//! Fail everywhere, run twice: one driver that disturbs any flow at each of its tasks and checks invariants.
//!
//! A test implements [`Scenario`] for a flow, and [`run`], [`spread`], [`in_one_world`] or [`end_after_each`]
//! does the rest. For each task that an undisturbed run executes and for each [`Fault`], the driver resets
//! the world, runs the flow with the fault in that task, lets the scenario check what must hold even now,
//! runs the flow again to its end, and lets the scenario check the final state. Hence a new task is under
//! test from the day it is added to the graph.
//!
//! The tasks to disturb are found by name, so a flow may be built differently on its second run.

mod interceptors;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt;
use tokio::sync::Notify;

use crate::intercept::{Interceptor, TaskRef, Undisturbed};
use crate::outcome::{FlowError, Report};
use interceptors::{End, Front};

/// What happens to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails before it did anything.
    FailBefore,
    /// It does its work and then fails: the next run does the same work again.
    FailAfter,
    /// Its work is done two times in a row.
    RunTwice,
    /// The process dies while the task runs: the flow's future is dropped.
    Kill,
    /// It does its work and then the process dies: the same in another moment.
    EndAfter,
    /// [`Fault::FailAfter`] in the first run and [`Fault::RunTwice`] in the second: both for the price of one
    /// case.
    FailThenTwice,
}

impl Fault {
    /// Each by itself.
    pub const ALL: [Self; 4] = [Self::FailBefore, Self::FailAfter, Self::RunTwice, Self::Kill];
}

/// One disturbance of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What happens.
    pub fault: Fault,
    /// To which task.
    pub task: &'static str,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.fault, self.task)
    }
}

/// When a scenario is asked to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The flow was disturbed and has not ended: only what must hold at any time.
    Disturbed(Case),
    /// The flow has succeeded, after this disturbance if there was one: also what must hold at the end.
    Finished(Option<Case>),
}

/// A flow under test and the world it changes.
pub trait Scenario {
    /// The flow's error.
    type Error: fmt::Display + fmt::Debug + Send;

    /// The error that a disturbed task fails with.
    fn injected(&self, message: String) -> Self::Error;

    /// Brings the world into the state in which the flow starts.
    fn reset(&mut self) -> impl Future<Output = Result<(), Self::Error>>;

    /// Builds the flow anew and runs it with [`crate::Flow::run_with`] and this interceptor.
    fn run(
        &mut self,
        interceptor: &dyn Interceptor<Self::Error>,
    ) -> impl Future<Output = Result<Report, FlowError<Self::Error>>>;

    /// Fails with a sentence when an invariant is broken.
    fn check(&mut self, moment: Moment) -> impl Future<Output = Result<(), Self::Error>>;
}

/// What a drill went through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Tasks that were disturbed.
    pub tasks: Vec<&'static str>,
    /// Number of cases.
    pub cases: usize,
}

/// The first case that did not go as it must.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{step}: {message}", match case { Some(case) => format!("{case}, "), None => String::new() })]
pub struct DrillError {
    /// None: the run without a disturbance.
    pub case: Option<Case>,
    /// Where in the case.
    pub step: &'static str,
    /// What went wrong.
    pub message: String,
}

/// All cases that did not go as they must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures(pub Vec<DrillError>);

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} case(s) failed:", self.0.len())?;
        self.0.iter().try_for_each(|failure| write!(f, "\n- {failure}"))
    }
}

impl std::error::Error for Failures {}

/// Disturbs the flow of `scenario` with each of `faults` at each task, one case after the other, until one
/// fails.
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

/// Like [`run`], with up to `width` cases side by side, each with a scenario of its own. All cases are run,
/// and all failures reported.
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

/// Disturbs the flow at every task in one world: each run fails after all tasks that it reaches and that no
/// run before has failed after, so that the next one gets further by as much as depends on them; at last it
/// runs with every task done twice. What must hold at any time is checked after each run. One reset does for
/// all tasks, where [`spread`] needs one for each, and the longest chain of tasks says how many runs there
/// are. No task is left out: one that is not reached, since a run before has left nothing for it to do, gets
/// a case of its own.
pub async fn in_one_world<S: Scenario>(scenario: impl FnMut() -> S) -> Result<Summary, DrillError> {
    everywhere(scenario, Way::Fail).await
}

/// Ends the process after every task, in one world: each run is dropped when a task has done its work after
/// which no run before was dropped. All that is under way beside it ends in its middle; nobody fails, nobody
/// cleans up, and the next process finds what is there. Otherwise as [`in_one_world`], but that the last run
/// is left alone.
pub async fn end_after_each<S: Scenario>(scenario: impl FnMut() -> S) -> Result<Summary, DrillError> {
    everywhere(scenario, Way::End).await
}

/// How tasks are disturbed in one world.
#[derive(Clone, Copy)]
enum Way {
    /// All that are reached, side by side.
    Fail,
    /// One after the other.
    End,
}

impl Way {
    /// In the one world, and where a task needs one of its own.
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

/// Gives the tasks that were not reached.
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

/// A run that fails after all of these tasks that it reaches: which, and whether it went as it must.
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

/// A run that is dropped after the first of these tasks that does its work: after which, and how it ended if
/// it did so by itself.
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

/// What each of these tasks may fail with, once.
fn errors<S: Scenario>(
    scenario: &S,
    tasks: &[&'static str],
    why: impl Fn(&'static str) -> String,
) -> BTreeMap<&'static str, S::Error> {
    let error = |task: &&'static str| (*task, scenario.injected(format!("drill: {}", why(task))));
    tasks.iter().map(error).collect()
}

/// Says where a case went wrong.
fn at<E: fmt::Display>(case: Option<Case>, step: &'static str) -> impl FnOnce(E) -> DrillError {
    move |error| DrillError {
        case,
        step,
        message: error.to_string(),
    }
}

/// Runs a flow without a disturbance, and returns the names of the tasks that it executed.
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

/// One case from its reset to its last check.
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

/// Fails with a sentence when the disturbance did not go as it must.
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

/// A flow in which these tasks were made to fail must fail by them and by nothing else.
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

/// Runs these tasks two times in a row, and disturbs nothing.
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

/// Disturbs one task, one time.
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
