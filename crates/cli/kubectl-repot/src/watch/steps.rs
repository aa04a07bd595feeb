//! The steps of an operation, and the end of the operation: pure decisions.

use api::{
    gardencore::Shoot,
    meta::{LastOperation, LastOperationState as State},
};
use kube::ResourceExt;
use placement::{Journey, is_move_wanted, journey};
use serde::Serialize;

use crate::{age::span, failure::Failure, follow::Step, moves::describe, table::columns, terminal::one_line};

/// The end of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum OperationEnd {
    /// No operation runs, with a sentence about the last operation.
    AtRest(String),
    /// The Shoot does not exist any more.
    Deleted,
}

/// Whether the operation has ended.
///
/// # Errors
/// The operation has failed and is not tried again.
pub fn judge(shoot: Option<&Shoot>) -> Result<Step<OperationEnd>, Failure> {
    let Some(shoot) = shoot else {
        return Ok(Step::Done(OperationEnd::Deleted));
    };
    let name = shoot.name_any();
    let status = shoot.status.as_ref();
    let Some(last) = status.and_then(|status| status.last_operation.as_ref()) else {
        return Ok(Step::Waiting(format!("{name}: no seed has begun with the shoot")));
    };
    if last.state == State::Failed {
        let errors = status.iter().flat_map(|status| &status.last_errors);
        let errors: Vec<&str> = errors.map(|error| error.description.as_str()).collect();
        return Err(Failure::failed(format!(
            "operation {} on shoot {name} has failed and is not tried again: {}; remove the cause, then annotate the Shoot with \
             gardener.cloud/operation=retry",
            last.type_,
            one_line(&errors.join("; "))
        )));
    }
    if is_move_wanted(shoot) || journey(shoot) != Journey::Settled {
        return Ok(Step::Waiting(describe(shoot)));
    }
    let sentence = describe_operation(shoot, last);
    Ok(match last.state {
        State::Processing | State::Pending | State::Error => Step::Waiting(format!("{name}: {sentence}")),
        State::Succeeded | State::Failed | State::Aborted => Step::Done(OperationEnd::AtRest(sentence)),
    })
}

fn describe_operation(shoot: &Shoot, last: &LastOperation) -> String {
    let seed = acting_seed(shoot).unwrap_or("<none>");
    format!(
        "{} {} {}% on seed {seed}: {}",
        last.type_, last.state, last.progress, last.description
    )
}

fn acting_seed(shoot: &Shoot) -> Option<&str> {
    let status = shoot.status.as_ref()?;
    status.seed_name.as_deref().filter(|seed| !seed.is_empty())
}

/// A step of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRecord {
    /// The seed that works on the step.
    pub seed: String,
    /// Type of the operation.
    pub operation: String,
    /// The step, as the gardenlet names the step.
    pub step: String,
    /// The observed duration in seconds.
    pub seconds: u64,
}

/// The steps that were observed, by the seconds since the begin of the watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    done: Vec<StepRecord>,
    /// The present step, and the second of the first observation.
    present: Option<(StepRecord, u64)>,
}

impl Steps {
    /// Records the present step of the Shoot.
    pub fn observe(&mut self, shoot: Option<&Shoot>, second: u64) {
        let next = shoot.and_then(present_step);
        let is_same = match (&self.present, &next) {
            (Some((present, _)), Some(next)) => present == next,
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            self.close(second);
            self.present = next.map(|step| (step, second));
        }
    }

    /// The seed that works on the present step.
    #[must_use]
    pub fn seed(&self) -> Option<String> {
        self.present.as_ref().map(|(step, _)| step.seed.clone())
    }

    /// All steps, in order.
    #[must_use]
    pub fn finish(mut self, second: u64) -> Vec<StepRecord> {
        self.close(second);
        self.done
    }

    fn close(&mut self, second: u64) {
        if let Some((mut step, since)) = self.present.take() {
            step.seconds = second.saturating_sub(since);
            self.done.push(step);
        }
    }
}

