//! Waiting for an Etcd, by what etcd-druid says of it.

use api::{constants::condition::NO_SPACE, druid::Etcd};
use kube::ResourceExt;
use runtime::{Error, Result, wait, wait::Look};

use crate::{Stay, Wait, etcd_owner};

impl Stay {
    /// Waits until druid says that the Etcd is as specified (or that all was copied).
    pub(crate) async fn wait_until_etcd(
        &self,
        name: &str,
        limits: Wait,
        is_there: fn(Option<&Etcd>) -> Look,
    ) -> Result<()> {
        let api = self.etcds();
        let first = wait::until(&api, name, limits.severe, is_there).await;
        if first.is_ok() {
            return Ok(());
        }
        // Errors that are still there now are not going away by themselves.
        let rest = limits.timeout.saturating_sub(limits.severe);
        let failed = |etcd: &Etcd| etcd_owner::sealed(etcd).or_else(|| last_error(etcd));
        let look = |etcd: Option<&Etcd>| match (is_there(etcd), etcd.and_then(failed)) {
            (Look::Wait(_), Some(error)) => Look::Fail(error),
            (other, _) => other,
        };
        wait::until(&api, name, rest, look).await.map(|_| ())
    }
}

/// Ready as druid saw it after the last change.
pub(crate) fn look_ready(etcd: Option<&Etcd>) -> Look {
    let Some(etcd) = etcd else {
        return Look::Wait("it does not exist".into());
    };
    let Some(status) = &etcd.status else {
        return Look::Wait("etcd-druid has not answered yet".into());
    };
    if status.observed_generation != etcd.metadata.generation {
        return Look::Wait("etcd-druid has not seen the last change yet".into());
    }
    match (status.ready, last_error(etcd)) {
        // The etcd without backups holds Events, without which the shoot is served.
        (Some(true), Some(error)) if refuses_writes(etcd) && etcd.spec.backup.store.is_some() => {
            Look::Wait(error.to_string())
        }
        (Some(true), _) => Look::Done,
        (_, Some(error)) => Look::Wait(error.to_string()),
        _ => Look::Wait(
            etcd_owner::fenced(etcd)
                .unwrap_or("its member is not ready")
                .to_owned(),
        ),
    }
}

/// The same, or kept away from clients for ever: then it has nothing left to do but its final snapshot, and
/// that does not wait for it to be ready (R17-53). A final snapshot needs no room below the quota either, and
/// the restore makes room.
pub(crate) fn look_migrating(etcd: Option<&Etcd>) -> Look {
    let is_enough =
        |etcd: &Etcd| etcd_owner::lost(etcd).is_some() || (is_ready(etcd) && refuses_writes(etcd));
    match look_ready(etcd) {
        Look::Wait(_) if etcd.is_some_and(is_enough) => Look::Done,
        look => look,
    }
}

fn is_ready(etcd: &Etcd) -> bool {
    let status = etcd.status.as_ref();
    status.is_some_and(|s| s.ready == Some(true) && s.observed_generation == etcd.metadata.generation)
}

/// Whether alarm NOSPACE is raised.
fn refuses_writes(etcd: &Etcd) -> bool {
    let conditions = etcd.status.iter().flat_map(|status| &status.conditions);
    conditions
        .into_iter()
        .any(|c| c.type_ == "Ready" && c.reason == NO_SPACE)
}

