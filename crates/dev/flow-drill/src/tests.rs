//! The drill finds flows that cannot be run again, and accepts flows that can.

#![allow(clippy::unwrap_used)]

use std::sync::Mutex;
use std::time::Duration;

use flow::{FlowError, Graph, Interceptor, Report, Task};

use crate::{self as drill, Fault, Moment, Scenario};

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A world of named objects, and a flow that creates "b" from "a" and then deletes "a".
#[derive(Default)]
struct World {
    objects: Mutex<Vec<&'static str>>,
    /// The deliberate mistake of the flow.
    wrong: Option<Wrong>,
    moments: Mutex<Vec<Moment>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    CreateFailsIfThere,
    DeleteFailsIfGone,
    NeedsA,
}

impl World {
    fn has(&self, name: &str) -> bool {
        self.objects.lock().unwrap().contains(&name)
    }

    async fn create(&self) -> Result<(), String> {
        tokio::time::sleep(seconds(1)).await;
        if self.wrong == Some(Wrong::NeedsA) && !self.has("a") {
            return Err("a is missing".into());
        }
        if !self.has("b") {
            self.objects.lock().unwrap().push("b");
        } else if self.wrong == Some(Wrong::CreateFailsIfThere) {
            return Err("b exists".into());
        }
        Ok(())
    }

    async fn delete(&self) -> Result<(), String> {
        tokio::time::sleep(seconds(1)).await;
        if !self.has("a") && self.wrong == Some(Wrong::DeleteFailsIfGone) {
            return Err("a is gone".into());
        }
        self.objects.lock().unwrap().retain(|name| *name != "a");
        tokio::time::sleep(seconds(1)).await;
        Ok(())
    }
}

impl Scenario for World {
    type Error = String;

    fn injected(&self, message: String) -> String {
        message
    }

    async fn reset(&mut self) -> Result<(), String> {
        *self.objects.lock().unwrap() = vec!["a"];
        Ok(())
    }

    async fn run(&mut self, interceptor: &dyn Interceptor<String>) -> Result<Report, FlowError<String>> {
        let world = &*self;
        let mut g = Graph::new("move");
        let create = g.add(Task::new("create b", || world.create()));
        let skipped = g.add(
            Task::new("never", || async { Err("ran".into()) })
                .after(create)
                .skip_if(true),
        );
        g.add(Task::new("delete a", || world.delete()).after(skipped));
        g.compile().run_with(|_| (), interceptor).await
    }

    async fn check(&mut self, moment: Moment) -> Result<(), String> {
        self.moments.lock().unwrap().push(moment);
        match moment {
            _ if !self.has("a") && !self.has("b") => Err("nothing is left".into()),
            Moment::Finished(_) if self.has("a") || !self.has("b") => Err("not moved".into()),
            _ => Ok(()),
        }
    }
}

