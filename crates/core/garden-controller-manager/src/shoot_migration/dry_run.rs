//! Answers whether a move could begin before any edit: annotation `migration.gardener.cloud/dry-run=<seed>`
//! of a Shoot.
//!
//! Promise: garden-controller-manager writes only the constraint `MigrationDryRun` and an Event, and removes
//! the annotation, so that the request can be repeated. Each answer has a new `lastUpdateTime`. A request for
//! a shoot that is moving is answered when the shoot has arrived.

use std::sync::Arc;

use api::{
    constants::{MIGRATION_DRY_RUN, condition},
    gardencore::Shoot,
    meta::{Condition, ConditionStatus},
};
use kube::{Api, ResourceExt};
use placement::{Journey, journey};
use runtime::{Result, clock};
use serde_json::{Value, json};

use super::{capacity, planned_move_checks, preflight::Verdict, reading::read};
use crate::{Context, MANAGER};

/// Longest name of a Seed.
const LONGEST_NAME: usize = 253;

/// The seed of the question, if the question can be answered now.
pub(super) fn asked(shoot: &Shoot) -> Option<&str> {
    let seed = shoot.annotations().get(MIGRATION_DRY_RUN)?;
    (journey(shoot) == Journey::Settled).then_some(seed.as_str())
}

/// Judges the move as if `spec.seedName` named the seed, and writes the answer. `known`: all Shoots. False:
/// the Shoot was changed meanwhile, and the question is still to be answered.
pub(super) async fn answer(
    context: &Context,
    shoots: &Api<Shoot>,
    shoot: &Shoot,
    seed: &str,
    known: &[Arc<Shoot>],
) -> Result<bool> {
    let verdict = if is_name(seed) {
        judge(context, shoot, seed, known).await?
    } else {
        None
    };
    let answer = constraint(shoot, seed, verdict.as_ref());
    let status = shoot.status.as_ref();
    let mut constraints = status
        .map(|status| status.constraints.clone())
        .unwrap_or_default();
    record(&answer, &mut constraints);
    let written = MANAGER
        .try_merge_status_of(shoots, shoot, &json!({"constraints": constraints}))
        .await?;
    let Some(written) = written else {
        return Ok(false);
    };
    context
        .events
        .normal(&written, condition::MIGRATION_DRY_RUN, &answer.message)
        .await;
    let answered = json!({"metadata": {"annotations": {MIGRATION_DRY_RUN: Value::Null}}});
    Ok(MANAGER.try_merge_of(shoots, &written, &answered).await?.is_some())
}

/// The verdict on a move to the seed that no user has requested. `None` if the text cannot be the name of a
/// Seed, or if the seed has the shoot. The obstacles come without the remedy to cancel the move.
pub(crate) async fn judge_unrequested(
    context: &Context,
    shoot: &Shoot,
    seed: &str,
    known: &[Arc<Shoot>],
) -> Result<Option<Verdict>> {
    if !is_name(seed) {
        return Ok(None);
    }
    let verdict = judge(context, shoot, seed, known).await?;
    let status = shoot.status.as_ref();
    let host = status.and_then(|status| status.seed_name.as_deref());
    Ok(verdict.map(|verdict| Verdict {
        message: without_cancellation(&verdict.message, host.unwrap_or_default()),
        ..verdict
    }))
}

/// The message without the remedy to cancel the move: no move is requested.
fn without_cancellation(message: &str, host: &str) -> String {
    message.replace(&format!(", or set spec.seedName back to {host}"), "")
}

async fn judge(
    context: &Context,
    shoot: &Shoot,
    seed: &str,
    known: &[Arc<Shoot>],
) -> Result<Option<Verdict>> {
    let mut asking = shoot.clone();
    asking.spec.seed_name = Some(seed.to_owned());
    let judged = Box::pin(read(context, &asking)).await?;
    Ok(
        planned_move_checks::apply(&asking, &judged).map(|verdict| match &judged.destination {
            Some(destination) => capacity::judge(&asking, destination, known, verdict),
            None => verdict,
        }),
    )
}

/// Whether the text can be the name of a Seed.
pub(crate) fn is_name(seed: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    !seed.is_empty() && seed.len() <= LONGEST_NAME && seed.bytes().all(is_plain)
}

/// Puts the answer into the constraints. A repeated verdict gets a new time, too: a user can remove the
/// annotation, and only the time then shows whether the constraint is the answer to the present question.
fn record(answer: &Condition, constraints: &mut Vec<Condition>) {
    answer.clone().merge_into(constraints);
    let recorded = constraints.iter_mut().find(|entry| entry.type_ == answer.type_);
    if let Some(recorded) = recorded {
        recorded.last_update_time = answer.last_update_time.clone();
    }
}

