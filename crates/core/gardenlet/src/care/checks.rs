//! Computes the conditions of a shoot: pure decisions.

use api::{
    constants::condition::{ETCD_NO_SPACE, NO_SPACE},
    druid::{Etcd, EtcdCondition, EtcdStatus},
    gardencore::Shoot,
    meta::{ConditionStatus, LastOperationState},
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;

use super::{
    components,
    inputs::{CareInputs, Extension},
    observation::Observation,
};
use crate::name_list::names;

/// Deployments that every control plane has.
const REQUIRED: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
/// Etcds that every control plane has.
const REQUIRED_ETCDS: [&str; 2] = ["etcd-main", "etcd-events"];

/// The observation for every aspect of a shoot that sleeps or is about to sleep. No check runs, since a part
/// that stops on purpose is not unhealthy. A shoot that wakes is checked like a running shoot.
pub(super) fn of_sleep(shoot: &Shoot) -> Option<Observation> {
    if !placement::is_to_sleep(shoot) {
        return None;
    }
    Some(if placement::is_asleep(shoot) {
        Observation::new(
            ConditionStatus::True,
            "ConditionNotChecked",
            "Shoot cluster has been hibernated.",
        )
    } else {
        Observation::new(
            ConditionStatus::Progressing,
            "ConditionNotChecked",
            "Shoot cluster is being hibernated.",
        )
    })
}

/// `APIServerAvailable`.
pub(super) fn api_server(inputs: &CareInputs) -> Observation {
    match &inputs.api_error {
        None => Observation::new(
            ConditionStatus::True,
            "HealthzRequestSucceeded",
            "/healthz of the shoot's API answers.",
        ),
        Some(why) if inputs.api_not_asked => {
            Observation::new(ConditionStatus::False, "HealthzNotAsked", format!("{why}."))
        }
        Some(why) => Observation::new(ConditionStatus::False, "HealthzRequestFailed", format!("{why}.")),
    }
}

/// `ControlPlaneHealthy`: the message names the first obstacle and the number of further obstacles.
pub(super) fn control_plane(inputs: &CareInputs) -> Observation {
    let mut codes = Vec::new();
    // Other parts fail where etcd refuses writes, so this cause is reported first.
    let mut broken: Vec<String> = inputs
        .etcds
        .iter()
        .filter_map(|etcd| Some(format!("Etcd {}: {}", etcd.name_any(), why_no_writes(etcd)?)))
        .collect();
    for name in REQUIRED {
        if !inputs.deployments.iter().any(|d| d.name_any() == name) {
            broken.push(format!("Deployment {name} is missing"));
        }
    }
    for deployment in &inputs.deployments {
        let name = deployment.name_any();
        if let Some(lack) = scaled_down(deployment).or_else(|| lacks(deployment)) {
            let report = inputs.pod_reports.get(&name).map(|report| format!(" ({report})"));
            broken.push(format!("Deployment {name}: {lack}{}", report.unwrap_or_default()));
        }
    }
    for name in REQUIRED_ETCDS {
        match inputs.etcds.iter().find(|e| e.name_any() == name) {
            None => broken.push(format!("Etcd {name} is missing")),
            Some(etcd) => {
                let status = etcd.status.as_ref();
                if status.and_then(|s| s.ready) != Some(true) {
                    let why = status.and_then(why_not_ready).map(|why| format!(": {why}"));
                    broken.push(format!("Etcd {name} is not ready{}", why.unwrap_or_default()));
                }
            }
        }
    }
    for extension in &inputs.extensions {
        if let Some(why) = explain_failure(extension) {
            codes.extend(extension.last_error.iter().flat_map(|e| e.codes.iter().copied()));
            broken.push(why);
        }
    }
    broken.extend(components::of_the_seed(inputs));
    let Some(first) = broken.first() else {
        return Observation::new(
            ConditionStatus::True,
            "ControlPlaneRunning",
            "All parts of the control plane are healthy.",
        );
    };
    let more = if broken.len() > 1 {
        format!(" (and {} more)", broken.len() - 1)
    } else {
        String::new()
    };
    codes.sort_unstable();
    codes.dedup();
    let message = format!("{}{more}.", first.trim_end_matches('.'));
    let is_full = |etcd: &Etcd| etcd.name_any() == REQUIRED_ETCDS[0] && why_no_writes(etcd).is_some();
    let reason = if inputs.etcds.iter().any(is_full) {
        ETCD_NO_SPACE
    } else {
        "ControlPlaneUnhealthy"
    };
    Observation {
        codes,
        ..Observation::new(ConditionStatus::False, reason, message)
    }
}

/// Why etcd refuses writes although etcd is ready.
fn why_no_writes(etcd: &Etcd) -> Option<&str> {
    let refuses = |c: &&EtcdCondition| c.type_ == "Ready" && c.reason == NO_SPACE;
    let conditions = &etcd.status.as_ref()?.conditions;
    conditions.iter().find(refuses).map(|c| c.message.as_str())
}

/// The last error, or the reason for keeping clients away on purpose.
fn why_not_ready(status: &EtcdStatus) -> Option<&str> {
    let fenced = |c: &&EtcdCondition| c.type_ == "Ready" && c.reason == "Fenced";
    let error = status.last_errors.first().map(|error| error.description.as_str());
    error.or_else(|| status.conditions.iter().find(fenced).map(|c| c.message.as_str()))
}

/// A required Deployment without pods, although the shoot is awake: `None` in all remaining cases. A move
/// scales Deployments down on purpose, and the report of the move replaces this sentence then.
fn scaled_down(deployment: &Deployment) -> Option<String> {
    let is_required = REQUIRED.contains(&deployment.name_any().as_str());
    let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    (is_required && replicas == Some(0)).then(|| "scaled to 0 replicas".into())
}

/// The shortage of a Deployment; `None`: all wanted pods are available. The condition `Available` does not
/// show a shortage: if the strategy allows the only pod to be unavailable, `Available` is always `True`.
pub(super) fn lacks(deployment: &Deployment) -> Option<String> {
    let status = deployment.status.as_ref();
    if status.and_then(|s| s.observed_generation) < deployment.metadata.generation {
        return Some("its last change has not been seen yet".into());
    }
    let wanted = deployment.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
    let available = status.and_then(|s| s.available_replicas).unwrap_or_default();
    (available < wanted).then(|| format!("{available} of {wanted} pods are available"))
}

/// An object is healthy while its provider works on the object, unless the provider reports an error.
fn explain_failure(extension: &Extension) -> Option<String> {
    let Extension {
        title,
        last_operation,
        last_error,
        ..
    } = extension;
    if let Some(error) = last_error {
        return Some(format!("{title} meets an error: {}", error.description));
    }
    match last_operation {
        None => Some(format!("{title} was not acted on yet")),
        Some(operation)
            if matches!(
                operation.state,
                LastOperationState::Error | LastOperationState::Failed
            ) =>
        {
            Some(format!("{title} failed: {}", operation.description))
        }
        Some(_) => None,
    }
}

/// `EveryNodeReady`.
pub(super) fn nodes(shoot: &Shoot, inputs: &CareInputs) -> Observation {
    if shoot.spec.provider.workers.is_empty() {
        return Observation::new(
            ConditionStatus::True,
            "NoWorkers",
            "The shoot has no worker pools.",
        );
    }
    let nodes = match &inputs.nodes {
        Ok(nodes) => nodes,
        Err(why) => return Observation::new(ConditionStatus::Unknown, "NodesUnknown", format!("{why}.")),
    };
    let wanted: i64 = shoot
        .spec
        .provider
        .workers
        .iter()
        .map(|w| i64::from(w.minimum))
        .sum();
    let there = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
    if there < wanted {
        let message = format!("{there} of at least {wanted} nodes have joined.");
        return Observation::new(ConditionStatus::False, "MissingNodes", message);
    }
    let unready = nodes.iter().filter(|node| !node.is_ready);
    let unready: Vec<_> = unready.map(|node| node.name.as_str()).collect();
    if unready.is_empty() {
        return Observation::new(ConditionStatus::True, "EveryNodeReady", "All nodes are ready.");
    }
    Observation::new(
        ConditionStatus::False,
        "NodeUnhealthy",
        format!("Not ready: {}.", names(&unready)),
    )
}

/// `ObservabilityComponentsHealthy`. No component exists that could fail, and the reason states that.
pub(super) fn observability() -> Observation {
    Observation::new(
        ConditionStatus::True,
        "NoObservabilityComponents",
        "This version deploys no monitoring and no logging for shoots.",
    )
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