async fn drilled(wrong: Wrong) -> String {
    let mut world = World {
        wrong: Some(wrong),
        ..World::default()
    };
    drill::run(&mut world, &Fault::ALL).await.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_can_be_run_again_passes_every_case() {
    let mut world = World::default();
    let summary = drill::run(&mut world, &Fault::ALL).await.unwrap();
    assert_eq!(summary.tasks, ["create b", "delete a"]);
    assert_eq!(summary.cases, 8);
    let moments = world.moments.into_inner().unwrap();
    assert_eq!(
        moments
            .iter()
            .filter(|m| matches!(m, Moment::Disturbed(_)))
            .count(),
        6
    );
    assert_eq!(
        moments
            .iter()
            .filter(|m| matches!(m, Moment::Finished(_)))
            .count(),
        9
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_repeated_is_found() {
    assert_eq!(
        drilled(Wrong::CreateFailsIfThere).await,
        r#"FailAfter at "create b", second run: flow "move": task "create b" failed: b exists"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_after_a_later_one_did_its_work_is_found() {
    assert_eq!(
        drilled(Wrong::NeedsA).await,
        r#"FailAfter at "delete a", second run: flow "move": task "create b" failed: a is missing"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_wants_its_object_is_found() {
    assert_eq!(
        drilled(Wrong::DeleteFailsIfGone).await,
        r#"FailAfter at "delete a", second run: flow "move": task "delete a" failed: a is gone"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_death_in_the_middle_leaves_half_of_the_work() {
    let mut world = World::default();
    drill::run(&mut world, &[Fault::Kill]).await.unwrap();
    assert_eq!(world.moments.into_inner().unwrap().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn cases_may_run_side_by_side_and_all_failures_are_told() {
    let summary = drill::spread(3, &[Fault::FailAfter, Fault::RunTwice], World::default)
        .await
        .unwrap();
    assert_eq!(summary.cases, 4);
    let broken = || World {
        wrong: Some(Wrong::DeleteFailsIfGone),
        ..World::default()
    };
    let failures = drill::spread(3, &Fault::ALL, broken).await.unwrap_err();
    assert_eq!(failures.0.len(), 2, "{failures}");
    assert!(failures.to_string().starts_with("2 case(s) failed:\n- "));
}

#[tokio::test(start_paused = true)]
async fn one_world_finds_what_cannot_be_run_again() {
    let drilled = async |wrong| {
        let world = || World {
            wrong,
            ..World::default()
        };
        drill::in_one_world(world).await
    };
    let summary = drilled(None).await.unwrap();
    assert_eq!((summary.tasks.len(), summary.cases), (2, 2));
    for wrong in [Wrong::CreateFailsIfThere, Wrong::DeleteFailsIfGone, Wrong::NeedsA] {
        assert!(drilled(Some(wrong)).await.is_err());
    }
}

/// Two tasks in sequence. Once the first task has done the work, a new run skips the second task.
#[derive(Default)]
struct OnlyAtFirst {
    done: Mutex<bool>,
}

impl Scenario for OnlyAtFirst {
    type Error = String;

    fn injected(&self, message: String) -> String {
        message
    }

    async fn reset(&mut self) -> Result<(), String> {
        Ok(())
    }

    async fn run(&mut self, interceptor: &dyn Interceptor<String>) -> Result<Report, FlowError<String>> {
        let (world, wanted) = (&*self, !*self.done.lock().unwrap());
        let mut g = Graph::new("at first");
        let first = g.add(Task::new("first", || async {
            *world.done.lock().unwrap() = true;
            Ok(())
        }));
        g.step_if(wanted, "second", [first], || async { Ok(()) });
        g.compile().run_with(|_| (), interceptor).await
    }

    async fn check(&mut self, _: Moment) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_another_failure_leaves_out_gets_a_case_of_its_own() {
    let summary = drill::in_one_world(OnlyAtFirst::default).await.unwrap();
    assert_eq!((summary.tasks.len(), summary.cases), (2, 3));
}

/// Two parallel tasks, and a third task after both. Counts the executions of each.
#[derive(Default)]
struct Fork<'a> {
    done: Option<&'a Mutex<Vec<&'static str>>>,
}

impl Scenario for Fork<'_> {
    type Error = String;

    fn injected(&self, message: String) -> String {
        message
    }

    async fn reset(&mut self) -> Result<(), String> {
        self.done.unwrap().lock().unwrap().clear();
        Ok(())
    }

    async fn run(&mut self, interceptor: &dyn Interceptor<String>) -> Result<Report, FlowError<String>> {
        let done = self.done.unwrap();
        let mut g = Graph::new("fork");
        let task = |name: &'static str| {
            Task::new(name, move || async move {
                done.lock().unwrap().push(name);
                Ok(())
            })
        };
        let left = g.add(task("left"));
        let right = g.add(task("right"));
        g.add(task("end").after(left).after(right));
        g.compile().run_with(|_| (), interceptor).await
    }

    async fn check(&mut self, _: Moment) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_side_by_side_fail_in_one_run() {
    let done = Mutex::default();
    let fork = || Fork { done: Some(&done) };
    let summary = drill::in_one_world(fork).await.unwrap();
    assert_eq!((summary.tasks.len(), summary.cases), (3, 3));
    let done = done.lock().unwrap();
    let times = |name| done.iter().filter(|task| **task == name).count();
    // Both parallel tasks fail; then the end fails; then each task is done twice.
    assert_eq!(
        (times("left"), times("right"), times("end")),
        (4, 4, 3),
        "{done:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_after_each_task_finds_what_cannot_be_run_again() {
    let drilled = async |wrong| {
        let world = || World {
            wrong,
            ..World::default()
        };
        drill::end_after_each(world).await
    };
    let summary = drilled(None).await.unwrap();
    assert_eq!((summary.tasks.len(), summary.cases), (2, 2));
    for wrong in [Wrong::CreateFailsIfThere, Wrong::DeleteFailsIfGone, Wrong::NeedsA] {
        assert!(drilled(Some(wrong)).await.is_err());
    }
    let summary = drill::end_after_each(OnlyAtFirst::default).await.unwrap();
    assert_eq!((summary.tasks.len(), summary.cases), (2, 3));
}

/// Parallel tasks end in the middle, and no task begins any more.
#[tokio::test(start_paused = true)]
async fn a_process_that_ends_after_a_task_begins_no_other() {
    let done = Mutex::default();
    let fork = || Fork { done: Some(&done) };
    let summary = drill::end_after_each(fork).await.unwrap();
    assert_eq!((summary.tasks.len(), summary.cases), (3, 3));
    let done = done.lock().unwrap();
    let times = |name| done.iter().filter(|task| **task == name).count();
    // A run ends after each parallel task in turn, before or after the second parallel task begins. A further
    // run ends after the end task, and the last run is undisturbed.
    let mut beside = [times("left"), times("right")];
    beside.sort_unstable();
    assert_eq!((beside, times("end")), ([3, 4], 2), "{done:?}");
}
