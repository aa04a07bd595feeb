//! Waits for an Etcd, based on the status that etcd-druid reports.

use api::druid::Etcd;
use kube::ResourceExt;
use runtime::{
    Error, Result,
    client::wait::{self, WaitState},
};

use crate::{Residency, Wait, etcd::owner};

impl Residency {
    /// Waits until etcd-druid reports that the Etcd is as specified (or that the copy is complete).
    pub(crate) async fn wait_until_etcd(
        &self,
        name: &str,
        limits: Wait,
        is_there: fn(Option<&Etcd>) -> WaitState,
    ) -> Result<()> {
        let api = self.etcds();
        let first = wait::until(&api, name, limits.severe, is_there).await;
        if first.is_ok() {
            return Ok(());
        }
        // Errors that remain after the first wait do not disappear without a user.
        let rest = limits.timeout.saturating_sub(limits.severe);
        let failed = |etcd: &Etcd| owner::sealed_error(etcd).or_else(|| last_error(etcd));
        let look = |etcd: Option<&Etcd>| match (is_there(etcd), etcd.and_then(failed)) {
            (WaitState::Wait(_), Some(error)) => WaitState::Fail(error),
            (other, _) => other,
        };
        wait::until(&api, name, rest, look).await.map(|_| ())
    }
}

/// Done when etcd-druid reports readiness after the last change. An etcd that refuses writes (alarm NOSPACE)
/// counts as ready: the remedy is to delete objects, which needs kube-apiserver. `ControlPlaneHealthy`
/// reports the cause.
pub(crate) fn look_ready(etcd: Option<&Etcd>) -> WaitState {
    let Some(etcd) = etcd else {
        return WaitState::Wait("it does not exist".into());
    };
    let Some(status) = &etcd.status else {
        return WaitState::Wait("etcd-druid has not answered yet".into());
    };
    if status.observed_generation != etcd.metadata.generation {
        return WaitState::Wait("etcd-druid has not seen the last change yet".into());
    }
    match (status.ready, last_error(etcd)) {
        (Some(true), _) => WaitState::Done,
        (_, Some(error)) => WaitState::Wait(error.to_string()),
        _ => WaitState::Wait(
            owner::fence_reason(etcd)
                .unwrap_or("its member is not ready")
                .to_owned(),
        ),
    }
}

/// Like [`look_ready`]; also done for an etcd that refuses clients for ever. Such an etcd only has to take
/// the final snapshot, which does not wait for readiness (R17-53).
pub(crate) fn look_migrating(etcd: Option<&Etcd>) -> WaitState {
    match look_ready(etcd) {
        WaitState::Wait(_) if etcd.and_then(owner::loss_reason).is_some() => WaitState::Done,
        look => look,
    }
}

/// The errors that etcd-druid reports, also on behalf of etcd-backup-restore. Known error codes are kept.
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
        Error::transient(message)
    } else {
        Error::Config {
            codes,
            message: message.into(),
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use api::{
        constants::condition::NO_SPACE,
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
            WaitState::Done
        ));
        assert!(matches!(
            look_ready(Some(&etcd(&json!({"observedGeneration": 1, "ready": true})))),
            WaitState::Wait(_)
        ));
        assert!(matches!(look_ready(None), WaitState::Wait(_)));
    }

    /// R17-53: a lost etcd answers 503 by design, and a repeated move waits for no further report.
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
        assert!(matches!(
            look_migrating(Some(&fenced("False", true))),
            WaitState::Done
        ));
        // A flow that needs a serving etcd waits and reports the reason.
        let WaitState::Wait(why) = look_ready(Some(&fenced("False", true))) else {
            panic!("it is not ready");
        };
        assert_eq!(why, "another seed has it");
        for (verified, checked) in [("Unknown", true), ("True", true), ("False", false)] {
            let look = look_migrating(Some(&fenced(verified, checked)));
            assert!(matches!(look, WaitState::Wait(_)), "{verified} {checked}");
        }
        assert!(matches!(look_migrating(None), WaitState::Wait(_)));
    }

    /// A restore, a wake-up and a cancelled move deploy kube-apiserver after etcd, and the remedy for alarm
    /// NOSPACE needs kube-apiserver. The final snapshot of a move needs no free space below the quota either.
    #[test]
    fn a_flow_goes_on_with_an_etcd_that_refuses_writes_and_reports_any_other_cause() {
        let full = |ready: bool, reason: &str| {
            let status = json!({
                "observedGeneration": 2, "ready": ready,
                "lastErrors": [{"code": "ERR_RETRYABLE_CONFIGURATION_PROBLEM",
                    "description": "the cause", "observedAt": "2026-01-01T00:00:00Z"}],
                "conditions": [{"type": "Ready", "status": "False", "reason": reason, "message": "the cause",
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}],
            });
            let mut etcd = etcd(&status);
            etcd.spec.backup.store = Some(StoreSpec::default());
            etcd
        };
        for look in [look_ready, look_migrating] {
            let mut no_space = full(true, NO_SPACE);
            assert!(matches!(look(Some(&no_space)), WaitState::Done));
            no_space.metadata.generation = Some(3);
            assert!(matches!(look(Some(&no_space)), WaitState::Wait(_)));
            let WaitState::Wait(why) = look(Some(&full(false, "NotReady"))) else {
                panic!("its member is not ready");
            };
            assert!(why.contains("the cause"), "{why}");
        }
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
