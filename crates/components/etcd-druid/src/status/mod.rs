//! Computes the status of an Etcd from the specification, the observed objects and the errors. Pure: the same
//! input gives the same status. A status in which only times would differ stays unchanged, so that it is not
//! written.
//!
//! | file | content |
//! |---|---|
//! | `condition` | the conditions |
//! | `failure` | the obstacles, as codes and sentences for `status.lastErrors` of the Etcd |
//! | `fenced_etcd` | an etcd that is kept away from clients on purpose |
//! | `begun` | the data with which the epoch began |
//! | `volume_loss` | the restore of a lost volume |
//! | `past` | whether the etcd has had data |
//! | `copy` | the state of a copy of backups |

mod begun;
pub mod condition;
pub mod copy;
pub mod failure;
pub mod fenced_etcd;
pub mod past;
mod volume_loss;

#[cfg(test)]
mod fenced_etcd_tests;
#[cfg(test)]
mod tests;

use api::{
    druid::{Etcd, EtcdLastError, EtcdLastOperation, EtcdMemberStatus, EtcdStatus},
    meta::CrossVersionObjectReference,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use runtime::Error;
use sidecar_protocol::SidecarOwnership;

use self::{
    condition::{Basis, conditions, is_pod_ready, ready_members},
    copy::is_complete,
    failure::Failure,
};
use crate::{
    containers::statuses,
    names::{self, BACKUP_CONTAINER, DRUID_MIGRATING, INITIALIZE_CONTAINER, MEMBER_COMPONENT},
    observed::Observed,
    sidecar,
};

/// The status of an Etcd that should exist. `outcome`: the result of applying its objects.
#[must_use]
pub fn compute(etcd: &Etcd, outcome: Result<(), &Error>, observed: &Observed, now: &Time) -> EtcdStatus {
    let before = etcd.status.clone().unwrap_or_default();
    let copies = etcd.spec.backup.source_store.is_some();
    let replicas = etcd.spec.replicas;
    let applied = outcome.is_ok();
    let ready = applied
        && if copies {
            observed.job.as_ref().is_some_and(is_complete)
        } else {
            is_rolled_out(replicas, observed)
        };
    let set = observed.stateful_set.as_ref();
    let set_status = set.and_then(|set| set.status.as_ref());
    let begun = begun::newest(&observed.members, before.begun);
    let epoch = begun.as_ref().map(|begun| begun.epoch);
    let volume_loss = volume_loss::newest(&observed.members, before.volume_loss, epoch, now);
    let basis = Basis {
        replicas,
        backup: &etcd.spec.backup,
        quota: etcd.spec.etcd.quota.as_ref(),
        copies,
        migrating: etcd
            .annotations()
            .get(DRUID_MIGRATING)
            .is_some_and(|value| value == "true"),
        observed,
        volume_loss: volume_loss.as_ref(),
    };
    let mut failures = failures(etcd, outcome, observed, ready, &before.last_errors);
    failures.extend(basis.no_space().map(failure::of_no_space));
    EtcdStatus {
        observed_generation: if applied {
            etcd.metadata.generation
        } else {
            before.observed_generation
        },
        etcd: set.map(|set| CrossVersionObjectReference {
            api_version: Some("apps/v1".to_owned()),
            kind: "StatefulSet".to_owned(),
            name: set.name_any(),
        }),
        conditions: conditions(basis, &before.conditions, now),
        last_operation: Some(last_operation(etcd, ready, copies, basis.fence(), &failures, now)),
        last_errors: date_failures(failures, &before.last_errors, now),
        current_replicas: Some(set_status.and_then(|s| s.current_replicas).unwrap_or(0)),
        replicas: Some(set_status.map_or(0, |s| s.replicas)),
        ready_replicas: Some(ready_members(observed)),
        ready: Some(ready),
        label_selector: None,
        selector: Some(selector(etcd)),
        members: members(observed, &before.members, now),
        peer_url_tls_enabled: Some(false),
        bootstrap_with_existing_cluster: None,
        // The pods of the copy may be collected before its Job.
        copied: copy::read_chain(&observed.copies)
            .or(before.copied)
            .filter(|_| copies),
        copying: observed.copying.or(before.copying).filter(|_| copies),
        // A destination needs the last report of a process that does not answer any more.
        owner_check: observed
            .ownership
            .as_ref()
            .and_then(sidecar::reported_check)
            .or(before.owner_check)
            .filter(|_| etcd.spec.backup.owner_check.is_some()),
        begun,
        volume_loss,
    }
}

/// The status of an Etcd that is being deleted.
#[must_use]
pub fn deleting(etcd: &Etcd, error: Option<&Error>, remains: Option<&str>, now: &Time) -> EtcdStatus {
    let before = etcd.status.clone().unwrap_or_default();
    let failures = error.map(failure::of_error).unwrap_or_default();
    let state = if failures.is_empty() {
        "Processing"
    } else {
        "Error"
    };
    let description = remains.map_or_else(
        || "Everything that was made for the Etcd is gone.".to_owned(),
        |remains| format!("Waiting until these are gone: {remains}."),
    );
    EtcdStatus {
        ready: Some(false),
        last_operation: Some(operation(etcd, "Delete", state, description, now)),
        last_errors: date_failures(failures, &before.last_errors, now),
        ..before
    }
}

/// Whether exactly the wanted members run, of the newest revision, and are ready.
fn is_rolled_out(replicas: i32, observed: &Observed) -> bool {
    let Some(status) = observed.stateful_set.as_ref().and_then(|set| set.status.as_ref()) else {
        return false;
    };
    observed.outdated.as_ref().is_some_and(Vec::is_empty)
        && status.replicas == replicas
        && is_count(&observed.members, replicas)
        && ready_members(observed) == replicas
}

fn is_count<T>(items: &[T], wanted: i32) -> bool {
    i32::try_from(items.len()) == Ok(wanted)
}

/// The current obstacles. The last error of a container stays until its work succeeds: the pod with the error
/// may have been replaced by a pod that has not reported yet (see [`crate::retry`]).
fn failures(
    etcd: &Etcd,
    outcome: Result<(), &Error>,
    observed: &Observed,
    ready: bool,
    before: &[EtcdLastError],
) -> Vec<Failure> {
    let mut failures = outcome.err().map(failure::of_error).unwrap_or_default();
    failures.extend(observed.sidecar.as_ref().and_then(failure::of_sidecar));
    let copies = etcd.spec.backup.source_store.is_some();
    if ready || (!copies && etcd.spec.replicas == 0) {
        return failures;
    }
    let (pods, container) = if copies {
        (&observed.copies, BACKUP_CONTAINER)
    } else {
        (&observed.members, INITIALIZE_CONTAINER)
    };
    let now = if observed.ownership.as_ref().is_some_and(SidecarOwnership::fences) {
        failure::of_pods(&fenced_etcd::without_told_etcd(pods))
    } else {
        failure::of_pods(pods)
    };
    if now.is_empty() && !has_succeeded(observed, container) {
        let said = before
            .iter()
            .filter(|error| error.description.starts_with(&format!("{container}: ")));
        failures.extend(said.map(|e| Failure {
            code: e.code.clone(),
            description: e.description.clone(),
        }));
    }
    failures.extend(now);
    failures
}

fn has_succeeded(observed: &Observed, container: &str) -> bool {
    observed
        .members
        .iter()
        .flat_map(statuses)
        .filter(|status| status.name == container)
        .any(|status| {
            let ended = status.state.as_ref().and_then(|state| state.terminated.as_ref());
            ended.is_some_and(|ended| ended.exit_code == 0)
        })
}

/// The errors of the status. An error keeps the time of the first observation.
fn date_failures(failures: Vec<Failure>, before: &[EtcdLastError], now: &Time) -> Vec<EtcdLastError> {
    let since = |failure: &Failure| {
        let old = before
            .iter()
            .find(|old| old.code == failure.code && old.description == failure.description);
        old.map_or_else(|| now.clone(), |old| old.observed_at.clone())
    };
    failures
        .into_iter()
        .map(|failure| EtcdLastError {
            observed_at: since(&failure),
            code: failure.code,
            description: failure.description,
        })
        .collect()
}

fn last_operation(
    etcd: &Etcd,
    ready: bool,
    copies: bool,
    fence: Option<&SidecarOwnership>,
    failures: &[Failure],
    now: &Time,
) -> EtcdLastOperation {
    let before = etcd
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let created =
        before.is_some_and(|b| b.type_ == "Reconcile" || b.type_ == "Create" && b.state == "Succeeded");
    let this_generation = before.is_some_and(|b| b.run_id == run_id(etcd));
    // A finished creation remains a creation until the specification changes; the change is a reconciliation.
    let still_created = ready && this_generation && before.is_some_and(|b| b.type_ == "Create");
    let type_ = if created && !still_created {
        "Reconcile"
    } else {
        "Create"
    };
    let (state, description) = match (failures.first(), ready) {
        (Some(failure), false) => ("Error", failure.description.clone()),
        (_, true) if copies => (
            "Succeeded",
            "All snapshots of the source are in the store.".to_owned(),
        ),
        (_, true) if etcd.spec.replicas == 0 => ("Succeeded", "etcd is stopped.".to_owned()),
        (_, true) => ("Succeeded", "etcd runs as specified.".to_owned()),
        (None, false) if copies => ("Processing", "Copying backups.".to_owned()),
        (None, false) => match fence {
            // The controller has no further work for this etcd.
            Some(fence) if fence.is_lost() => ("Succeeded", fenced_etcd::describe(fence)),
            Some(fence) => ("Processing", fenced_etcd::describe(fence)),
            None => ("Processing", "Waiting until etcd runs as specified.".to_owned()),
        },
    };
    operation(etcd, type_, state, description, now)
}

fn operation(etcd: &Etcd, type_: &str, state: &str, description: String, now: &Time) -> EtcdLastOperation {
    let operation = EtcdLastOperation {
        type_: type_.to_owned(),
        state: state.to_owned(),
        description,
        run_id: run_id(etcd),
        last_update_time: now.clone(),
    };
    let before = etcd
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let unchanged = before.filter(|b| {
        EtcdLastOperation {
            last_update_time: now.clone(),
            ..(*b).clone()
        } == operation
    });
    unchanged.cloned().unwrap_or(operation)
}

/// A run is the work on a single generation of the specification.
fn run_id(etcd: &Etcd) -> String {
    etcd.metadata.generation.unwrap_or_default().to_string()
}

fn selector(etcd: &Etcd) -> String {
    let labels = names::labels(&etcd.name_any(), MEMBER_COMPONENT);
    labels
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(",")
}

fn members(observed: &Observed, before: &[EtcdMemberStatus], now: &Time) -> Vec<EtcdMemberStatus> {
    let of = |pod: &k8s_openapi::api::core::v1::Pod| {
        let name = pod.name_any();
        let (status, reason) = if is_pod_ready(pod) {
            ("Ready", "PodReady")
        } else {
            ("NotReady", "PodNotReady")
        };
        let old = before.iter().find(|old| old.name == name && old.status == status);
        EtcdMemberStatus {
            id: None,
            role: is_pod_ready(pod).then(|| "Leader".to_owned()),
            status: status.to_owned(),
            reason: reason.to_owned(),
            last_transition_time: old.map_or_else(|| now.clone(), |old| old.last_transition_time.clone()),
            name,
        }
    };
    observed.members.iter().map(of).collect()
}
