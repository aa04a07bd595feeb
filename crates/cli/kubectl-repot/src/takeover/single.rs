//! A takeover of a single shoot.

use std::time::Duration;

use api::gardencore::{BackupEntry, Shoot};
use jiff::{SignedDuration, Timestamp};
use kube::{Api, ResourceExt};
use runtime::{client::Cluster, clock};
use serde_json::json;

use super::{
    decision::{self, Verdict},
    report::{Evidence, TakeoverReport},
    settings::TakeoverSettings,
};
use crate::{
    answer::Answer,
    approval::{Prompt, is_approved},
    edit::edit,
    events::{events_of_garden, newest},
    failure::Failure,
    follow::{Report, follow},
    hint::command_line,
    moves::wait_for_arrival,
    session::Session,
    silence::SilenceWatch,
};

/// The shortest bound of the wait for the verdict. The garden decides within about a minute, and waits up to
/// a minute longer for the attempt of a source that fails.
const DECIDED_WITHIN: Duration = Duration::from_secs(180);

/// Tolerated difference between the clocks of the caller and of the garden.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(5);

/// Shows the report, asks for the approval, and asks the garden for the takeover.
pub async fn take_over_shoot(
    session: &Session,
    name: &str,
    settings: TakeoverSettings<'_>,
    prompt: Prompt<'_>,
    report: Report<'_>,
) -> Result<Answer, Failure> {
    let shoot = Box::pin(session.shoot(session.namespace(), name)).await?;
    let shown = Box::pin(examine(session, &shoot, settings.to, settings.source_is_off)).await?;
    let text = shown.render();
    if !shown.obstacles.is_empty() {
        let text = format!("{text}Nothing was changed: remove the obstacles first.\n");
        return Ok(Answer::new(text, &json!({"report": shown, "requested": false})).with_obstacles(true));
    }
    if !is_approved(&text, name, settings.approval, prompt)? {
        let text = format!("{text}Nothing was changed: approve the loss with --yes {name}\n");
        return Ok(Answer::new(text, &json!({"report": shown, "requested": false})).with_obstacles(true));
    }
    let verdict = Box::pin(carry_out(session, shoot, &shown, settings.wait, report)).await?;
    let end = match verdict {
        Verdict::PlannedMove => format!(
            "Seed {} lives, and hands the shoot over to seed {} in a planned move",
            shown.from, shown.to
        ),
        _ if settings.wait.is_some() => format!("Seed {} has taken the shoot over", shown.to),
        _ => format!("Seed {} takes the shoot over", shown.to),
    };
    let text = format!(
        "{text}{end}. {} shows the state.\n",
        command_line(&format!("status {}", shown.shoot), Some(shown.namespace.as_str()))
    );
    Ok(Answer::new(text, &json!({"report": shown, "requested": true})))
}

/// Reads all that the garden knows about the shoot and both seeds.
pub(super) async fn examine(
    session: &Session,
    shoot: &Shoot,
    to: &str,
    source_is_off: bool,
) -> Result<TakeoverReport, Failure> {
    let from = shoot.status.as_ref().and_then(|status| status.seed_name.clone());
    let from = from.unwrap_or_default();
    let name = shoot.name_any();
    if from == to {
        return Err(Failure::refused(format!("shoot {name} is on seed {to} already")));
    }
    let no_seed = || {
        Failure::refused(format!(
            "shoot {name} is on no seed (status.seedName), so that no seed can take the shoot over"
        ))
    };
    if from.is_empty() {
        return Err(no_seed());
    }
    let evidence = Evidence {
        shoot: Box::new(shoot.clone()),
        source: Box::pin(session.seed(&from)).await?,
        destination: Box::pin(session.seed(to)).await?,
        entry: Box::pin(backup_entry(session, shoot)).await,
        source_is_off,
    };
    TakeoverReport::new(&evidence, to, clock::now()).ok_or_else(no_seed)
}

