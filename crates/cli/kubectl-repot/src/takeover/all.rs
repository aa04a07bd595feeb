//! A takeover of all shoots of a dead seed, in order and within a bound.

use placement::is_released;
use serde_json::json;

use super::{
    order::order, settings::TakeoverSettings, shoot_result::ShootResult, single::examine,
    trials::take_over_in_order,
};
use crate::{
    answer::Answer,
    approval::{Prompt, is_approved},
    exclusion::{UnmatchedEntry, check_unmatched, find_unmatched, is_excluded},
    failure::Failure,
    follow::Report,
    released::describe_released,
    session::Session,
    table::columns,
};

/// Shows a report for each shoot, asks for a single approval, takes over a first shoot as a trial, and then
/// the rest (`trials`). A shoot with an obstacle is left out, and a released Shoot does not count.
/// `parallel`: shoots at a time after the trial.
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
    let mut shoots = Box::pin(session.shoots_on(from)).await?;
    let mut notes = describe_released(&shoots, from);
    let unmatched = Box::pin(find_unmatched(session, settings.excluded, &shoots, from)).await;
    notes.extend(unmatched.iter().map(UnmatchedEntry::warning));
    shoots.retain(|shoot| !is_released(shoot));
    if shoots.is_empty() {
        for note in &notes {
            report(note);
        }
        let text = format!("no shoot is on seed {from} (status.seedName)\n");
        return Ok(Answer::new(text, &json!({"shoots": [], "notes": notes})));
    }
    check_unmatched(&unmatched, settings.approval)?;
    report(&format!(
        "the reports of {} shoots on seed {from} are collected",
        shoots.len()
    ));
    let mut possible = Vec::new();
    let mut results = Vec::new();
    let mut text = String::new();
    for shoot in shoots {
        let shown = Box::pin(examine(session, &shoot, settings.to, settings.source_is_off)).await?;
        text.push_str(&shown.render());
        if is_excluded(&shoot, settings.excluded) {
            let why = Failure::refused("left out: --exclude");
            results.push(ShootResult::new(&shown, Err(why)));
        } else if shown.obstacles.is_empty() {
            possible.push((shoot, shown));
        } else {
            let obstacles = Failure::refused(format!("left out: {}", shown.obstacles.join("; ")));
            results.push(ShootResult::new(&shown, Err(obstacles)));
        }
    }
    // Directly above the question. A caller that approved in advance sees no report.
    for note in &notes {
        if settings.approval.is_some() {
            report(note);
        }
        text.push_str(note);
        text.push('\n');
    }
    let approved = !possible.is_empty() && is_approved(&text, from, settings.approval, prompt)?;
    if !approved {
        let hint = if possible.is_empty() {
            "Nothing was changed: each shoot has an obstacle.\n".to_owned()
        } else {
            format!("Nothing was changed: approve the loss with --yes {from}\n")
        };
        let reports: Vec<_> = possible.iter().map(|(_, shown)| shown).collect();
        let json = json!({"reports": reports, "shoots": results, "requested": false, "notes": notes});
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
    let json = json!({"shoots": results, "requested": true, "notes": notes});
    Ok(Answer::new(columns(&rows), &json).with_obstacles(failed))
}
