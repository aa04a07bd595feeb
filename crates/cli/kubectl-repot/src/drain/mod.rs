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
mod lanes;
mod outcome;
mod plan;
mod request;
mod survey;

pub use outcome::ShootOutcome;
pub use plan::DrainPlan;
pub use request::DrainRequest;

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
/// and the drain goes on. After a failed move no further move of the project is requested, and after failed
/// moves of two projects no move at all. Shoots that the caller leaves out are no obstacle. A repeated drain
/// of a seed without further shoots changes nothing and needs no approval.
pub async fn drain(
    session: &Session,
    request: DrainRequest<'_>,
    prompt: Prompt<'_>,
    report: Report<'_>,
) -> Result<Answer, Failure> {
    let survey = Box::pin(survey::survey(session, request, report)).await?;
    let is_cordoned = survey.is_cordoned;
    let (plan, work) = Box::pin(dry_runs::plan(session, request, survey, report)).await?;
    let text = plan.render();
    if work.is_empty() && has_obstacle(&plan.left_out) {
        let hint = format!(
            "Nothing was changed: no shoot of seed {} can be moved now.\n",
            request.from
        );
        let json = json!({"plan": plan, "requested": false, "shoots": []});
        return Ok(Answer::new(format!("{text}{hint}"), &json).with_obstacles(true));
    }
    let is_done = work.is_empty() && is_cordoned;
    if is_done || request.approval.is_some() {
        report(text.trim_end());
    }
    if !is_done && !is_approved(&text, request.from, request.approval, prompt)? {
        let text = format!("{text}Nothing was changed: approve the drain with --yes\n");
        let json = json!({"plan": plan, "requested": false, "shoots": []});
        return Ok(Answer::new(text, &json).with_obstacles(true));
    }
    Box::pin(cordon::set(session, request.from, true)).await?;
    report(&format!("seed {} is cordoned", request.from));
    let mut outcomes = plan.left_out.clone();
    outcomes.extend(Box::pin(execution::carry_out(session, request, work, report)).await);
    outcomes.extend(Box::pin(execution::newcomers(session, request.from, &outcomes)).await?);
    let text = outcome::render_outcomes(request.from, &outcomes);
    let json = json!({"plan": plan, "requested": !plan.moves.is_empty(), "shoots": outcomes});
    Ok(Answer::new(text, &json).with_obstacles(has_obstacle(&outcomes)))
}

fn has_obstacle(outcomes: &[ShootOutcome]) -> bool {
    outcomes.iter().any(|outcome| outcome.result.is_obstacle())
}
