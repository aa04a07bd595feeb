//! Reports of shoots as text.

use api::{
    gardencore::shoot::MigrationProgress,
    meta::{Condition, LastError, LastOperation},
};
use jiff::Timestamp;
use serde_json::json;

use super::report::ShootReport;
use crate::{
    age::age,
    table::{Branch, columns},
};

/// A cell without a value, as kubectl writes such a cell.
const NONE: &str = "<none>";

/// A line for each shoot, below a head.
pub(super) fn lines(reports: &[ShootReport], with_namespace: bool, now: Timestamp) -> String {
    let head = [
        "NAMESPACE",
        "NAME",
        "SEED",
        "TARGET",
        "OPERATION",
        "PROGRESS",
        "PHASE",
        "ERRORS",
        "STATUS",
        "AGE",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(reports.iter().map(|report| row(report, now)));
    if !with_namespace {
        for row in &mut rows {
            row.remove(0);
        }
    }
    columns(&rows)
}

fn row(report: &ShootReport, now: Timestamp) -> Vec<String> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let operation = report.operation.as_ref();
    let target = report.wanted_seed.clone().filter(|_| report.is_to_move());
    vec![
        report.namespace.clone(),
        report.name.clone(),
        or_none(report.acting_seed.clone()),
        or_none(target),
        or_none(operation.map(|operation| format!("{} {}", operation.type_, operation.state))),
        or_none(operation.map(|operation| format!("{}%", operation.progress))),
        or_none(report.phase.map(|phase| format!("{phase:?}"))),
        report.errors.len().to_string(),
        or_none(report.health.clone()),
        or_none(report.created.as_ref().map(|created| age(created, now))),
    ]
}

/// The report of a shoot as a tree.
pub(super) fn tree(report: &ShootReport, now: Timestamp) -> String {
    let created = report.created.as_ref().map(|created| age(created, now));
    let mut tree = Branch::new(format!(
        "Shoot {}/{}, age {}",
        report.namespace,
        report.name,
        created.as_deref().unwrap_or("unknown")
    ));
    tree.add(format!(
        "seed: {} (specification: {}, settled: {})",
        report.acting_seed.as_deref().unwrap_or(NONE),
        report.wanted_seed.as_deref().unwrap_or(NONE),
        report.settled_seed.as_deref().unwrap_or(NONE)
    ));
    if let Some(operation) = &report.operation {
        tree.add(describe_operation(operation, now));
    }
    if let Some(progress) = &report.progress {
        tree.add(describe_progress(progress, now));
    }
    let phase = report.phase.map(|phase| format!("{phase:?}"));
    tree.add(format!(
        "ownership: epoch {}, phase {}, {}",
        report.epoch,
        phase.as_deref().unwrap_or("not recorded"),
        report.journey
    ));
    let former = report.former_seeds.iter();
    let former = former.map(|former| format!("{} (epoch {}) still cleans up", former.name, former.epoch));
    tree.add_group("former seeds", former.collect());
    let conditions = |all: &[Condition]| all.iter().map(|one| describe_condition(one, now)).collect();
    tree.add_group("constraints", conditions(&report.constraints));
    tree.add_group(
        "conditions that do not hold",
        conditions(&report.failing_conditions),
    );
    let errors = report.errors.iter();
    tree.add_group(
        "last errors",
        errors.map(|error| describe_error(error, now)).collect(),
    );
    tree.render()
}

/// An operation with the progress.
fn describe_operation(operation: &LastOperation, now: Timestamp) -> String {
    format!(
        "operation: {} {}, {}%, {} ago: {}",
        operation.type_,
        operation.state,
        operation.progress,
        age(&operation.last_update_time, now),
        operation.description
    )
}

/// The step of a move.
fn describe_progress(progress: &MigrationProgress, now: Timestamp) -> String {
    let copied = match (progress.copied_bytes, progress.total_bytes) {
        (Some(copied), Some(total)) => format!(", copied {copied} of {total} bytes"),
        _ => String::new(),
    };
    let awaited = progress.awaited.as_ref();
    let awaited = awaited.map(|awaited| format!("; waits for: {awaited}"));
    format!(
        "step: {} in seed {} for {}{copied}{}",
        progress.step,
        progress.seed_name,
        age(&progress.start_time, now),
        awaited.unwrap_or_default()
    )
}

/// A condition with the age of the present status.
pub(super) fn describe_condition(condition: &Condition, now: Timestamp) -> String {
    format!(
        "{} is {:?} for {}: {} ({}){}",
        condition.type_,
        condition.status,
        age(&condition.last_transition_time, now),
        condition.message,
        condition.reason,
        codes(&json!(condition.codes))
    )
}

