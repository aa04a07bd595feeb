#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;

fn deployment() -> MachineDeployment {
    serde_json::from_value(json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineDeployment",
        "metadata": {"name": "pool", "generation": 2},
        "spec": {"replicas": 2, "progressDeadlineSeconds": 60, "template": {}},
    }))
    .unwrap()
}

fn build_counts(replicas: usize, available: usize) -> MachineCounts {
    MachineCounts {
        replicas,
        staying: replicas,
        terminating: 0,
        available,
    }
}

/// The condition Progressing at a second, for these sets; the status is kept for the next check.
fn check_progress(
    deployment: &mut MachineDeployment,
    second: i64,
    old: &MachineCounts,
    new: &MachineCounts,
) -> String {
    let wanted = RolloutSpec {
        replicas: 2,
        surge: 1,
        unavailable: 0,
        strategy: RolloutStrategy::Rolling,
    };
    let found = DeploymentObservation {
        wanted: Some(&wanted),
        old: std::slice::from_ref(old),
        new: Some(new),
        ready: 0,
        failed: Vec::new(),
        collisions: None,
        error: None,
        now: Time(jiff::Timestamp::from_second(second).unwrap()),
    };
    let (status, pause) = compute_status(deployment, &found);
    deployment.status = Some(status.clone());
    let told = status
        .conditions
        .iter()
        .find(|c| c.type_ == PROGRESSING)
        .unwrap()
        .clone();
    format!(
        "{} {} {}",
        told.status,
        told.reason.unwrap(),
        pause.map_or("-".into(), |pause| pause.as_secs().to_string())
    )
}

#[test]
fn an_update_that_stands_still_is_told_and_one_that_goes_on_is_done_some_time() {
    let mut d = deployment();
    let (full, none) = (build_counts(2, 2), build_counts(0, 0));
    assert_eq!(
        check_progress(&mut d, 0, &full, &build_counts(1, 0)),
        "True MachineSetUpdated 61"
    );
    assert_eq!(
        check_progress(&mut d, 40, &full, &build_counts(1, 0)),
        "True MachineSetUpdated 21"
    );
    assert_eq!(
        check_progress(&mut d, 61, &full, &build_counts(1, 0)),
        "False ProgressDeadlineExceeded -"
    );
    assert_eq!(
        check_progress(&mut d, 99, &full, &build_counts(1, 0)),
        "False ProgressDeadlineExceeded -"
    );
    // The update continues.
    assert_eq!(
        check_progress(&mut d, 100, &full, &build_counts(1, 1)),
        "True MachineSetUpdated 61"
    );
    assert_eq!(
        check_progress(&mut d, 101, &none, &build_counts(2, 2)),
        "True NewMachineSetAvailable -"
    );
    // A machine that fails later is no update that stands still.
    assert_eq!(
        check_progress(&mut d, 500, &none, &build_counts(2, 1)),
        "True NewMachineSetAvailable -"
    );
    d.metadata.generation = Some(3);
    assert_eq!(
        check_progress(&mut d, 501, &none, &build_counts(2, 1)),
        "True MachineSetUpdated 61"
    );
}

#[test]
fn times_change_only_with_what_they_are_of() {
    let mut d = deployment();
    check_progress(&mut d, 0, &build_counts(2, 2), &build_counts(1, 0));
    let before = d.status.clone();
    check_progress(&mut d, 10, &build_counts(2, 2), &build_counts(1, 0));
    assert_eq!(d.status, before, "nothing to write");
    assert_eq!(before.unwrap().unavailable_replicas, Some(1));
}
