//! The question about a move and the answer of the garden: pure decisions.

use std::fmt;

use api::{
    constants::{MIGRATION_DRY_RUN, condition},
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, ErrorCode},
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use placement::{Journey, journey};
use serde::Serialize;
use serde_json::json;

use crate::{
    edit::Edit, failure::Failure, follow::Step, hint::command_line, history::FormerMoves, terminal::one_line,
};

/// Above the difference between the clocks of the caller and of the garden.
const RECENT: SignedDuration = SignedDuration::from_secs(60);

/// Reason of an answer with a message that names no seed.
const SHOOT_NOT_CREATED: &str = "ShootNotCreated";

/// The answer of the garden about a move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Name of the Shoot.
    pub shoot: String,
    /// The destination of the question.
    pub seed: String,
    /// Whether the move could begin now.
    pub may_begin: bool,
    /// The reason, as a single word for programs.
    pub reason: String,
    /// The first obstacle, or the approval, as a sentence.
    pub message: String,
    /// Well-known causes of the obstacle.
    pub codes: Vec<ErrorCode>,
    /// The duration of former moves, if the caller may read Events.
    pub former_moves: Option<FormerMoves>,
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.may_begin { "allowed" } else { "not allowed" };
        write!(
            formatter,
            "{} to seed {}: {verdict} ({})\n{}",
            self.shoot,
            self.seed,
            self.reason,
            one_line(&self.message)
        )?;
        match self.former_moves {
            Some(former) => write!(formatter, "\nexpected duration: {}", former.describe()),
            None => Ok(()),
        }
    }
}

/// The edit that asks the garden.
///
/// # Errors
/// A refusal where the garden would not answer now, or where a different question is open.
pub fn ask(shoot: &Shoot, seed: &str) -> Result<Edit, Failure> {
    let name = shoot.name_any();
    if shoot.metadata.deletion_timestamp.is_some() {
        return Err(Failure::refused(format!(
            "shoot {name} is being deleted and cannot move"
        )));
    }
    if journey(shoot) != Journey::Settled {
        return Err(Failure::refused(format!(
            "shoot {name} is on the way between two seeds, and the garden answers after the arrival: {} shows the progress",
            command_line(&format!("status {name}"), shoot.namespace().as_deref())
        )));
    }
    match shoot.annotations().get(MIGRATION_DRY_RUN) {
        Some(open) if open == seed => Ok(Edit::Unchanged("The question is open already.".to_owned())),
        Some(open) => Err(Failure::refused(format!(
            "a question about a move of shoot {name} to seed {open} is open (annotation {MIGRATION_DRY_RUN}): repeat the command \
             when the garden has answered"
        ))),
        None => Ok(Edit::Patch(
            json!({"metadata": {"annotations": {MIGRATION_DRY_RUN: seed}}}),
        )),
    }
}

/// The answer, as soon as the annotation is removed. `former`: the answer that the Shoot had at the time of
/// the question. Each answer of the garden has a new time, so this answer is not taken a second time.
///
/// # Errors
/// The Shoot is gone, the annotation was removed without an answer, or a concurrent question took the place
/// of this question.
pub fn read_answer(
    shoot: Option<&Shoot>,
    seed: &str,
    former: Option<&Condition>,
) -> Result<Step<Plan>, Failure> {
    let Some(shoot) = shoot else {
        return Err(Failure::failed(
            "the Shoot of the question does not exist any more",
        ));
    };
    let name = shoot.name_any();
    match shoot.annotations().get(MIGRATION_DRY_RUN) {
        Some(open) if open == seed => {
            return Ok(Step::Waiting(format!(
                "{name}: the garden has not answered yet; if no answer comes, check that garden-controller-manager runs"
            )));
        }
        Some(open) => {
            return Err(Failure::refused(format!(
                "a concurrent question about shoot {name} names seed {open}; repeat the command"
            )));
        }
        None => {}
    }
    let is_repeated = |answer: &Condition| former.is_some_and(|former| is_former(answer, former));
    let Some(answer) = answer_in(shoot).filter(|answer| !is_repeated(answer)) else {
        return Err(Failure::failed(format!(
            "the question about shoot {name} was removed without an answer: repeat the command"
        )));
    };
    if !is_about(answer, seed) {
        return Err(Failure::refused(format!(
            "the answer about shoot {name} belongs to a concurrent question about a different seed; repeat the command"
        )));
    }
    Ok(Step::Done(Plan {
        shoot: name,
        seed: seed.to_owned(),
        may_begin: answer.status == ConditionStatus::True,
        reason: answer.reason.clone(),
        message: answer.message.clone(),
        codes: answer.codes.clone(),
        former_moves: None,
    }))
}