fn describe_error(error: &LastError, now: Timestamp) -> String {
    let task = error.task_id.as_ref().map(|task| format!("{task}: "));
    let time = error.last_update_time.as_ref();
    let time = time.map(|time| format!(", {} ago", age(time, now)));
    format!(
        "{}{}{}{}",
        task.unwrap_or_default(),
        error.description,
        codes(&json!(error.codes)),
        time.unwrap_or_default()
    )
}

/// Codes of errors in brackets, as the API writes the codes.
fn codes(codes: &serde_json::Value) -> String {
    let codes = codes.as_array().map(Vec::as_slice).unwrap_or_default();
    let codes: Vec<&str> = codes.iter().filter_map(serde_json::Value::as_str).collect();
    if codes.is_empty() {
        String::new()
    } else {
        format!(" [{}]", codes.join(", "))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::Shoot;

    use super::*;

    const MOVING: &str = r"
metadata:
  name: demo
  namespace: garden-dev
  creationTimestamp: 2026-01-05T00:00:00Z
  labels: {shoot.gardener.cloud/status: progressing}
spec: {region: local, provider: {type: local}, seedName: seed-b}
status:
  seedName: seed-a
  lastOperation: {type: Migrate, state: Error, progress: 30, description: Creating ETCD Snapshot,
    lastUpdateTime: 2026-01-09T23:59:50Z}
  migration:
    source: seed-a
    destination: seed-b
    generation: 2
    spec: {}
    progress: {seedName: seed-a, step: Creating ETCD Snapshot, startTime: 2026-01-09T23:59:00Z, awaited: the bucket,
      copiedBytes: 1, totalBytes: 3}
  ownership: {epoch: 4, phase: Sealing}
  formerSeeds: [{name: seed-c, epoch: 2}]
  constraints:
  - {type: ReadyForMigration, status: 'True', reason: DestinationSeedReady, message: The move can begin.,
    lastTransitionTime: 2026-01-09T23:00:00Z, lastUpdateTime: 2026-01-09T23:00:00Z}
  conditions:
  - {type: APIServerAvailable, status: 'False', reason: Moving, message: The API is stopped.,
    lastTransitionTime: 2026-01-09T23:59:00Z, lastUpdateTime: 2026-01-09T23:59:00Z}
  lastErrors:
  - {description: the bucket refuses, taskID: Snapshot, codes: [ERR_INFRA_UNAUTHORIZED],
    lastUpdateTime: 2026-01-09T23:59:40Z}
";

    fn report(yaml: &str) -> ShootReport {
        ShootReport::new(&serde_yaml_ng::from_str::<Shoot>(yaml).unwrap())
    }

    fn now() -> Timestamp {
        "2026-01-10T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_tree_of_a_move_names_seeds_step_phase_and_errors() {
        let expected = "\
Shoot garden-dev/demo, age 5d
├─ seed: seed-a (specification: seed-b, settled: <none>)
├─ operation: Migrate Error, 30%, 10s ago: Creating ETCD Snapshot
├─ step: Creating ETCD Snapshot in seed seed-a for 60s, copied 1 of 3 bytes; waits for: the bucket
├─ ownership: epoch 4, phase Sealing, Leaving
├─ former seeds
│  └─ seed-c (epoch 2) still cleans up
├─ constraints
│  └─ ReadyForMigration is True for 60m: The move can begin. (DestinationSeedReady)
├─ conditions that do not hold
│  └─ APIServerAvailable is False for 60s: The API is stopped. (Moving)
└─ last errors
   └─ Snapshot: the bucket refuses [ERR_INFRA_UNAUTHORIZED], 20s ago
";
        assert_eq!(tree(&report(MOVING), now()), expected);
    }

    #[test]
    fn a_line_names_the_target_only_during_a_move() {
        let settled = "metadata: {name: quiet, namespace: garden-dev}\n\
            spec: {region: r, provider: {type: t}, seedName: seed-a}\nstatus: {seedName: seed-a}\n";
        let text = lines(&[report(MOVING), report(settled)], false, now());
        let words: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            words[1],
            [
                "demo",
                "seed-a",
                "seed-b",
                "Migrate",
                "Error",
                "30%",
                "Sealing",
                "1",
                "progressing",
                "5d"
            ]
        );
        assert_eq!(
            words[2],
            ["quiet", "seed-a", NONE, NONE, NONE, NONE, "0", NONE, NONE]
        );
        assert_eq!(words[0][0], "NAME");
        let all = lines(&[report(MOVING)], true, now());
        assert!(
            all.starts_with("NAMESPACE") && all.contains("garden-dev"),
            "{all}"
        );
    }

    #[test]
    fn the_json_names_the_acting_and_the_wanted_seed() {
        let json = json!(report(MOVING));
        assert_eq!(json["actingSeed"], "seed-a");
        assert_eq!(json["wantedSeed"], "seed-b");
        assert_eq!(json["journey"], "Leaving");
        assert_eq!(json["errors"][0]["codes"][0], "ERR_INFRA_UNAUTHORIZED");
    }
}