/// The BackupEntry of the shoot. A caller without the right gets a report without the entry.
async fn backup_entry(session: &Session, shoot: &Shoot) -> Option<Box<BackupEntry>> {
    let technical_id = placement::names::recorded_technical_id(shoot)?;
    let name = placement::names::backup_entry(technical_id, &placement::names::uid(shoot));
    let entries: Api<BackupEntry> = session.garden().namespaced(&shoot.namespace()?);
    let entry = session
        .request("the BackupEntry cannot be read", entries.get(&name))
        .await;
    entry.ok().map(Box::new)
}

/// Asks the garden for the takeover, and waits for the verdict, and for the end if `wait` gives a bound.
pub(super) async fn carry_out(
    session: &Session,
    shoot: Shoot,
    shown: &TakeoverReport,
    wait: Option<Duration>,
    report: Report<'_>,
) -> Result<Verdict, Failure> {
    let since = clock::now() - CLOCK_SKEW;
    let asked = Box::pin(edit(session, shoot, |shoot| decision::ask(shoot, shown))).await?;
    let (namespace, name) = (shown.namespace.as_str(), shown.shoot.as_str());
    let goal = format!("the takeover of shoot {namespace}/{name} by seed {}", shown.to);
    let within = wait.unwrap_or_default().max(DECIDED_WITHIN);
    let shoots = session.shoots(namespace);
    let silence = SilenceWatch::default();
    let noted = |sentence: &str| {
        silence.note_change();
        report(sentence);
    };
    let decided = follow(shoots, name, &goal, within, &noted, |shoot| {
        let acting = shoot.and_then(|shoot| shoot.status.as_ref()?.seed_name.clone());
        silence.note_seed(acting.filter(|seed| !seed.is_empty()));
        decision::verdict(shoot, shown)
    });
    let verdict = Box::pin(silence.observe(session, name, report, decided))
        .await
        .map_err(|failure| still_requested(failure, shown))?;
    match verdict {
        Verdict::Granted => report(&format!(
            "{name}: seed {} has the shoot; the old seed is fenced first",
            shown.to
        )),
        Verdict::PlannedMove => report(&format!(
            "{name}: the old seed lives and hands the shoot over, without a loss"
        )),
        Verdict::Refused => {
            let refused = Box::pin(refusal(session, &asked.shoot, &goal, since)).await;
            return Err(still_requested(refused, shown));
        }
    }
    if let Some(within) = wait {
        let never = std::future::pending();
        let arrival = wait_for_arrival(session, &asked.shoot, &shown.to, within, report, never);
        Box::pin(arrival).await?;
    }
    Ok(verdict)
}

/// A takeover without a verdict, or with a refusal, leaves `spec.seedName` at the destination.
fn still_requested(failure: Failure, shown: &TakeoverReport) -> Failure {
    failure.with_hint(&format!(
        "spec.seedName still names seed {}, so the move stays requested, and an open request can be granted later: \
         {} keeps the shoot on seed {}",
        shown.to,
        command_line(&format!("cancel {}", shown.shoot), Some(shown.namespace.as_str())),
        shown.from
    ))
}

/// The refusal of the garden, with the sentence of the Event.
async fn refusal(session: &Session, shoot: &Shoot, goal: &str, since: Timestamp) -> Failure {
    let (namespace, uid) = (
        shoot.namespace().unwrap_or_default(),
        shoot.uid().unwrap_or_default(),
    );
    let published = Box::pin(events_of_garden(session, &namespace, &uid))
        .await
        .unwrap_or_default();
    match newest(&published, &["ForceRestoreRefused", "TakeoverWithdrawn"], since) {
        Some(sentence) => Failure::refused(format!("{goal} is refused: {sentence}")),
        None => Failure::refused(format!(
            "{goal} is refused; Event ForceRestoreRefused or TakeoverWithdrawn of the Shoot has the reason"
        )),
    }
}
