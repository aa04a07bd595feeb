//! A takeover of all shoots of a dead seed, in order and within a bound.

use std::time::Duration;

use api::gardencore::Shoot;
use futures::{StreamExt, stream};
use serde::Serialize;
use serde_json::json;

use super::{
    decision::Verdict,
    order::order,
    report::TakeoverReport,
    single::{Prompt, carry_out, examine, is_approved},
};
use crate::{answer::Answer, failure::Failure, follow::Report, session::Session, table::columns};

/// A takeover of all shoots of a seed.
#[derive(Clone, Copy, Debug)]
pub struct SeedRequest<'a> {
    /// Name of the dead Seed.
    pub from: &'a str,
    /// Name of the Seed that takes the shoots over.
    pub to: &'a str,
    /// The caller states that no process of the dead seed runs any more.
    pub source_is_off: bool,
    /// The name that approves the loss, where the caller gave the name in advance.
    pub approval: Option<&'a str>,
    /// Shoots at a time.
    pub parallel: usize,
    /// The bound of the wait for each shoot.
    pub within: Duration,
}

/// The result for a shoot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShootResult {
    namespace: String,
    shoot: String,
    taken_over: bool,
    message: String,
}

impl ShootResult {
    fn new(report: &TakeoverReport, outcome: Result<Verdict, Failure>) -> Self {
        let (taken_over, message) = match outcome {
            Ok(Verdict::PlannedMove) => (
                false,
                format!(
                    "seed {} lives, and hands the shoot over in a planned move",
                    report.from
                ),
            ),
            Ok(_) => (true, format!("taken over by seed {}", report.to)),
            Err(failure) => (false, failure.to_string()),
        };
        Self {
            namespace: report.namespace.clone(),
            shoot: report.shoot.clone(),
            taken_over,
            message,
        }
    }
}

/// Shows a report for each shoot, asks for a single approval, takes over a first shoot as a trial, and then
/// the rest. A shoot with an obstacle is left out.
pub async fn take_over_seed(
    session: &Session,
    request: SeedRequest<'_>,
    prompt: Prompt<'_>,
    report: Report<'_>,
) -> Result<Answer, Failure> {
    if request.from == request.to {
        return Err(Failure::refused(format!(
            "seed {} cannot take over the own shoots",
            request.to
        )));
    }
    let shoots = Box::pin(session.shoots_on(request.from)).await?;
    if shoots.is_empty() {
        let text = format!("no shoot is on seed {} (status.seedName)\n", request.from);
        return Ok(Answer::new(text, &json!({"shoots": []})));
    }
    let mut possible = Vec::new();
    let mut results = Vec::new();
    let mut text = String::new();
    for shoot in shoots {
        let shown = Box::pin(examine(session, &shoot, request.to, request.source_is_off)).await?;
        text.push_str(&shown.render());
        if shown.obstacles.is_empty() {
            possible.push((shoot, shown));
        } else {
            let obstacles = Failure::refused(format!("left out: {}", shown.obstacles.join("; ")));
            results.push(ShootResult::new(&shown, Err(obstacles)));
        }
    }
    let approved = !possible.is_empty() && is_approved(&text, request.from, request.approval, prompt)?;
    if !approved {
        let hint = if possible.is_empty() {
            "Nothing was changed: each shoot has an obstacle.\n".to_owned()
        } else {
            format!(
                "Nothing was changed: approve the loss with --yes {}\n",
                request.from
            )
        };
        let reports: Vec<_> = possible.iter().map(|(_, shown)| shown).collect();
        let json = json!({"reports": reports, "shoots": results, "requested": false});
        return Ok(Answer::new(format!("{text}{hint}"), &json).with_obstacles(true));
    }
    // A shoot with an obstacle is no trial.
    let ordered = order(possible, |(shoot, _)| shoot);
    results.extend(Box::pin(take_over_in_order(session, request, ordered, report)).await);
    let failed = results.iter().any(|result| !result.taken_over);
    let rows = results.iter().map(|result| {
        let name = format!("{}/{}", result.namespace, result.shoot);
        vec![name, result.message.clone()]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    Ok(Answer::new(columns(&rows), &json!({"shoots": results, "requested": true})).with_obstacles(failed))
}

async fn take_over_in_order(
    session: &Session,
    request: SeedRequest<'_>,
    ordered: Vec<(Shoot, TakeoverReport)>,
    report: Report<'_>,
) -> Vec<ShootResult> {
    let mut rest = ordered.into_iter();
    let mut results = Vec::new();
    if let Some(trial) = rest.next() {
        results.push(Box::pin(take_over(session, request, trial, report)).await);
    }
    if results.iter().any(|result| !result.taken_over) {
        let not_tried = rest.map(|(_, shown)| {
            let why = "not requested, because the trial with the first shoot was no takeover";
            ShootResult::new(&shown, Err(Failure::refused(why)))
        });
        results.extend(not_tried);
        return results;
    }
    let further = rest.map(|further| Box::pin(take_over(session, request, further, report)));
    let further = stream::iter(further).buffer_unordered(request.parallel.max(1));
    results.extend(further.collect::<Vec<_>>().await);
    results
}

async fn take_over(
    session: &Session,
    request: SeedRequest<'_>,
    (shoot, shown): (Shoot, TakeoverReport),
    report: Report<'_>,
) -> ShootResult {
    let outcome = Box::pin(carry_out(session, shoot, &shown, Some(request.within), report)).await;
    ShootResult::new(&shown, outcome)
}
