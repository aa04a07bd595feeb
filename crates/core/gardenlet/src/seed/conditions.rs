//! Computes the conditions of a Seed: pure decisions.

use api::{
    constants::{
        EMERGENCY_STOP,
        condition::{
            BACKUP_BUCKETS_READY, EDGE_ADDRESS_READY, EMERGENCY_STOP_SHOOT_RECONCILIATIONS, GARDENLET_READY,
            SEED_SYSTEM_COMPONENTS_HEALTHY,
        },
    },
    gardencore::{BackupBucket, Seed},
    meta::{Condition, ConditionStatus, LastOperationState},
};
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Service},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt as _;
use parts::KubeApiserverExposure;

use crate::config::Component;

/// A Deployment that the seed needs, with the object if the Deployment exists.
pub(super) type ComponentDeployment = (Component, Option<Deployment>);

/// `GardenletReady`. `None` while the Lease is not renewed: then garden-controller-manager writes the
/// condition.
pub(super) fn gardenlet(renewed: bool, now: Time) -> Option<Condition> {
    renewed.then(|| {
        Condition::new(
            GARDENLET_READY,
            ConditionStatus::True,
            "GardenletReady",
            "The gardenlet renews the seed's Lease and reaches the seed.",
            now,
        )
    })
}

/// `EmergencyStopShootReconciliations`, as in Gardener: `True` during the stop, and absent otherwise.
pub(super) fn emergency_stop(seed: &Seed, now: Time) -> Option<Condition> {
    placement::pause::is_stopped(seed.annotations()).then(|| {
        let message = format!(
            "The annotation {EMERGENCY_STOP} holds back new reconciliations and moves of the Shoots of this seed. Remove the \
             annotation to resume."
        );
        Condition::new(
            EMERGENCY_STOP_SHOOT_RECONCILIATIONS,
            ConditionStatus::True,
            "EmergencyStop",
            &message,
            now,
        )
    })
}

/// `SeedSystemComponentsHealthy`. Shoots move to this seed because of the condition, so the condition is not
/// `True` without any checked Deployment.
pub(super) fn system_components(found: &[ComponentDeployment], now: Time) -> Condition {
    if found.is_empty() {
        return Condition::new(
            SEED_SYSTEM_COMPONENTS_HEALTHY,
            ConditionStatus::Unknown,
            "NoSystemComponents",
            "The gardenlet was told no system components: name etcd-druid, the providers and the front (--system-component).",
            now,
        );
    }
    let broken: Vec<String> = found
        .iter()
        .filter_map(|(component, deployment)| explain_unavailable(component, deployment.as_ref()))
        .collect();
    if broken.is_empty() {
        let message = "All system components are available.";
        return Condition::new(
            SEED_SYSTEM_COMPONENTS_HEALTHY,
            ConditionStatus::True,
            "SystemComponentsRunning",
            message,
            now,
        );
    }
    let message = format!("{}.", broken.join("; "));
    Condition::new(
        SEED_SYSTEM_COMPONENTS_HEALTHY,
        ConditionStatus::False,
        "SystemComponentsUnhealthy",
        &message,
        now,
    )
}

fn explain_unavailable(component: &Component, deployment: Option<&Deployment>) -> Option<String> {
    let Component { namespace, name } = component;
    let Some(deployment) = deployment else {
        return Some(format!(
            "Deployment {namespace}/{name} does not exist: install the seed chart"
        ));
    };
    // Kubernetes calls a Deployment available that wants no pods and has none.
    if deployment.spec.as_ref().and_then(|s| s.replicas) == Some(0) {
        return Some(format!("Deployment {namespace}/{name} is scaled to 0"));
    }
    let conditions = deployment
        .status
        .as_ref()
        .and_then(|s| s.conditions.as_deref())
        .unwrap_or_default();
    match conditions.iter().find(|c| c.type_ == "Available") {
        Some(available) if available.status == "True" => None,
        Some(available) => {
            let why = available
                .message
                .as_deref()
                .unwrap_or("no reason is given")
                .trim_end_matches('.');
            Some(format!("Deployment {namespace}/{name} is not available: {why}"))
        }
        None => Some(format!("Deployment {namespace}/{name} has not started yet")),
    }
}

/// `EdgeAddressReady`. Without an address no DNS record of a shoot can be written, so a shoot that moves to
/// the seed has no API. `name`: namespace and name of the Service.
pub(super) fn edge_address(name: &str, service: Option<&Service>, now: Time) -> Condition {
    let (status, reason, message) = match (service, service.and_then(KubeApiserverExposure::edge_address)) {
        (_, Some(address)) => (
            ConditionStatus::True,
            "EdgeAddressKnown",
            format!("Service {name} of the edge has address {address}."),
        ),
        (None, None) => (
            ConditionStatus::False,
            "EdgeServiceMissing",
            format!("Service {name} of the edge does not exist: install the seed chart."),
        ),
        (Some(_), None) => (
            ConditionStatus::False,
            "EdgeWithoutAddress",
            format!(
                "Service {name} of the edge has no address in status.loadBalancer: fix the load balancer, or write the \
                 address into the status in a seed without load balancers."
            ),
        ),
    };
    Condition::new(EDGE_ADDRESS_READY, status, reason, &message, now)
}

/// `BackupBucketsReady`; `None` for a seed without backup.
pub(super) fn backup_bucket(seed: &Seed, bucket: Option<&BackupBucket>, now: Time) -> Option<Condition> {
    seed.spec.backup.as_ref()?;
    let status = bucket.and_then(|b| b.status.as_ref());
    let (ready, reason, message) = match (status.and_then(|s| s.last_error.as_ref()), status) {
        (Some(error), _) => (
            ConditionStatus::False,
            "BackupBucketError",
            format!("The BackupBucket meets an error: {}", error.description),
        ),
        (None, Some(status))
            if status
                .last_operation
                .as_ref()
                .is_some_and(|o| o.state == LastOperationState::Succeeded) =>
        {
            (
                ConditionStatus::True,
                "BackupBucketsAvailable",
                "The BackupBucket is available.".to_owned(),
            )
        }
        _ => (
            ConditionStatus::Progressing,
            "BackupBucketProgressing",
            if bucket.is_some() {
                "The BackupBucket is being made.".to_owned()
            } else {
                "garden-controller-manager has not created the BackupBucket of the Seed yet.".to_owned()
            },
        ),
    };
    let mut condition = Condition::new(BACKUP_BUCKETS_READY, ready, reason, &message, now);
    condition.codes = status
        .and_then(|s| s.last_error.as_ref())
        .map(|e| e.codes.clone())
        .unwrap_or_default();
    Some(condition)
}

#[cfg(test)]
#[path = "conditions_tests.rs"]
mod tests;
