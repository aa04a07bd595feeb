//! A takeover of all shoots of a dead seed, in order and within a bound.

use std::collections::BTreeSet;

use api::gardencore::Shoot;
use futures::{StreamExt, stream};
use kube::ResourceExt;
use serde::Serialize;
use serde_json::json;

use super::{
    decision::Verdict,
    order::{next_trial, order},
    report::TakeoverReport,
    settings::TakeoverSettings,
    single::{Prompt, carry_out, examine, is_approved},
};
use crate::{answer::Answer, failure::Failure, follow::Report, session::Session, table::columns};

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
/// the rest. If the trial fails, a shoot of a different project is the second trial. A shoot with an obstacle
/// is left out. `parallel`: shoots at a time after the trial.
pub async fn take_over_seed(
    session: &Session,
    from: &str,
    parallel: usize,
    settings: TakeoverSettings<'_>,
    prompt: Prompt<'_>,
    report: Report<'_>,
) -> Result<Answer, Failure> {
    if from == settings.to {
        return Err(Failure::refused(format!(
            "seed {} cannot take over the own shoots",
            settings.to
        )));
    }
    let shoots = Box::pin(session.shoots_on(from)).await?;
    if shoots.is_empty() {
        let text = format!("no shoot is on seed {from} (status.seedName)\n");
        return Ok(Answer::new(text, &json!({"shoots": []})));
    }
    for excluded in settings.excluded {
        if !shoots.iter().any(|shoot| is_named(shoot, excluded)) {
            return Err(Failure::refused(format!(
                "--exclude {excluded}: no such Shoot is on seed {from}; write NAMESPACE/NAME"
            )));
        }
    }
    let mut possible = Vec::new();
    let mut results = Vec::new();
    let mut text = String::new();
    for shoot in shoots {
        let shown = Box::pin(examine(session, &shoot, settings.to, settings.source_is_off)).await?;
        text.push_str(&shown.render());
        if settings
            .excluded
            .iter()
            .any(|excluded| is_named(&shoot, excluded))
        {
            let why = Failure::refused("left out: --exclude");
            results.push(ShootResult::new(&shown, Err(why)));
        } else if shown.obstacles.is_empty() {
            possible.push((shoot, shown));
        } else {
            let obstacles = Failure::refused(format!("left out: {}", shown.obstacles.join("; ")));
            results.push(ShootResult::new(&shown, Err(obstacles)));
        }
    }
    let approved = !possible.is_empty() && is_approved(&text, from, settings.approval, prompt)?;
    if !approved {
        let hint = if possible.is_empty() {
            "Nothing was changed: each shoot has an obstacle.\n".to_owned()
        } else {
            format!("Nothing was changed: approve the loss with --yes {from}\n")
        };
        let reports: Vec<_> = possible.iter().map(|(_, shown)| shown).collect();
        let json = json!({"reports": reports, "shoots": results, "requested": false});
        return Ok(Answer::new(format!("{text}{hint}"), &json).with_obstacles(true));
    }
    // A shoot with an obstacle is no trial.
    let ordered = order(possible, |(shoot, _)| shoot);
    results.extend(Box::pin(take_over_in_order(session, parallel, settings, ordered, report)).await);
    let failed = results.iter().any(|result| !result.taken_over);
    let rows = results.iter().map(|result| {
        let name = format!("{}/{}", result.namespace, result.shoot);
        vec![name, result.message.clone()]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    Ok(Answer::new(columns(&rows), &json!({"shoots": results, "requested": true})).with_obstacles(failed))
}

/// Whether the text is `NAMESPACE/NAME` of the Shoot.
fn is_named(shoot: &Shoot, text: &str) -> bool {
    text.split_once('/') == Some((&shoot.namespace().unwrap_or_default(), &shoot.name_any()))
}

async fn take_over_in_order(
    session: &Session,
    parallel: usize,
    settings: TakeoverSettings<'_>,
    ordered: Vec<(Shoot, TakeoverReport)>,
    report: Report<'_>,
) -> Vec<ShootResult> {
    let mut rest = ordered;
    let mut results = Vec::new();
    let mut failed = BTreeSet::new();
    while let Some(index) = next_trial(&rest, &failed, |(shoot, _)| shoot) {
        let result = Box::pin(take_over(session, settings, rest.remove(index), report)).await;
        let (taken_over, namespace) = (result.taken_over, result.namespace.clone());
        results.push(result);
        if taken_over {
            failed.clear();
            break;
        }
        failed.insert(namespace);
    }
    if !failed.is_empty() {
        let not_tried = rest.iter().map(|(_, shown)| {
            let why = "not requested, because the trials were no takeovers: remove the cause, or leave the shoots of the trials out \
                       with --exclude";
            ShootResult::new(shown, Err(Failure::refused(why)))
        });
        results.extend(not_tried);
        return results;
    }
    let further = rest
        .into_iter()
        .map(|further| Box::pin(take_over(session, settings, further, report)));
    let further = stream::iter(further).buffer_unordered(parallel.max(1));
    results.extend(further.collect::<Vec<_>>().await);
    results
}

async fn take_over(
    session: &Session,
    settings: TakeoverSettings<'_>,
    (shoot, shown): (Shoot, TakeoverReport),
    report: Report<'_>,
) -> ShootResult {
    let outcome = Box::pin(carry_out(session, shoot, &shown, settings.wait, report)).await;
    ShootResult::new(&shown, outcome)
}
