//! Whether the machines of a deployment are as wanted, and if not, which are not and what the cloud says. Pure.

use api::{
    machine::{Machine, MachineDeployment},
    meta::ErrorCode,
};
use kube::ResourceExt;
use runtime::{Error, wait::Look};

/// Machines that a sentence names at most: it ends in `lastErrors`.
const NAMED: usize = 5;

/// Whether all machines of a deployment are from its newest template and ready. `written`: the generation that a write has
/// returned, since a watch may begin with what was there before it.
#[must_use]
pub fn look(deployment: Option<&MachineDeployment>, written: Option<i64>) -> Look {
    let Some(deployment) = deployment else {
        return Look::Wait("it does not exist".into());
    };
    let generation = deployment.metadata.generation;
    let status = deployment.status.clone().unwrap_or_default();
    if generation < written || status.observed_generation < generation {
        return Look::Wait("its last change has not been seen yet".into());
    }
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let [all, updated, available] = [
        status.replicas,
        status.updated_replicas,
        status.available_replicas,
    ]
    .map(Option::unwrap_or_default);
    if all == wanted && updated == wanted && available >= wanted {
        return Look::Done;
    }
    Look::Wait(format!(
        "of {wanted} machines {updated} are as wanted and {available} are ready, and there are {all}"
    ))
}

/// Adds to an error which machines have trouble. Where the cloud gave a code for it, someone has to change something there.
#[must_use]
pub fn explained<'a>(error: Error, machines: impl IntoIterator<Item = &'a Machine>) -> Error {
    let troubles: Vec<_> = machines.into_iter().filter_map(trouble).collect();
    if troubles.is_empty() {
        return error;
    }
    let mut said: Vec<_> = troubles
        .iter()
        .take(NAMED)
        .map(|(said, _)| said.clone())
        .collect();
    if let Some(more) = troubles.len().checked_sub(NAMED).filter(|more| *more > 0) {
        said.push(format!("{more} more have trouble"));
    }
    let mut codes: Vec<ErrorCode> = Vec::new();
    for code in troubles.iter().filter_map(|(_, code)| *code) {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    let message = format!("{error}; {}", said.join("; "));
    match error {
        Error::NotReady { after, .. } if codes.is_empty() => Error::not_ready(after, message),
        Error::NotReady { .. } | Error::Transient(_) => Error::Config { codes, message },
        other => other,
    }
}

/// What is wrong with a machine, in the words of the cloud.
fn trouble(machine: &Machine) -> Option<(String, Option<ErrorCode>)> {
    let operation = machine.status.as_ref()?.last_operation.as_ref()?;
    if operation.state.as_deref() != Some("Failed") {
        return None;
    }
    let what = operation.type_.as_deref().unwrap_or("Operation");
    let why = operation.description.as_deref().unwrap_or("no reason is known");
    let code = operation.error_code.as_deref().and_then(code);
    Some((
        format!("machine {}: {what} failed: {why}", machine.name_any()),
        code,
    ))
}

/// What a machine's error code is called in `lastErrors`: that of the API itself, as `ErrInfraQuotaExceeded` or as
/// `ERR_INFRA_QUOTA_EXCEEDED`, or one of the codes of gRPC that stand for the account or the configuration. Others may pass.
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
        matches!(look(Some(&deployment), Some(written)), Look::Done)
    }

    #[test]
    fn ready_means_that_only_wanted_machines_are_there_and_serve() {
        assert!(is_done(3, [2, 2, 2], 3));
        assert!(!is_done(2, [2, 2, 2], 3), "the change was not seen yet");
        assert!(!is_done(3, [2, 2, 2], 4), "what is seen is of before the write");
        assert!(!is_done(3, [3, 2, 2], 3), "an old machine is there");
        assert!(!is_done(3, [2, 1, 2], 3), "an old machine serves");
        assert!(!is_done(3, [2, 2, 1], 3), "one does not serve");
        assert!(matches!(look(None, None), Look::Wait(_)));
    }

    fn machine(name: &str, code: Option<&str>) -> Machine {
        serde_json::from_value(json!({
            "metadata": {"name": name}, "spec": {},
            "status": {"lastOperation": {"type": "Create", "state": "Failed", "description": "no", "errorCode": code}},
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
                .ends_with("4 more have trouble")
        );
    }
}
