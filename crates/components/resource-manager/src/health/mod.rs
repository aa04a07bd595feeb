//! The health of an object, from the object alone. An object of a kind outside this list is healthy if the
//! object exists.

mod others;
mod verdict;
mod workloads;

use serde_json::Value;

pub use verdict::Health;

type Judge = fn(&Value) -> Health;

const JUDGES: &[(&str, &str, Judge)] = &[
    ("apps", "Deployment", workloads::deployment),
    ("apps", "DaemonSet", workloads::daemon_set),
    ("apps", "StatefulSet", workloads::stateful_set),
    ("apps", "ReplicaSet", workloads::replica_set),
    ("batch", "Job", workloads::job),
    ("", "Pod", workloads::pod),
    ("", "PersistentVolumeClaim", others::claim),
    ("", "Service", others::service),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        others::definition,
    ),
    ("apiregistration.k8s.io", "APIService", others::api_service),
];

/// Whether this kind has a health check beyond existence: then the status is watched, too.
#[must_use]
pub fn is_judged(group: &str, kind: &str) -> bool {
    judge(group, kind).is_some()
}

/// The health of this object.
#[must_use]
pub fn assess(group: &str, kind: &str, object: &Value) -> Health {
    judge(group, kind).map_or_else(Health::default, |judge| judge(object))
}

fn judge(group: &str, kind: &str) -> Option<Judge> {
    let found = JUDGES.iter().find(|(of, name, _)| *of == group && *name == kind);
    found.map(|(_, _, judge)| *judge)
}

#[cfg(test)]
mod tests;
