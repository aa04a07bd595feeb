//! Reports the progress of a failover in condition `ZoneIsolation`. The network counts as closed only when
//! the provider of the SubnetIsolation has confirmed the closed network. The report of a closed network names
//! an instance that hangs in the zone.

use api::{
    constants::{OPERATION, condition::ZONE_ISOLATION},
    extensions::{DefaultStatus, ExtensionObject, SubnetIsolation, Worker},
    gardencore::Shoot,
    meta::{LastOperationState as State, find_condition},
};
use kube::ResourceExt;
use runtime::{Result, clock};

use crate::{shoot::ownership::status_writer::StatusWriter, zone_isolation};

/// The report of a closed network begins with these words.
const CLOSED: &str = "SubnetIsolation: the network is closed";

/// Reports the state of the Worker.
///
/// # Errors
/// The garden does not answer.
pub(crate) async fn worker(status_writer: &StatusWriter<'_>, zone: &str, worker: &Worker) -> Result<()> {
    match report(worker.default_status()) {
        Some(report) => write_progress(status_writer, zone, &format!("Worker: {report}"))
            .await
            .map(drop),
        None => Ok(()),
    }
}

/// Reports the state of the SubnetIsolation, and by an Event that the network is closed.
///
/// # Errors
/// The garden does not answer.
pub(crate) async fn isolation(
    status_writer: &StatusWriter<'_>,
    zone: &str,
    object: &SubnetIsolation,
) -> Result<()> {
    if object.spec.isolated_zone_id != zone {
        return Ok(());
    }
    let report = closing(object);
    let former = write_progress(status_writer, zone, &report).await?;
    if former.is_some_and(|former| report.starts_with(CLOSED) && !former.contains(CLOSED)) {
        let note = format!("The network of zone {zone} is closed.");
        status_writer.note("ZoneNetworkClosed", &note).await;
    }
    Ok(())
}

/// Reports the rest of the budget, with the last error of a flow where no provider is at work.
///
/// # Errors
/// The garden does not answer.
pub(crate) async fn budget(status_writer: &StatusWriter<'_>, zone: &str, shoot: &Shoot) -> Result<()> {
    let status = shoot.status.as_ref();
    let error = status.and_then(|status| status.last_errors.first());
    let report = error.map_or("", |error| error.description.as_str());
    write_progress(status_writer, zone, report).await.map(drop)
}

/// Writes the condition. Returns the former message; `None` if the condition had this report already.
async fn write_progress(
    status_writer: &StatusWriter<'_>,
    zone: &str,
    report: &str,
) -> Result<Option<String>> {
    let mut former = None;
    let written = status_writer.write_if(|newest| {
        let patch = zone_isolation::zone_status::progress(newest, zone, report, &clock::now_k8s());
        former = patch.is_some().then(|| message(newest));
        Ok(patch)
    });
    written.await?;
    Ok(former)
}

fn message(shoot: &Shoot) -> String {
    let conditions = shoot.status.as_ref().map(|status| &status.conditions);
    let condition = conditions.and_then(|conditions| find_condition(conditions, ZONE_ISOLATION));
    condition.map_or_else(String::new, |condition| condition.message.clone())
}

/// How far the closing of the network is.
fn closing(object: &SubnetIsolation) -> String {
    if object.metadata.deletion_timestamp.is_some() {
        return "SubnetIsolation: the former object is being deleted, and is made anew when gone".to_owned();
    }
    if is_succeeded(object) {
        return CLOSED.to_owned();
    }
    let report = report(object.default_status()).unwrap_or("no progress yet");
    if object.is_network_closed() {
        return format!("{CLOSED}, the provider reports: {report}");
    }
    format!("SubnetIsolation: the network is being closed, the provider reports: {report}")
}

/// Whether the provider has completed the last requested operation.
fn is_succeeded(object: &SubnetIsolation) -> bool {
    let status = object.default_status();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let is_observed = status.and_then(|status| status.observed_generation) == object.metadata.generation;
    last.is_some_and(|last| last.state == State::Succeeded)
        && is_observed
        && !object.annotations().contains_key(OPERATION)
}

/// The last error of a provider, or the progress of the provider.
fn report(status: Option<&DefaultStatus>) -> Option<&str> {
    let error = status.and_then(|status| status.last_error.as_ref());
    let last = status.and_then(|status| status.last_operation.as_ref());
    let report = error
        .map(|error| &error.description)
        .or_else(|| Some(&last.filter(|last| last.state != State::Succeeded)?.description));
    report.map(String::as_str).filter(|report| !report.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn a_network_is_closed_when_its_provider_says_so() {
        let object = |generation: i64, observed: i64, state: &str, annotations: serde_json::Value| {
            let last = json!({"type": "Reconcile", "state": state, "progress": 1,
                "description": "machine m is left", "lastUpdateTime": "2026-01-01T00:00:00Z"});
            let status = json!({"observedGeneration": observed, "lastOperation": last});
            let object = json!({
                "metadata": {"name": "web", "generation": generation, "annotations": annotations},
                "spec": {"type": "metal", "region": "r", "isolatedZoneID": "z",
                    "secretRef": {"name": "s", "namespace": "n"}},
                "status": status,
            });
            serde_json::from_value::<SubnetIsolation>(object).unwrap()
        };
        let requested = json!({"gardener.cloud/operation": "reconcile"});
        for (generation, observed, state, annotations, is_closed) in [
            (1, 1, "Succeeded", json!({}), true),
            (2, 1, "Succeeded", json!({}), false),
            (1, 1, "Succeeded", requested, false),
            (1, 1, "Processing", json!({}), false),
        ] {
            let object = object(generation, observed, state, annotations);
            let text = closing(&object);
            assert_eq!(text.ends_with("the network is closed"), is_closed, "{text}");
            assert_eq!(text.contains("is being closed"), !is_closed, "{text}");
        }
        let text = closing(&object(1, 1, "Processing", json!({})));
        assert!(
            text.ends_with("the provider reports: machine m is left"),
            "{text}"
        );
    }

    /// RZ-32, RZ-34: an ACL closes the network, and an instance does not end.
    #[test]
    fn an_instance_that_hangs_is_named_beside_the_closed_network() {
        let object = |network_closed: bool| {
            let last = json!({"type": "Reconcile", "state": "Processing", "progress": 1,
                "description": "the network of zone a is closed, and the zone is not empty: machine m (i-1): shuts down",
                "lastUpdateTime": "2026-01-01T00:00:00Z"});
            let status = json!({"lastOperation": last, "providerStatus": {"networkClosed": network_closed}});
            let object = json!({
                "metadata": {"name": "web", "generation": 1},
                "spec": {"type": "metal", "region": "r", "isolatedZoneID": "z",
                    "secretRef": {"name": "s", "namespace": "n"}},
                "status": status,
            });
            serde_json::from_value::<SubnetIsolation>(object).unwrap()
        };
        let text = closing(&object(true));
        assert!(
            text.starts_with(CLOSED) && text.contains("machine m (i-1)"),
            "{text}"
        );
        assert!(!text.contains("is being closed"), "{text}");
        let text = closing(&object(false));
        assert!(text.contains("is being closed"), "{text}");
    }
}
