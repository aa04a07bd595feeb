//! Runs a flow and writes the progress of the flow into the Shoot: `lastOperation`, and within a move
//! `status.migration.progress`.
//!
//! A new step is written at once. Within a step only a changed report of the move is written, at most every
//! [`REPORT_PAUSE`]. Writes are coalesced: a slow garden delays the progress, never the flow.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::{gardencore::Shoot, meta::LastOperationType as Type};
use flow::{Flow, Progress};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use runtime::{Error, Result, client::wait_progress, clock};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior},
};

use super::{
    failure::{Failure, from_flow, outside},
    pace::Pace,
    status,
    unwritable::{FormerEpochEnd, WRITABLE_AFTER},
};
use crate::shoot::ownership::status_writer::StatusWriter;

/// The shortest pause between two reports of the same step.
const REPORT_PAUSE: Duration = Duration::from_secs(5);

/// Task name of an error of the writes.
const TASK: &str = "Writing progress";

/// As many characters as the API takes of `awaited`.
const LONGEST_REASON: usize = 1024;

/// Runs a flow, and writes its progress.
///
/// # Errors
/// A task of the flow has failed, or the Shoot does not belong to this seed any more, so that no step of the
/// flow may continue.
pub(crate) async fn run_and_report(
    pace: &Pace,
    type_: Type,
    flow: Flow<'_, Error>,
    status_writer: &StatusWriter<'_>,
) -> Result<(), Failure> {
    let name = flow.name();
    let flow = flow
        .expect(|step| pace.expected(name, step))
        .measure(pace.tasks());
    let steps = Arc::new(RunningSteps::default());
    let (sender, receiver) = watch::channel(None::<Progress>);
    let seen = Arc::clone(&steps);
    let former_end = (type_ == Type::Restore).then(|| FormerEpochEnd::read(status_writer.begun()));
    let former_end = former_end.flatten();
    let work = flow.run(move |progress| {
        for (step, took) in seen.advance(&progress, Instant::now()) {
            pace.learn(name, step, took);
            if is_part_of_move(type_) {
                pace.observe(type_, step, took);
            }
            if let Some(end) = former_end.as_ref().filter(|_| step == WRITABLE_AFTER) {
                pace.unwritable().observe(end, clock::now());
            }
        }
        sender.send_replace(Some(progress));
    });
    let work = wait_progress::listen(Arc::clone(&steps) as Arc<dyn wait_progress::Listener>, work);
    let writer = write_progress(receiver, type_, &steps, status_writer);
    tokio::pin!(work, writer);
    let mut ended = None;
    let percent = loop {
        tokio::select! {
            outcome = &mut work, if ended.is_none() => ended = Some(outcome),
            percent = &mut writer => break percent.map_err(|error| outside(TASK, error))?,
        }
    };
    // The flow holds the sender of the writer's channel: without an error, the writer ends after the flow.
    let outcome = ended.ok_or_else(|| outside(TASK, Error::bug("progress ended before its flow")))?;
    outcome.map(drop).map_err(|error| from_flow(&error, percent))
}

/// Writes until the flow ends, and returns the last percentage.
async fn write_progress(
    mut receiver: watch::Receiver<Option<Progress>>,
    type_: Type,
    steps: &RunningSteps,
    status_writer: &StatusWriter<'_>,
) -> Result<i32> {
    let mut percent = status_writer.reached();
    let mut pauses = tokio::time::interval(REPORT_PAUSE);
    pauses.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reported = None;
    loop {
        let is_new_step = tokio::select! {
            changed = receiver.changed() => match changed {
                Ok(()) => true,
                Err(_) => return Ok(percent),
            },
            _ = pauses.tick() => false,
        };
        // A step that has begun since stays unseen, so that the next turn writes this step.
        let Some(progress) = receiver.borrow().clone() else {
            continue;
        };
        let report = steps.report(status_writer.seed_name());
        if !is_new_step && (!is_part_of_move(type_) || report == reported) {
            continue;
        }
        // An attempt that repeats former steps does not go back.
        percent = percent.max(i32::from(progress.percent)).min(99);
        let progress = Progress {
            percent: u8::try_from(percent).unwrap_or_default(),
            ..progress
        };
        let written = status_writer.write_if(|newest| {
            let patch = if is_new_step {
                status::progressed(newest, type_, &progress, &clock::now_k8s())
            } else {
                json!({})
            };
            let patch = with_report(newest, type_, patch, report.as_ref());
            Ok(Some(patch).filter(|patch| *patch != json!({})))
        });
        match written.await {
            Ok(_) => reported = report,
            // No step of this flow may continue.
            Err(error @ Error::NotOwner(_)) => return Err(error),
            Err(error) => tracing::debug!(error = format_args!("{error:#}"), "progress could not be written"),
        }
        pauses.reset();
    }
}

fn is_part_of_move(type_: Type) -> bool {
    matches!(type_, Type::Migrate | Type::Restore)
}

/// Adds the report of the running step, if the operation is part of an approved move.
fn with_report(shoot: &Shoot, type_: Type, mut patch: Value, report: Option<&Value>) -> Value {
    let status = shoot.status.as_ref();
    if is_part_of_move(type_)
        && status.is_some_and(|status| status.migration.is_some())
        && let Some(report) = report
    {
        patch["migration"] = json!({"progress": report});
    }
    patch
}