fn constraint(shoot: &Shoot, seed: &str, verdict: Option<&Verdict>) -> Condition {
    let host = shoot
        .status
        .as_ref()
        .and_then(|status| status.seed_name.as_deref())
        .filter(|host| !host.is_empty());
    let (ready, reason, message) = match (verdict, host) {
        (Some(verdict), Some(host)) => {
            let message = without_cancellation(&verdict.message, host);
            let outcome = if verdict.ready { "could" } else { "could not" };
            let message = format!("A move to seed {seed} {outcome} begin now. {message}");
            (verdict.ready, verdict.reason, message)
        }
        _ if !is_name(seed) => (
            false,
            "DestinationSeedNotFound",
            format!(
                "Annotation {MIGRATION_DRY_RUN} does not have the name of a Seed: write the name of the destination."
            ),
        ),
        (_, None) => (
            false,
            "ShootNotCreated",
            "The shoot is on no seed yet: ask again when status.seedName is set.".to_owned(),
        ),
        (None, Some(_)) => (
            false,
            "NoMove",
            format!(
                "The shoot is on seed {seed} already: write the name of another Seed into annotation {MIGRATION_DRY_RUN}."
            ),
        ),
    };
    let status = if ready {
        ConditionStatus::True
    } else {
        ConditionStatus::False
    };
    let mut answer = Condition::new(
        condition::MIGRATION_DRY_RUN,
        status,
        reason,
        &message,
        clock::now_k8s(),
    );
    answer.codes = verdict.map(Verdict::codes).unwrap_or_default();
    answer
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shoot(host: Option<&str>) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"seedName": "a", "region": "r", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": host},
        }))
        .unwrap()
    }

    fn answered(
        host: Option<&str>,
        seed: &str,
        verdict: Option<&Verdict>,
    ) -> (ConditionStatus, String, String) {
        let answer = constraint(&shoot(host), seed, verdict);
        (answer.status, answer.reason, answer.message)
    }

    #[test]
    fn an_answer_names_what_is_in_the_way_without_a_move_to_cancel() {
        let verdict = Verdict {
            ready: false,
            reason: "DestinationSeedHasNoBackup",
            message: "Seed b has no spec.backup: name another seed, or set spec.seedName back to a.".into(),
        };
        let (status, reason, message) = answered(Some("a"), "b", Some(&verdict));
        assert_eq!(
            (status, reason.as_str()),
            (ConditionStatus::False, "DestinationSeedHasNoBackup")
        );
        assert_eq!(
            message,
            "A move to seed b could not begin now. Seed b has no spec.backup: name another seed."
        );
        let ready = Verdict {
            ready: true,
            reason: "DestinationSeedReady",
            message: "Fine.".into(),
        };
        let (status, _, message) = answered(Some("a"), "b", Some(&ready));
        assert_eq!(
            (status, message.as_str()),
            (ConditionStatus::True, "A move to seed b could begin now. Fine.")
        );
    }

    #[test]
    fn a_repeated_verdict_is_a_new_answer() {
        let answer_at = |time: &str| {
            let mut answer = constraint(&shoot(Some("a")), "a", None);
            answer.last_transition_time = serde_json::from_value(json!(time)).unwrap();
            answer.last_update_time = answer.last_transition_time.clone();
            answer
        };
        let (former, repeated) = (
            answer_at("2026-01-01T00:00:00Z"),
            answer_at("2026-01-01T00:00:07Z"),
        );
        let mut constraints = vec![former.clone()];
        record(&repeated, &mut constraints);
        assert_eq!(constraints.len(), 1);
        assert_eq!(constraints[0].last_update_time, repeated.last_update_time);
        assert_eq!(constraints[0].last_transition_time, former.last_transition_time);
        let mut first = Vec::new();
        record(&repeated, &mut first);
        assert_eq!(first, [repeated]);
    }

    #[test]
    fn a_question_without_an_answer_says_what_to_ask() {
        for (host, seed, reason, words) in [
            (Some("a"), "a", "NoMove", "name of another Seed"),
            (None, "b", "ShootNotCreated", "when status.seedName is set"),
            (
                Some("a"),
                "",
                "DestinationSeedNotFound",
                "name of the destination",
            ),
            (
                Some("a"),
                "b c",
                "DestinationSeedNotFound",
                "name of the destination",
            ),
            (
                Some("a"),
                "a/status",
                "DestinationSeedNotFound",
                "name of the destination",
            ),
        ] {
            let (status, told, message) = answered(host, seed, None);
            assert_eq!((status, told.as_str()), (ConditionStatus::False, reason));
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn a_shoot_on_the_way_is_asked_about_when_it_has_arrived() {
        let mut shoot = shoot(Some("a"));
        assert_eq!(asked(&shoot), None);
        shoot
            .annotations_mut()
            .insert(MIGRATION_DRY_RUN.into(), "b".into());
        assert_eq!(asked(&shoot), Some("b"));
        let last = json!({"type": "Migrate", "state": "Processing", "progress": 1, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        shoot.status.as_mut().unwrap().last_operation = serde_json::from_value(last).unwrap();
        assert_eq!(asked(&shoot), None);
    }
}