/// The step that started first, of the steps that run now. The duration is not known yet.
fn present_step(shoot: &Shoot) -> Option<StepRecord> {
    let status = shoot.status.as_ref()?;
    let last = status.last_operation.as_ref()?;
    let is_moving = journey(shoot) != Journey::Settled;
    let runs = is_moving || matches!(last.state, State::Processing | State::Error);
    if !runs {
        return None;
    }
    let migration = status.migration.as_ref().filter(|_| is_moving);
    let progress = migration.and_then(|migration| migration.progress.as_ref());
    Some(StepRecord {
        seed: progress.map_or_else(
            || acting_seed(shoot).unwrap_or_default().to_owned(),
            |progress| progress.seed_name.clone(),
        ),
        operation: last.type_.to_string(),
        step: progress.map_or_else(|| last.description.clone(), |progress| progress.step.clone()),
        seconds: 0,
    })
}

/// The steps as a table, and the end.
pub(super) fn render(steps: &[StepRecord], end: &OperationEnd, name: &str) -> String {
    let mut rows = vec![
        ["SECONDS", "SEED", "OPERATION", "STEP"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let row = |step: &StepRecord| {
        let seconds = span(i64::try_from(step.seconds).unwrap_or(i64::MAX));
        vec![
            seconds,
            step.seed.clone(),
            step.operation.clone(),
            step.step.clone(),
        ]
    };
    rows.extend(steps.iter().map(row));
    let table = if steps.is_empty() {
        String::new()
    } else {
        columns(&rows)
    };
    let end = match end {
        OperationEnd::AtRest(last) => {
            format!("No operation runs on shoot {name}. The last operation: {last}")
        }
        OperationEnd::Deleted => format!("Shoot {name} does not exist any more."),
    };
    format!("{table}{end}\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shoot(wanted: &str, acting: &str, last: &str, progress: &str) -> Shoot {
        let (type_, state) = last.split_once(' ').unwrap();
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: demo}}\nspec: {{region: r, provider: {{type: t}}, seedName: {wanted}}}\n\
             status: {{seedName: {acting}, lastOperation: {{type: {type_}, state: {state}, progress: 40, description: Copying, \
             lastUpdateTime: 2026-01-01T00:00:00Z}}, lastErrors: [{{description: the bucket refuses}}]{progress}}}\n"
        ))
        .unwrap()
    }

    fn progress(seed: &str, step: &str) -> String {
        format!(
            ", migration: {{source: a, destination: b, generation: 1, spec: {{}}, progress: {{seedName: {seed}, step: {step}, \
             startTime: 2026-01-01T00:00:00Z, awaited: the Job}}}}"
        )
    }

    #[test]
    fn an_operation_ends_at_rest() {
        for (wanted, last) in [
            ("b", "Reconcile Succeeded"),
            ("b", "Migrate Processing"),
            ("a", "Reconcile Processing"),
            ("a", "Reconcile Error"),
            ("a", "Create Pending"),
            ("a", "Restore Processing"),
        ] {
            let step = judge(Some(&shoot(wanted, "a", last, ""))).unwrap();
            assert!(matches!(step, Step::Waiting(_)), "{wanted} {last}");
        }
        let rest = judge(Some(&shoot("a", "a", "Reconcile Succeeded", ""))).unwrap();
        let sentence = "Reconcile Succeeded 40% on seed a: Copying".to_owned();
        assert_eq!(rest, Step::Done(OperationEnd::AtRest(sentence)));
        assert_eq!(judge(None), Ok(Step::Done(OperationEnd::Deleted)));
    }

    #[test]
    fn a_failed_operation_names_errors_and_remedy() {
        let failed = judge(Some(&shoot("b", "a", "Migrate Failed", ""))).unwrap_err();
        let text = failed.to_string();
        assert!(
            text.contains("the bucket refuses") && text.contains("operation=retry"),
            "{text}"
        );
    }

    #[test]
    fn steps_have_seconds_and_the_seed() {
        let mut steps = Steps::default();
        let leaving = shoot("b", "a", "Migrate Processing", &progress("a", "Snapshot"));
        steps.observe(Some(&leaving), 2);
        steps.observe(Some(&leaving), 5);
        assert_eq!(steps.seed().as_deref(), Some("a"));
        steps.observe(
            Some(&shoot("b", "b", "Restore Processing", &progress("b", "Copy"))),
            9,
        );
        steps.observe(Some(&shoot("b", "b", "Restore Succeeded", "")), 12);
        let steps = steps.finish(12);
        let text = render(&steps, &OperationEnd::Deleted, "demo");
        assert_eq!(
            text,
            "SECONDS   SEED   OPERATION   STEP\n\
             7s        a      Migrate     Snapshot\n\
             3s        b      Restore     Copy\n\
             Shoot demo does not exist any more.\n"
        );
    }
}
