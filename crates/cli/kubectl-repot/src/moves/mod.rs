//! `kubectl repot move` and `kubectl repot cancel`: edits of `spec.seedName`, and the progress of the move.

mod decision;
mod progress;
mod stall;

pub use decision::{decide_cancellation, decide_move, effect_of_cancellation};
pub use progress::{arrival, describe};
pub use stall::{Delay, fails_on_seed, fails_on_the_way, wait_for_delay};

use std::time::Duration;

use api::gardencore::Shoot;
use kube::ResourceExt;
use serde_json::json;

use crate::{
    answer::Answer,
    edit::{Edited, edit},
    failure::Failure,
    follow::{Report, follow},
    session::{SeedReading, Session},
    silence::SilenceWatch,
};

/// Moves a shoot: names the destination in the specification.
pub async fn request_move(session: &Session, read: Shoot, seed: &str) -> Result<Edited, Failure> {
    if let SeedReading::Missing = Box::pin(session.seed(seed)).await? {
        return Err(Failure::refused(format!("no Seed has the name {seed}")));
    }
    Box::pin(edit(session, read, |shoot| decide_move(shoot, seed))).await
}

/// Cancels a move: names the seed that has the shoot in the specification.
pub async fn request_cancellation(session: &Session, read: Shoot) -> Result<Edited, Failure> {
    Box::pin(edit(session, read, decide_cancellation)).await
}

/// Waits until the control plane of the shoot is complete in the seed, and reports a seed that hangs. The end
/// of `interrupt` ends the wait and leaves the move alone.
pub async fn wait_for_arrival(
    session: &Session,
    shoot: &Shoot,
    seed: &str,
    within: Duration,
    report: Report<'_>,
    interrupt: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let (namespace, name) = (shoot.namespace().unwrap_or_default(), shoot.name_any());
    let goal = format!("Shoot {namespace}/{name} on seed {seed}");
    let shoots = session.shoots(&namespace);
    let silence = SilenceWatch::default();
    let noted = |sentence: &str| {
        silence.note_change();
        report(sentence);
    };
    let arrives = follow(shoots, &name, &goal, within, &noted, |shoot| {
        let acting = shoot.and_then(|shoot| shoot.status.as_ref()?.seed_name.clone());
        silence.note_seed(acting.filter(|name| !name.is_empty()));
        arrival(shoot, seed)
    });
    tokio::select! {
        ended = Box::pin(silence.observe(session, &name, report, arrives)) => ended,
        () = interrupt => Err(Failure::failed(format!(
            "the wait was interrupted, and the move goes on; `kubectl repot status -n {namespace} {name}` shows the progress, \
             `kubectl repot cancel -n {namespace} {name}` cancels the move until status.seedName changes"
        ))),
    }
}

/// The answer to a request that was written, or that needed no write.
#[must_use]
pub fn answer(edited: &Edited, sentence: &str) -> Answer {
    let shoot = &edited.shoot;
    Answer::new(
        format!("{sentence}\n"),
        &json!({
            "namespace": shoot.namespace(),
            "name": shoot.name_any(),
            "wantedSeed": shoot.spec.seed_name,
            "actingSeed": shoot.status.as_ref().and_then(|status| status.seed_name.as_deref()),
            "changed": edited.unchanged.is_none(),
            "message": sentence,
        }),
    )
}
