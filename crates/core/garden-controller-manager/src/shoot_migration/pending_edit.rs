//! A planned move begins only when the source has reconciled the present specification: the shoot travels
//! with the specification, so the restore would otherwise be the first to apply an edit, e.g. an upgrade, and
//! would fail far from the edit.
//!
//! The source reconciles a pending edit while the move waits. The rule holds back neither a move that was
//! approved in this generation, nor a takeover, nor a shoot with annotation
//! `shoot.gardener.cloud/force-restore`.

use api::{constants::condition::SHOOT_NOT_RECONCILED, gardencore::Shoot, meta::LastOperationState as State};
use placement::{Journey, is_reconciled, journey};

use super::{
    force,
    preflight::{Verdict, wanted_move},
};

/// The verdict on a move that would begin now, where the specification has an edit that was not reconciled.
pub(super) fn check(shoot: &Shoot, verdict: Verdict) -> Verdict {
    let Some((source, _)) = wanted_move(shoot) else {
        return verdict;
    };
    if !verdict.ready || journey(shoot) != Journey::Settled || is_reconciled(shoot) {
        return verdict;
    }
    // The annotation goes before the source begins, and must not take the approval back.
    if force::is_approved(shoot) || force::is_asked(shoot) {
        return verdict;
    }
    Verdict {
        ready: false,
        reason: SHOOT_NOT_RECONCILED,
        message: message(shoot, source),
    }
}

fn message(shoot: &Shoot, source: &str) -> String {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let fails = last.filter(|last| matches!(last.state, State::Error | State::Failed));
    let state = match fails {
        Some(last) => format!(
            "the reconciliation there fails ({}); fix the cause, or take the edit back",
            last.description.trim_end_matches('.')
        ),
        None => "the move begins once status.lastOperation has succeeded for this generation".to_owned(),
    };
    format!(
        "Seed {source} has not reconciled the present specification of the shoot yet (generation {}): {state}. Or set spec.seedName back to \
         {source}, or {}.",
        shoot.metadata.generation.unwrap_or_default(),
        force::remedy()
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::constants::SHOOT_FORCE_RESTORE;
    use kube::ResourceExt as _;
    use serde_json::{Value, json};

    use super::*;

    fn ready() -> Verdict {
        Verdict {
            ready: true,
            reason: "DestinationSeedReady",
            message: "Fine.".into(),
        }
    }

    /// On seed a, wanted on seed b, in generation 7.
    fn shoot(last: (&str, &str), observed: i64, status: &Value) -> Shoot {
        let mut all = json!({
            "seedName": "a", "observedGeneration": observed,
            "lastOperation": {"type": last.0, "state": last.1, "progress": 1, "description": "Etcd is sick.",
                "lastUpdateTime": "2026-01-01T00:00:00Z"},
        });
        for (field, value) in status.as_object().unwrap() {
            all[field] = value.clone();
        }
        serde_json::from_value(json!({
            "metadata": {"name": "web", "generation": 7},
            "spec": {"seedName": "b", "region": "r", "provider": {"type": "t"}, "kubernetes": {}}, "status": all,
        }))
        .unwrap()
    }

    fn is_held(shoot: &Shoot) -> bool {
        let verdict = check(shoot, ready());
        assert_eq!(verdict.ready, verdict.reason != SHOOT_NOT_RECONCILED);
        !verdict.ready
    }

    #[test]
    fn an_edit_that_the_source_has_not_reconciled_holds_back_the_move() {
        let reconcile = |state| ("Reconcile", state);
        // The edit is not observed, is in progress, fails, or has failed for good.
        for (last, observed) in [
            (reconcile("Succeeded"), 5),
            (reconcile("Succeeded"), 6),
            (reconcile("Processing"), 7),
            (reconcile("Error"), 7),
            (reconcile("Failed"), 7),
        ] {
            assert!(is_held(&shoot(last, observed, &json!({}))), "{last:?}");
        }
        for type_ in ["Create", "Reconcile", "Restore"] {
            assert!(!is_held(&shoot((type_, "Succeeded"), 7, &json!({}))));
        }
        let verdict = check(&shoot(reconcile("Error"), 7, &json!({})), ready());
        for part in [
            "generation 7",
            "fails (Etcd is sick)",
            "take the edit back",
            "back to a",
            "force-restore=true",
        ] {
            assert!(verdict.message.contains(part), "{}", verdict.message);
        }
    }

    #[test]
    fn a_sick_source_lets_a_shoot_without_pending_edit_go() {
        let hash = placement::spec_hash(&shoot(("Reconcile", "Succeeded"), 7, &json!({})).spec);
        for state in ["Error", "Failed", "Processing", "Succeeded"] {
            let status = json!({"reconciledSpecHash": hash});
            assert!(!is_held(&shoot(("Reconcile", state), 5, &status)), "{state}");
        }
        assert!(is_held(&shoot(
            ("Reconcile", "Error"),
            5,
            &json!({"reconciledSpecHash": "of-before"})
        )));
    }

    #[test]
    fn force_lets_a_pending_edit_travel_and_the_approval_outlives_the_annotation() {
        let failing = shoot(("Reconcile", "Error"), 7, &json!({}));
        let mut forced = failing.clone();
        forced
            .annotations_mut()
            .insert(SHOOT_FORCE_RESTORE.into(), "true".into());
        assert!(is_held(&failing) && !is_held(&forced));
        let approval = |generation, to: &str| json!({"migration": {"source": "a", "destination": to, "generation": generation, "spec": {}}});
        assert!(!is_held(&shoot(("Reconcile", "Error"), 7, &approval(7, "b"))));
        // A later edit, or a different destination, is judged again.
        assert!(is_held(&shoot(("Reconcile", "Error"), 7, &approval(6, "b"))));
        assert!(is_held(&shoot(("Reconcile", "Error"), 7, &approval(7, "c"))));
    }

    #[test]
    fn a_move_that_has_begun_is_not_held_back() {
        for (type_, state) in [
            ("Migrate", "Processing"),
            ("Migrate", "Error"),
            ("Migrate", "Succeeded"),
            ("Restore", "Error"),
        ] {
            assert!(!is_held(&shoot((type_, state), 5, &json!({}))), "{type_} {state}");
        }
    }
}
