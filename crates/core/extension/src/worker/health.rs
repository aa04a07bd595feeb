//! Compares the machines of a deployment with the wanted state: names the machines that differ, the report of
//! the cloud, and the awaited events. Pure.

use api::{
    machine::{Machine, MachineDeployment},
    meta::ErrorCode,
};
use kube::ResourceExt;
use runtime::{Error, client::wait::WaitState};

/// Maximum machines in a sentence: the sentence ends in `lastErrors`.
const NAMED: usize = 5;

/// Whether all machines of a deployment are ready and from the newest template. `written`: the generation
/// that a write has returned, because a watch may begin with the state before the write.
#[must_use]
pub fn judge_deployment(deployment: Option<&MachineDeployment>, written: Option<i64>) -> WaitState {
    let Some(deployment) = deployment else {
        return WaitState::Wait("it does not exist".into());
    };
    let generation = deployment.metadata.generation;
    let status = deployment.status.clone().unwrap_or_default();
    if generation < written || status.observed_generation < generation {
        return WaitState::Wait("its last change has not been seen yet".into());
    }
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let [all, updated, available] = [
        status.replicas,
        status.updated_replicas,
        status.available_replicas,
    ]
    .map(Option::unwrap_or_default);
    if all == wanted && updated == wanted && available >= wanted {
        return WaitState::Done;
    }
    WaitState::Wait(format!(
        "of {wanted} machines {updated} are as wanted and {available} are ready, and there are {all}"
    ))
}

