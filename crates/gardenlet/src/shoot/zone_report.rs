//! Reports the progress of a failover in condition `ZoneIsolation`. The network counts as closed only when
//! the provider of the SubnetIsolation has reported the end of the work.

use api::{
    constants::OPERATION,
    extensions::{DefaultStatus, ExtensionObject, SubnetIsolation, Worker},
    gardencore::Shoot,
    meta::LastOperationState as State,
};
use kube::ResourceExt;
use runtime::{Result, clock};

use super::{record::Record, zone_record};

/// Reports the state of the Worker.
///
/// # Errors
/// The garden does not answer.
pub(super) async fn worker(record: &Record<'_>, zone: &str, worker: &Worker) -> Result<()> {
    match report(worker.default_status()) {
        Some(report) => awaited(record, zone, &format!("Worker: {report}"))
            .await
            .map(drop),
        None => Ok(()),
    }
}

/// Reports the state of the SubnetIsolation, and once by an Event that the network is closed.
///
/// # Errors
/// The garden does not answer.
pub(super) async fn isolation(record: &Record<'_>, zone: &str, object: &SubnetIsolation) -> Result<()> {
    if object.spec.isolated_zone_id != zone {
        return Ok(());
    }
    let is_new = awaited(record, zone, &closing(object)).await?;
    if is_new && is_closed(object) {
        let note = format!("The network of zone {zone} is closed.");
        record.note("ZoneNetworkClosed", &note).await;
    }
    Ok(())
}

/// Reports the rest of the budget, with the last error of a flow where no provider is at work.
///
/// # Errors
/// The garden does not answer.
pub(super) async fn budget(record: &Record<'_>, zone: &str, shoot: &Shoot) -> Result<()> {
    let status = shoot.status.as_ref();
    let error = status.and_then(|status| status.last_errors.first());
    let report = error.map_or("", |error| error.description.as_str());
    awaited(record, zone, report).await.map(drop)
}

/// Whether the condition was written.
async fn awaited(record: &Record<'_>, zone: &str, report: &str) -> Result<bool> {
    let mut is_new = false;
    let written = record.write_if(|newest| {
        let patch = zone_record::awaited(newest, zone, report, &clock::now_k8s());
        is_new = patch.is_some();
        Ok(patch)
    });
    written.await?;
    Ok(is_new)
}

/// How far the closing of the network is.
fn closing(object: &SubnetIsolation) -> String {
    if object.metadata.deletion_timestamp.is_some() {
        return "SubnetIsolation: the former object is being deleted, and is made anew when gone".to_owned();
    }
    if is_closed(object) {
        return "SubnetIsolation: the network is closed".to_owned();
    }
    let report = report(object.default_status()).unwrap_or("no progress yet");
    format!("SubnetIsolation: the network is being closed, the provider reports: {report}")
}

/// Whether the provider has completed the last requested operation.
fn is_closed(object: &SubnetIsolation) -> bool {
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
}