/// The steps that run, each with the condition that the step awaits.
#[derive(Default)]
struct RunningSteps(Mutex<Steps>);

#[derive(Default)]
struct Steps {
    /// In the order of their start.
    running: Vec<RunningStep>,
    awaited: HashMap<&'static str, String>,
    copied: Option<(i64, i64)>,
}

struct RunningStep {
    name: &'static str,
    since: Instant,
    start_time: Time,
}

impl RunningSteps {
    /// Records the running steps, and returns the steps that have succeeded since the last call, with the
    /// duration of each.
    fn advance(&self, progress: &Progress, now: Instant) -> Vec<(&'static str, Duration)> {
        let mut steps = self.steps();
        let mut ended = Vec::new();
        steps.running.retain(|step| {
            let runs = progress.running.contains(&step.name);
            if !runs && progress.succeeded.contains(&step.name) {
                ended.push((step.name, now.duration_since(step.since)));
            }
            runs
        });
        for &name in &progress.running {
            if !steps.running.iter().any(|step| step.name == name) {
                steps.running.push(RunningStep {
                    name,
                    since: now,
                    start_time: clock::now_k8s(),
                });
            }
        }
        let Steps { running, awaited, .. } = &mut *steps;
        awaited.retain(|name, _| running.iter().any(|step| step.name == *name));
        ended
    }

    /// `status.migration.progress`, with nulls that remove the values of the step before. `None` while no
    /// step runs.
    fn report(&self, seed: &str) -> Option<Value> {
        let steps = self.steps();
        let first = steps.running.first()?;
        let awaited = steps.awaited.get(first.name);
        let awaited = awaited.map(|reason| reason.chars().take(LONGEST_REASON).collect::<String>());
        Some(json!({
            "seedName": seed,
            "step": first.name,
            "startTime": first.start_time,
            "awaited": awaited,
            "copiedBytes": steps.copied.map(|copied| copied.0),
            "totalBytes": steps.copied.map(|copied| copied.1),
        }))
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl wait_progress::Listener for RunningSteps {
    fn awaits(&self, reason: &str) {
        if let Some(step) = flow::current_task() {
            self.steps().awaited.insert(step, reason.to_owned());
        }
    }

    fn has_copied(&self, bytes: i64, total: i64) {
        self.steps().copied = Some((bytes, total));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use wait_progress::Listener as _;

    use super::*;

    fn running(running: &[&'static str], succeeded: &[&'static str]) -> Progress {
        Progress {
            running: running.to_vec(),
            succeeded: succeeded.to_vec(),
            ..Progress::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_step_that_started_first_is_reported_with_what_it_awaits() {
        let steps = RunningSteps::default();
        assert_eq!(steps.report("b"), None);
        let start = Instant::now();
        assert!(steps.advance(&running(&["copy", "dns"], &[]), start).is_empty());
        steps.has_copied(5, 10);
        let mut graph = flow::Graph::<String>::new("f");
        graph.add(flow::Task::new("copy", || async {
            wait_progress::report_reason("etcds/etcd-main: it is copied");
            Ok(())
        }));
        let steps = Arc::new(steps);
        let listener = Arc::clone(&steps) as Arc<dyn wait_progress::Listener>;
        wait_progress::listen(listener, graph.compile().run(|_| ()))
            .await
            .unwrap();
        let report = steps.report("b").unwrap();
        for (field, value) in [
            ("seedName", json!("b")),
            ("step", json!("copy")),
            ("awaited", json!("etcds/etcd-main: it is copied")),
            ("copiedBytes", json!(5)),
            ("totalBytes", json!(10)),
        ] {
            assert_eq!(report[field], value, "{report}");
        }
        // The awaited condition goes with the step, and the bytes stay.
        let later = start + Duration::from_secs(7);
        let ended = steps.advance(&running(&["dns"], &["copy"]), later);
        assert_eq!(ended, [("copy", Duration::from_secs(7))]);
        let report = steps.report("b").unwrap();
        assert_eq!(
            (&report["step"], &report["awaited"]),
            (&json!("dns"), &Value::Null)
        );
        assert_eq!(report["copiedBytes"], 5);
        // The time of a failed step is no estimate for the next flow.
        assert!(steps.advance(&running(&[], &["copy"]), later).is_empty());
    }

    #[test]
    fn only_a_shoot_that_moves_reports_a_step() {
        let shoot = |status: Value| -> Shoot {
            serde_json::from_value(json!({"metadata": {"name": "web"},
                "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local"}, "status": status}))
            .unwrap()
        };
        let report = json!({"step": "copy"});
        let settled = shoot(json!({"seedName": "a"}));
        assert_eq!(
            with_report(&settled, Type::Restore, json!({}), Some(&report)),
            json!({})
        );
        let moves = shoot(json!({"seedName": "a",
            "migration": {"source": "a", "destination": "b", "generation": 1, "spec": {}}}));
        // The move is approved, and an earlier reconciliation has not ended.
        assert_eq!(
            with_report(&moves, Type::Reconcile, json!({}), Some(&report)),
            json!({})
        );
        assert_eq!(
            with_report(&moves, Type::Restore, json!({}), Some(&report)),
            json!({"migration": {"progress": {"step": "copy"}}})
        );
    }
}