/// Adds the machines with failures or waits to an error. With an error code of the cloud, the class is
/// `Config`: a person has to change the account or the configuration.
#[must_use]
pub fn explained<'a>(error: Error, machines: impl IntoIterator<Item = &'a Machine>) -> Error {
    let mut troubles: Vec<_> = machines.into_iter().filter_map(trouble).collect();
    if troubles.is_empty() {
        return error;
    }
    // Failures come before waits.
    troubles.sort_by_key(|trouble| trouble.waits);
    let mut said: Vec<_> = troubles
        .iter()
        .take(NAMED)
        .map(|trouble| trouble.said.clone())
        .collect();
    if let Some(more) = troubles.len().checked_sub(NAMED).filter(|more| *more > 0) {
        said.push(format!("{more} more have trouble or wait"));
    }
    let mut codes: Vec<ErrorCode> = Vec::new();
    for code in troubles.iter().filter_map(|trouble| trouble.code) {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    let message = format!("{error}; {}", said.join("; "));
    match error {
        Error::NotReady { after, .. } if codes.is_empty() => Error::not_ready(after, message),
        Error::NotReady { .. } | Error::Transient(_) => Error::Config {
            codes,
            message: message.into(),
        },
        other => other,
    }
}

/// The problem of a machine.
struct Trouble {
    said: String,
    code: Option<ErrorCode>,
    waits: bool,
}

/// The problem of a machine, in the words of the cloud, or the awaited event of a machine that is created or
/// deleted. Examples are a Node that does not join, and a PodDisruptionBudget that blocks an eviction. A wait
/// has no code, because no operation has failed yet.
fn trouble(machine: &Machine) -> Option<Trouble> {
    let operation = machine.status.as_ref()?.last_operation.as_ref()?;
    let what = operation.type_.as_deref().unwrap_or("Operation");
    let why = operation.description.as_deref().unwrap_or("no reason is known");
    let name = machine.name_any();
    // A machine without an instance is being created: the cloud soon reports the result.
    let has_instance = machine
        .spec
        .provider_id
        .as_deref()
        .is_some_and(|id| !id.is_empty());
    match (operation.state.as_deref()?, what) {
        ("Failed", _) => Some(Trouble {
            said: format!("machine {name}: {what} failed: {why}"),
            code: operation.error_code.as_deref().and_then(code),
            waits: false,
        }),
        ("Processing", "Create") if !has_instance => None,
        ("Processing", "Create" | "Delete") => Some(Trouble {
            said: format!("machine {name}: {what} waits: {why}"),
            code: None,
            waits: true,
        }),
        _ => None,
    }
}

/// Maps a machine's error code to a code of `lastErrors`. Accepted are codes of the API, as
/// `ErrInfraQuotaExceeded` or as `ERR_INFRA_QUOTA_EXCEEDED`, and the codes of gRPC that denote the account or
/// the configuration. Further codes may be transient.
fn code(of_machine: &str) -> Option<ErrorCode> {
    let mut name = String::new();
    for letter in of_machine.chars() {
        if letter.is_uppercase() && name.ends_with(char::is_lowercase) {
            name.push('_');
        }
        name.push(letter);
    }
    let name = serde_json::Value::String(name.to_uppercase());
    if let Ok(known) = serde_json::from_value(name) {
        return Some(known);
    }
    match of_machine {
        "Unauthenticated" => Some(ErrorCode::ErrInfraUnauthenticated),
        "PermissionDenied" => Some(ErrorCode::ErrInfraUnauthorized),
        "ResourceExhausted" => Some(ErrorCode::ErrInfraResourcesDepleted),
        "FailedPrecondition" => Some(ErrorCode::ErrInfraDependencies),
        "InvalidArgument" | "OutOfRange" => Some(ErrorCode::ErrConfigurationProblem),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn is_done(observed: i64, counts: [i32; 3], written: i64) -> bool {
        let [all, updated, available] = counts;
        let deployment: MachineDeployment = serde_json::from_value(json!({
            "metadata": {"name": "d", "generation": 3}, "spec": {"replicas": 2, "template": {}},
            "status": {"observedGeneration": observed, "replicas": all, "updatedReplicas": updated, "availableReplicas": available},
        }))
        .unwrap();
        matches!(
            judge_deployment(Some(&deployment), Some(written)),
            WaitState::Done
        )
    }

    #[test]
    fn ready_means_that_only_wanted_machines_are_there_and_serve() {
        assert!(is_done(3, [2, 2, 2], 3));
        assert!(!is_done(2, [2, 2, 2], 3), "the change was not seen yet");
        assert!(!is_done(3, [2, 2, 2], 4), "what is seen is of before the write");
        assert!(!is_done(3, [3, 2, 2], 3), "an old machine is there");
        assert!(!is_done(3, [2, 1, 2], 3), "an old machine serves");
        assert!(!is_done(3, [2, 2, 1], 3), "one does not serve");
        assert!(matches!(judge_deployment(None, None), WaitState::Wait(_)));
    }

    fn machine(name: &str, code: Option<&str>) -> Machine {
        build_machine(name, "Create", "Failed", (None, "no", code))
    }

    fn build_machine(
        name: &str,
        what: &str,
        state: &str,
        (id, why, code): (Option<&str>, &str, Option<&str>),
    ) -> Machine {
        serde_json::from_value(json!({
            "metadata": {"name": name}, "spec": {"providerID": id},
            "status": {"lastOperation": {"type": what, "state": state, "description": why, "errorCode": code}},
        }))
        .unwrap()
    }

    #[test]
    fn the_sentence_names_machines_and_what_the_cloud_says() {
        let waits = || Error::not_ready(Duration::from_secs(5), "d is not ready");
        assert_eq!(explained(waits(), []), waits());
        let one = explained(waits(), [&machine("m-1", None)]);
        assert_eq!(one.to_string(), "d is not ready; machine m-1: Create failed: no");
        assert!(matches!(one, Error::NotReady { .. }));
        let refused = [
            machine("m-1", Some("Unauthenticated")),
            machine("m-2", Some("ERR_INFRA_QUOTA_EXCEEDED")),
            machine("m-3", Some("Unauthenticated")),
            machine("m-4", Some("ErrInfraQuotaExceeded")),
            machine("m-5", Some("DeadlineExceeded")),
        ];
        let codes = [
            ErrorCode::ErrInfraUnauthenticated,
            ErrorCode::ErrInfraQuotaExceeded,
        ];
        assert_eq!(explained(waits(), &refused).codes(), codes);
        let many: Vec<_> = (0..9).map(|n| machine(&format!("m-{n}"), None)).collect();
        assert!(
            explained(waits(), &many)
                .to_string()
                .ends_with("4 more have trouble or wait")
        );
    }

    /// A rolling update may be held up for hours by a budget, and a shoot by a Node that does not join.
    #[test]
    fn a_machine_that_waits_is_told_and_is_no_failure() {
        let budget =
            "pods leave its Node: default/web-0 (the PodDisruptionBudget web needs 1 healthy pods and has 1)";
        let joins = "the instance i-1 is there; its Node is awaited";
        let rows = [
            ("Delete", "Processing", Some("i-1"), budget, true),
            ("Delete", "Processing", None, budget, true),
            ("Create", "Processing", Some("i-1"), joins, true),
            ("Create", "Processing", None, "its instance is made", false),
            ("Create", "Processing", Some(""), "its instance is made", false),
            ("Create", "Successful", Some("i-1"), "its Node is ready", false),
            (
                "HealthCheck",
                "Processing",
                Some("i-1"),
                "its Node is not ready",
                false,
            ),
        ];
        for (what, state, id, why, is_told) in rows {
            let one = build_machine("m-1", what, state, (id, why, None));
            let error = explained(Error::not_ready(Duration::from_secs(5), "d"), [&one]);
            assert!(matches!(error, Error::NotReady { .. }), "{what} {state} {id:?}");
            let wanted = if is_told {
                format!("d; machine m-1: {what} waits: {why}")
            } else {
                "d".to_owned()
            };
            assert_eq!(error.to_string(), wanted, "{what} {state} {id:?}");
        }
    }

    #[test]
    fn what_failed_is_named_before_what_waits() {
        let waits = (0..NAMED).map(|n| {
            build_machine(
                &format!("w-{n}"),
                "Delete",
                "Processing",
                (None, "a budget", None),
            )
        });
        let all: Vec<_> = waits.chain([machine("f", Some("Unauthenticated"))]).collect();
        let told = explained(Error::not_ready(Duration::from_secs(5), "d"), &all);
        assert_eq!(told.codes(), [ErrorCode::ErrInfraUnauthenticated]);
        let told = told.to_string();
        assert!(
            told.starts_with("d; machine f: Create failed: no; machine w-0"),
            "{told}"
        );
        assert!(told.ends_with("1 more have trouble or wait"), "{told}");
    }
}
