//! The process ends after each task, and all that is under way beside it ends in its middle: nobody fails, nobody cleans up. The next
//! process finds what is there.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use tokio::sync::Notify;

use super::{Case, DrillError, Fault, Moment, Scenario, Summary, at, cases, one, survey};
use crate::intercept::{Interceptor, TaskRef, Undisturbed};

/// Ends the process after every task, in one world: each run is dropped when a task has done its work after which no run before was
/// dropped. Otherwise as [`super::in_one_world`]: what must hold at any time is checked after each run, the last run is left alone, and
/// a task that is not reached any more, since a run before has left nothing for it to do, gets a case of its own.
pub async fn end_after_each<S: Scenario>(mut scenario: impl FnMut() -> S) -> Result<Summary, DrillError> {
    let tasks = survey(&mut scenario()).await?;
    let missed = end_all(&mut scenario(), &tasks).await?;
    for case in cases(&missed, &[Fault::EndAfter]) {
        one(&mut scenario(), case).await?;
    }
    Ok(Summary {
        cases: tasks.len() + missed.len(),
        tasks,
    })
}

/// Gives the tasks that were not reached.
async fn end_all<S: Scenario>(
    world: &mut S,
    tasks: &[&'static str],
) -> Result<Vec<&'static str>, DrillError> {
    let mut left = tasks.to_vec();
    world.reset().await.map_err(at(None, "reset"))?;
    while !left.is_empty() {
        let end = End::new(world, tasks, &left);
        let result = tokio::select! {
            biased;
            () = end.has_come.notified() => None,
            result = world.run(&end) => Some(result),
        };
        let done = end.done();
        let Some(first) = done.first() else {
            if let Some(result) = result {
                result.map_err(at(None, "run in which no task was left to end after"))?;
            }
            break;
        };
        let case = Case {
            fault: Fault::EndAfter,
            task: first,
        };
        let checked = world.check(Moment::Disturbed(case)).await;
        checked.map_err(at(Some(case), "check after the end"))?;
        left.retain(|task| !done.contains(task));
    }
    let last = world.run(&Undisturbed).await;
    last.map_err(at(None, "run that is left alone"))?;
    let checked = world.check(Moment::Finished(None)).await;
    checked.map_err(at(None, "check at the end"))?;
    Ok(left)
}

/// Ends a run after the first of these tasks that does its work. Nothing is begun from then on until the run is dropped.
struct End<'a, E> {
    left: &'a [&'static str],
    /// What a task fails with that is begun too late.
    errors: std::sync::Mutex<BTreeMap<&'static str, E>>,
    /// Several, where they end at one moment.
    done: std::sync::Mutex<Vec<&'static str>>,
    has_come: Notify,
}

impl<'a, E> End<'a, E> {
    fn new(scenario: &impl Scenario<Error = E>, tasks: &[&'static str], left: &'a [&'static str]) -> Self {
        let error = |task: &&'static str| (*task, scenario.injected(format!("drill: too late for {task:?}")));
        Self {
            left,
            errors: std::sync::Mutex::new(tasks.iter().map(error).collect()),
            done: std::sync::Mutex::default(),
            has_come: Notify::new(),
        }
    }

    fn done(&self) -> Vec<&'static str> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<E: Send> Interceptor<E> for End<'_, E> {
    fn before(&self, task: TaskRef) -> Result<(), E> {
        if self.done().is_empty() {
            return Ok(());
        }
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.remove(task.name).map_or(Ok(()), Err)
    }

    fn after(&self, task: TaskRef) -> Result<(), E> {
        if self.left.contains(&task.name) {
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push(task.name);
            self.has_come.notify_one();
        }
        Ok(())
    }
}