/// What druid, or the sidecar through it, says that went wrong. A code that an operator knows becomes one.
fn last_error(etcd: &Etcd) -> Option<Error> {
    let errors = &etcd.status.as_ref()?.last_errors;
    if errors.is_empty() {
        return None;
    }
    let codes: Vec<_> = errors
        .iter()
        .filter_map(|error| serde_json::from_value(serde_json::json!(error.code)).ok())
        .collect();
    let sentences: Vec<_> = errors
        .iter()
        .map(|error| format!("{} ({})", error.description, error.code))
        .collect();
    let message = format!("Etcd {}: {}", etcd.name_any(), sentences.join("; "));
    Some(if codes.is_empty() {
        Error::Transient(message)
    } else {
        Error::Config { codes, message }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use api::{
        druid::{EtcdSpec, StoreSpec},
        meta::ErrorCode,
    };
    use serde_json::json;

    use super::*;

    fn etcd(status: &serde_json::Value) -> Etcd {
        let mut etcd = Etcd::new("etcd-main", EtcdSpec::default());
        etcd.metadata.generation = Some(2);
        etcd.status = Some(serde_json::from_value(status.clone()).unwrap());
        etcd
    }

    #[test]
    fn ready_counts_only_for_the_last_change() {
        assert!(matches!(
            look_ready(Some(&etcd(&json!({"observedGeneration": 2, "ready": true})))),
            Look::Done
        ));
        assert!(matches!(
            look_ready(Some(&etcd(&json!({"observedGeneration": 1, "ready": true})))),
            Look::Wait(_)
        ));
        assert!(matches!(look_ready(None), Look::Wait(_)));
    }

    /// R17-53: 503 is what a lost etcd answers by design, and a move that is tried again does not wait for anything else.
    #[test]
    fn a_move_does_not_wait_for_an_etcd_that_is_kept_from_clients_for_ever() {
        let fenced = |verified: &str, checked: bool| {
            let condition = |type_: &str, status: &str, reason: &str| {
                json!({"type": type_, "status": status, "reason": reason, "message": "another seed has it",
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
            };
            let conditions = [
                condition("Ready", "False", "Fenced"),
                condition("OwnershipVerified", verified, "Lost"),
            ];
            let mut etcd = etcd(&json!({"observedGeneration": 2, "ready": false, "conditions": conditions}));
            etcd.spec.backup.owner_check = checked.then(api::druid::OwnerCheckSpec::default);
            etcd
        };
        assert!(matches!(look_migrating(Some(&fenced("False", true))), Look::Done));
        // Whoever wants it to serve waits, and is told why.
        let Look::Wait(why) = look_ready(Some(&fenced("False", true))) else {
            panic!("it is not ready");
        };
        assert_eq!(why, "another seed has it");
        for (verified, checked) in [("Unknown", true), ("True", true), ("False", false)] {
            let look = look_migrating(Some(&fenced(verified, checked)));
            assert!(matches!(look, Look::Wait(_)), "{verified} {checked}");
        }
        assert!(matches!(look_migrating(None), Look::Wait(_)));
    }

    /// A move needs the final snapshot alone. Flows that need the API wait, and report the cause instead of a
    /// timeout.
    #[test]
    fn a_flow_waits_for_an_etcd_main_that_refuses_writes_and_a_move_does_not() {
        let full = |name: &str, generation: i64| {
            let status = json!({
                "observedGeneration": generation, "ready": true,
                "lastErrors": [{"code": "ERR_RETRYABLE_CONFIGURATION_PROBLEM",
                    "description": "etcd refuses writes", "observedAt": "2026-01-01T00:00:00Z"}],
                "conditions": [{"type": "Ready", "status": "False", "reason": "NoSpace", "message": "etcd refuses writes",
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}],
            });
            let mut etcd = etcd(&status);
            etcd.metadata.name = Some(name.to_owned());
            etcd.spec.backup.store = (name == "etcd-main").then(StoreSpec::default);
            etcd
        };
        let Look::Wait(why) = look_ready(Some(&full("etcd-main", 2))) else {
            panic!("kube-apiserver cannot write");
        };
        assert!(why.contains("etcd refuses writes"), "{why}");
        assert!(matches!(look_migrating(Some(&full("etcd-main", 2))), Look::Done));
        assert!(matches!(
            look_migrating(Some(&full("etcd-main", 1))),
            Look::Wait(_)
        ));
        assert!(matches!(look_ready(Some(&full("etcd-events", 2))), Look::Done));
    }

    #[test]
    fn an_error_keeps_its_code_and_sentence() {
        let failing = etcd(&json!({"lastErrors": [{"code": "ERR_INFRA_UNAUTHENTICATED",
            "description": "the bucket refuses the credentials", "observedAt": "2026-01-01T00:00:00Z"}]}));
        let error = last_error(&failing).unwrap();
        assert_eq!(error.codes(), [ErrorCode::ErrInfraUnauthenticated]);
        assert_eq!(
            error.to_string(),
            "Etcd etcd-main: the bucket refuses the credentials (ERR_INFRA_UNAUTHENTICATED)"
        );
    }
}
