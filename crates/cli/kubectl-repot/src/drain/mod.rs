//! `kubectl repot drain`: moves all shoots of a seed to the named seeds, within a bound. The plan and the
//! expected duration are shown before the approval.
//!
//! The state of a drain is in the Seed (cordon) and in the Shoots alone. A repeated command finds moves that
//! are under way, waits for these moves within the same bound, and goes on with the rest.
//!
//! | file | content |
//! |---|---|
//! | `request` | the request of the user |
//! | `survey` | reads the Seeds and the Shoots, and checks the seeds |
//! | `classification` | the share of a shoot in the drain, the progress, and the withdrawal of a request |
//! | `assignment` | the destinations with room |
//! | `dry_runs` | the destination of each shoot, by dry runs in the garden |
//! | `slot_use` | the time that a delayed move can hold a slot |
//! | `failures` | the failed moves, and the moves that are given up |
//! | `lanes` | the next shoot, and the projects of the moves under way |
//! | `plan` | the plan as text and as JSON |
//! | `execution` | requests the moves within the bound, and waits |
//! | `outcome` | the results as text and as JSON |
//!
//! A single move is in the folder `moves` of the plugin.

mod assignment;
mod classification;
mod dry_runs;
mod execution;
mod failures;
mod lanes;
mod outcome;
mod plan;
mod request;
mod slot_use;
mod survey;

pub use outcome::ShootOutcome;
pub use plan::DrainPlan;
pub use request::{DrainRequest, SLOT_WITHIN};

use serde_json::json;

use crate::{
    answer::Answer,
    approval::{Prompt, is_approved},
    cordon,
    failure::Failure,
    follow::Report,
    session::Session,
};

/// Shows the plan, asks for the approval, cordons the seed, and moves the shoots. A refused move is reported,
/// and the drain goes on. After a failed move no further move of the project is requested. After failed moves
/// of two projects no move at all is requested, unless a later request has arrived (`failures`). Shoots that
/// the caller leaves out are no obstacle. A repeated drain of a seed without further shoots makes no change
/// and needs no approval.
pub async fn drain(
    session: &Session,
    request: DrainRequest<'_>,
    prompt: Prompt<'_>,
    report: Report<'_>,
) -> Result<Answer, Failure> {
    let survey = Box::pin(survey::survey(session, request)).await?;
    let (is_cordoned, notes) = (survey.is_cordoned, survey.notes.clone());
    let (plan, work) = Box::pin(dry_runs::plan(session, request, survey, report)).await?;
    let mut text = plan.render();
    // Directly above the question.
    for note in &notes {
        text.push_str(note);
        text.push('\n');
    }
    if work.is_empty() && has_obstacle(&plan.left_out) {
        let hint = format!(
            "Nothing was changed: no shoot of seed {} can be moved now.\n",
            request.from
        );
        let json = json!({"plan": plan, "requested": false, "shoots": [], "notes": notes});
        return Ok(Answer::new(format!("{text}{hint}"), &json).with_obstacles(true));
    }
    let is_done = work.is_empty() && is_cordoned;
    if is_done || request.approval.is_some() {
        report(text.trim_end());
    }
    if !is_done && !is_approved(&text, request.from, request.approval, prompt)? {
        let text = format!("{text}Nothing was changed: approve the drain with --yes\n");
        let json = json!({"plan": plan, "requested": false, "shoots": [], "notes": notes});
        return Ok(Answer::new(text, &json).with_obstacles(true));
    }
    Box::pin(cordon::set(session, request.from, true)).await?;
    report(&format!("seed {} is cordoned", request.from));
    let mut outcomes = plan.left_out.clone();
    outcomes.extend(Box::pin(execution::carry_out(session, request, work, report)).await);
    let came = Box::pin(execution::newcomers(session, request.from, &outcomes)).await;
    Ok(conclude(&plan, outcomes, came, notes))
}

/// The answer after the moves. The results are reported even if the shoots that came meanwhile are not known:
/// the results name the requests that stay.
fn conclude(
    plan: &DrainPlan,
    mut outcomes: Vec<ShootOutcome>,
    came: Result<Vec<ShootOutcome>, Failure>,
    mut notes: Vec<String>,
) -> Answer {
    let from = plan.seed.as_str();
    let is_checked = came.is_ok();
    let text = match came {
        Ok(came) => {
            outcomes.extend(came);
            outcome::render_outcomes(from, &outcomes)
        }
        Err(failure) => {
            let why = format!(
                "the shoots that came to seed {from} after the plan are not known: {failure}; repeat the command"
            );
            let text = outcome::render_unchecked(from, &outcomes, &why);
            notes.push(why);
            text
        }
    };
    let requested = !plan.moves.is_empty();
    let json = json!({"plan": plan, "requested": requested, "shoots": outcomes, "notes": notes});
    Answer::new(text, &json).with_obstacles(!is_checked || has_obstacle(&outcomes))
}

fn has_obstacle(outcomes: &[ShootOutcome]) -> bool {
    outcomes.iter().any(|outcome| outcome.result.is_obstacle())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::Shoot;

    use super::*;

    /// The token of the user expires during the moves.
    #[test]
    fn results_are_reported_if_the_shoots_on_the_seed_are_not_known() {
        let request = DrainRequest {
            from: "a",
            to: &[],
            parallel: 2,
            excluded: &[],
            approval: None,
            lane_within: std::time::Duration::ZERO,
            slot_within: std::time::Duration::ZERO,
            within: std::time::Duration::ZERO,
        };
        let plan = DrainPlan::new(request, Vec::new(), Vec::new(), None);
        let yaml = "metadata: {name: demo, namespace: garden-dev}\nspec: {region: r, provider: {type: t}}\n";
        let shoot: Shoot = serde_yaml_ng::from_str(yaml).unwrap();
        let message = "the move stays requested";
        let moved = ShootOutcome::new(&shoot, Some("b"), outcome::MoveResult::Moved, message);
        let unknown = Err(Failure::failed("the credentials are not accepted"));
        let answer = conclude(&plan, vec![moved.clone()], unknown, Vec::new());
        assert!(answer.has_obstacles, "{}", answer.text);
        for words in [message, "are not known: the credentials are not accepted"] {
            assert!(answer.text.contains(words), "{words}: {}", answer.text);
        }
        assert!(!answer.text.contains("is drained"), "{}", answer.text);
        assert_eq!(answer.json["shoots"][0]["shoot"], "demo");
        let note = answer.json["notes"][0].as_str().unwrap();
        assert!(note.contains("are not known"), "{note}");
        let known = conclude(&plan, vec![moved], Ok(Vec::new()), Vec::new());
        assert!(!known.has_obstacles, "{}", known.text);
        assert!(known.text.contains("Seed a is drained"), "{}", known.text);
    }
}
