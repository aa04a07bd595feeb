//! Health of workloads.

use serde_json::Value;

use super::verdict::{Health, condition, is_observed, number};

const NOT_SEEN: &str = "its last change is not observed yet";

pub(super) fn deployment(object: &Value) -> Health {
    let wanted = number(object, "/spec/replicas", 1);
    let wrong = match (condition(object, "Available"), condition(object, "Progressing")) {
        (_, Some(("False", reason))) => Some(format!("its rollout does not go on ({reason})")),
        (Some(("True", _)), _) => None,
        (Some((_, reason)), _) => Some(format!("it is not available ({reason})")),
        (None, _) if wanted == 0 && is_observed(object) => None,
        (None, _) => Some("it is not available yet".to_owned()),
    };
    Health::new(
        wrong,
        rollout(
            object,
            wanted,
            "/status/updatedReplicas",
            "/status/availableReplicas",
        ),
    )
}

pub(super) fn stateful_set(object: &Value) -> Health {
    let wanted = number(object, "/spec/replicas", 1);
    let ready = number(object, "/status/readyReplicas", 0);
    let wrong = (ready < wanted).then(|| format!("{ready} of {wanted} replicas are ready"));
    let updated = if object["status"]["updateRevision"] == object["status"]["currentRevision"] {
        "/status/replicas"
    } else {
        "/status/updatedReplicas"
    };
    Health::new(wrong, rollout(object, wanted, updated, "/status/readyReplicas"))
}

pub(super) fn daemon_set(object: &Value) -> Health {
    let wanted = number(object, "/status/desiredNumberScheduled", 0);
    let ready = number(object, "/status/numberReady", 0);
    let misplaced = number(object, "/status/numberMisscheduled", 0);
    let wrong = if ready < wanted {
        Some(format!("{ready} of {wanted} pods are ready"))
    } else {
        (misplaced > 0).then(|| format!("{misplaced} pods are on nodes where they should not be"))
    };
    Health::new(
        wrong,
        rollout(
            object,
            wanted,
            "/status/updatedNumberScheduled",
            "/status/numberAvailable",
        ),
    )
}

pub(super) fn replica_set(object: &Value) -> Health {
    let wanted = number(object, "/spec/replicas", 1);
    let ready = number(object, "/status/readyReplicas", 0);
    let wrong = (ready < wanted).then(|| format!("{ready} of {wanted} replicas are ready"));
    Health::new(wrong, (!is_observed(object)).then(|| NOT_SEEN.to_owned()))
}

/// The pending part of the last change.
fn rollout(object: &Value, wanted: i64, updated: &str, available: &str) -> Option<String> {
    if !is_observed(object) {
        return Some(NOT_SEEN.to_owned());
    }
    let (updated, available) = (number(object, updated, 0), number(object, available, 0));
    let all = number(object, "/status/replicas", 0);
    if updated < wanted {
        Some(format!("{updated} of {wanted} replicas are of its last change"))
    } else if all > updated.max(wanted) {
        Some(format!(
            "{} old replicas are still there",
            all - updated.max(wanted)
        ))
    } else if available < wanted {
        Some(format!("{available} of {wanted} replicas are available"))
    } else {
        None
    }
}

pub(super) fn job(object: &Value) -> Health {
    match (condition(object, "Failed"), condition(object, "Complete")) {
        (Some(("True", reason)), _) => Health::wrong(format!("it has failed ({reason})")),
        (_, Some(("True", _))) => Health::default(),
        _ => Health::new(None, Some("it has not finished yet".to_owned())),
    }
}

pub(super) fn pod(object: &Value) -> Health {
    match object["status"]["phase"].as_str() {
        Some("Succeeded") => Health::default(),
        Some("Running") => Health::unless(
            matches!(condition(object, "Ready"), Some(("True", _))),
            "it is not ready",
        ),
        phase => Health::wrong(format!("its phase is {}", phase.unwrap_or("not known"))),
    }
}