/// The last answer of the garden about a move of the shoot.
pub(super) fn answer_in(shoot: &Shoot) -> Option<&Condition> {
    shoot.status.as_ref()?.constraint(condition::MIGRATION_DRY_RUN)
}

/// Whether the answer is the former answer. A host may cut the texts of an answer, as in a large status. The
/// policies keep the status and the times.
fn is_former(answer: &Condition, former: &Condition) -> bool {
    answer.last_update_time == former.last_update_time
        && answer.status == former.status
        && former.reason.starts_with(&answer.reason)
        && former.message.starts_with(&answer.message)
}

/// Whether an answer at this time would have the time of the former answer to the same question: times have
/// whole seconds. The clocks of the caller and of the garden can differ.
pub(super) fn is_recent(former: &Condition, seed: &str, now: Timestamp) -> bool {
    let age = now.duration_since(former.last_update_time.0).abs();
    is_about(former, seed) && age < RECENT
}

/// Whether the answer is about the seed. The message of an answer names the seed of the question.
fn is_about(answer: &Condition, seed: &str) -> bool {
    let names_seed = ["to seed ", "on seed "].into_iter().any(|words| {
        let rest = answer.message.split_once(words).map(|(_, rest)| rest);
        let named = rest.and_then(|rest| rest.split_whitespace().next());
        named == Some(seed)
    });
    names_seed || answer.reason == SHOOT_NOT_CREATED
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shoot(annotations: &str, status: &str) -> Shoot {
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: demo, annotations: {annotations}}}\nspec: {{region: r, provider: {{type: t}}, seedName: a}}\n\
             status: {status}\n"
        ))
        .unwrap()
    }

    fn answered(status: &str, reason: &str, message: &str) -> String {
        format!(
            "{{seedName: a, constraints: [{{type: MigrationDryRun, status: '{status}', reason: {reason}, message: '{message}', \
             lastTransitionTime: 2026-01-01T00:00:00Z, lastUpdateTime: 2026-01-01T00:00:00Z}}]}}"
        )
    }

    #[test]
    fn a_question_is_asked_once_and_replaces_no_other_question() {
        let patch = ask(&shoot("{}", "{seedName: a}"), "b").unwrap();
        assert_eq!(
            patch,
            Edit::Patch(json!({"metadata": {"annotations": {MIGRATION_DRY_RUN: "b"}}}))
        );
        let open = shoot("{migration.gardener.cloud/dry-run: b}", "{seedName: a}");
        assert!(matches!(ask(&open, "b"), Ok(Edit::Unchanged(_))));
        let why = ask(&open, "c").unwrap_err();
        assert!(why.to_string().contains("to seed b is open"), "{why}");
    }

    #[test]
    fn a_shoot_on_the_way_is_not_asked_about() {
        let moving = "{seedName: a, lastOperation: {type: Migrate, state: Processing, progress: 1, description: d, \
                      lastUpdateTime: 2026-01-01T00:00:00Z}}";
        let why = ask(&shoot("{}", moving), "b").unwrap_err();
        assert!(why.to_string().contains("after the arrival"), "{why}");
    }

    #[test]
    fn an_answer_is_allowed_or_names_the_obstacle() {
        let waiting = read_answer(
            Some(&shoot("{migration.gardener.cloud/dry-run: b}", "{seedName: a}")),
            "b",
            None,
        );
        assert!(matches!(waiting, Ok(Step::Waiting(_))));
        let full = answered(
            "False",
            "DestinationSeedFull",
            "A move to seed b could not begin now. Seed b is full.",
        );
        let Step::Done(plan) = read_answer(Some(&shoot("{}", &full)), "b", None).unwrap() else {
            unreachable!("the question is answered");
        };
        assert!(!plan.may_begin);
        assert_eq!(
            plan.to_string(),
            "demo to seed b: not allowed (DestinationSeedFull)\nA move to seed b could not begin now. Seed b is full."
        );
        let measured = Plan {
            former_moves: Some(FormerMoves {
                median_seconds: 43,
                count: 2,
            }),
            ..plan
        };
        assert!(
            measured
                .to_string()
                .ends_with("\nexpected duration: 43s (median of 2 former moves)"),
            "{measured}"
        );
        let ready = answered(
            "True",
            "DestinationSeedReady",
            "A move to seed b could begin now. Fine.",
        );
        let read = read_answer(Some(&shoot("{}", &ready)), "b", None);
        assert!(matches!(read, Ok(Step::Done(plan)) if plan.may_begin));
    }

    #[test]
    fn an_answer_to_a_different_question_is_not_taken() {
        let other = answered(
            "True",
            "DestinationSeedReady",
            "A move to seed bb could begin now. Fine.",
        );
        let why = read_answer(Some(&shoot("{}", &other)), "b", None).unwrap_err();
        assert!(why.to_string().contains("concurrent question"), "{why}");
        let here = answered(
            "False",
            "NoMove",
            "The shoot is on seed a already: write the name.",
        );
        assert!(matches!(
            read_answer(Some(&shoot("{}", &here)), "a", None),
            Ok(Step::Done(_))
        ));
    }

    #[test]
    fn a_former_answer_is_not_the_answer_to_the_present_question() {
        let message = "A move to seed b could begin now. Fine.";
        let answered = answered("True", "DestinationSeedReady", message);
        let before = shoot("{}", &answered);
        let former = answer_in(&before);
        // As a user removes the annotation before the garden answers.
        let why = read_answer(Some(&before), "b", former).unwrap_err();
        assert!(why.to_string().contains("removed without an answer"), "{why}");
        // The host cuts the former answer.
        let cut = answered.replace("begin now. Fine.", "begin");
        let why = read_answer(Some(&shoot("{}", &cut)), "b", former).unwrap_err();
        assert!(why.to_string().contains("removed without an answer"), "{why}");
        // The garden repeats the verdict.
        let later = answered.replace(
            "lastUpdateTime: 2026-01-01T00:00:00Z",
            "lastUpdateTime: 2026-01-01T00:00:01Z",
        );
        let read = read_answer(Some(&shoot("{}", &later)), "b", former);
        assert!(matches!(read, Ok(Step::Done(plan)) if plan.may_begin));
    }

    #[test]
    fn a_question_pauses_after_a_recent_answer_about_the_same_seed() {
        let message = "A move to seed b could begin now. Fine.";
        let before = shoot("{}", &answered("True", "DestinationSeedReady", message));
        let former = answer_in(&before).unwrap();
        for (seed, now, recent) in [
            ("b", "2026-01-01T00:00:00Z", true),
            // The clock of the caller is behind.
            ("b", "2025-12-31T23:59:50Z", true),
            ("b", "2026-01-01T00:02:00Z", false),
            ("c", "2026-01-01T00:00:00Z", false),
        ] {
            assert_eq!(
                is_recent(former, seed, now.parse().unwrap()),
                recent,
                "{seed} {now}"
            );
        }
    }
}
