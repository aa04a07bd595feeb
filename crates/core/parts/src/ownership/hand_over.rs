//! The confirmation of a planned hand-over by the owner record (docs/understand/ownership.md, "The
//! destination"). The Shoot alone is the word of the source's gardenlet, and a stolen certificate of that
//! gardenlet writes the same fields while the processes of the source still run. A source that has stopped
//! has deleted its identity from DNS before the hand-over.

use std::time::Duration;

use api::gardencore::Shoot;
use kube::ResourceExt;
use mutation::Mutation;
use owner_checks::OwnerClaim;
use ownership::{HandOverTestimony, Phase, SeedEpoch, Step};
use placement::ownership_status;
use runtime::Result;
use tokio::time::Instant;

use crate::{
    ClaimSteps, Facts, FenceClock, OwnerRecord,
    ownership::claim::{advance, refused, writer},
};

/// Interval between two reads of the owner record.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Whether the owner record confirms a hand-over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandOverVerdict {
    /// The record does not contradict the hand-over, or no planned hand-over waits for this seed.
    Confirmed,
    /// The record names a seed in the epoch that the source has handed over, or in an earlier epoch. The
    /// sentence is for people.
    Doubted(String),
}

impl ClaimSteps {
    /// Asks the DNS servers before the seed claims the owner record, which replaces the identity of the
    /// source. A doubted hand-over is recorded like a takeover: not drained, and without the end of the epoch
    /// that the source has reported. The caller begins again with the new record, and fences the source.
    ///
    /// Servers that do not answer confirm the hand-over: a planned move must not wait for a server that is
    /// down. A seed without owner checks has no fence, and asks no server. `fence` keeps the answer of a
    /// server for the next attempts of the restoration in this epoch.
    ///
    /// # Errors
    /// The Seed lacks a field of the owner record, or the garden does not take the write.
    pub async fn confirm_hand_over(f: &Facts, fence: &FenceClock) -> Result<HandOverVerdict> {
        let source = source_of_hand_over(&f.shoot).filter(|_| !fence.is_hand_over_confirmed());
        let Some(source) = source else {
            return Ok(HandOverVerdict::Confirmed);
        };
        let Some(own) = OwnerRecord::wanted(f)? else {
            return Ok(HandOverVerdict::Confirmed);
        };
        let of_source = OwnerClaim {
            epoch: source.epoch,
            ..own
        };
        let testimony = ask(&of_source).await;
        if testimony == HandOverTestimony::Confirmed {
            fence.note_confirmed_hand_over();
        }
        if Mutation::HandOverNotConfirmed.is_active() || testimony != HandOverTestimony::Contradicted {
            return Ok(HandOverVerdict::Confirmed);
        }
        advance(f, |now| {
            if now.phase != Phase::Claiming || !now.drained {
                return Ok(None);
            }
            now.step(&writer(f), Step::DoubtHandOver)
                .map(Some)
                .map_err(refused)
        })
        .await?;
        Ok(HandOverVerdict::Doubted(format!(
            "status.ownership of the Shoot says that seed {} has handed over the shoot in epoch {}, and the owner record {} still names a \
             seed in this epoch or in an earlier epoch: Seed {} waits for the fence, as after a takeover. No gardenlet hands over like \
             that: treat seed {} as hostile",
            source.seed,
            source.epoch,
            of_source.name,
            f.seed_object.name_any(),
            source.seed
        )))
    }
}

/// The source of a planned hand-over to the present owner, before the owner has chosen the data.
fn source_of_hand_over(shoot: &Shoot) -> Option<SeedEpoch<String>> {
    let recorded = ownership_status::ownership(shoot).ok()?;
    let is_hand_over = recorded.phase == Phase::Claiming && recorded.drained;
    let source = recorded.source.filter(|_| is_hand_over)?;
    (source.seed != recorded.now.seed).then_some(source)
}

/// The testimony of the record. A record that contradicts the hand-over is asked again for longer than a
/// server may be behind. Later silence, or a record that decides nothing, takes back no contradiction: only a
/// server that confirms the hand-over does. Silence is asked again for one interval, so that a short failure
/// of servers hides no contradiction.
async fn ask(of_source: &OwnerClaim) -> HandOverTestimony {
    let settings = of_source.terms.settings();
    let begin = Instant::now();
    let mut is_contradicted = false;
    let settled = async {
        loop {
            match of_source.ask_hand_over().await {
                HandOverTestimony::Confirmed => return HandOverTestimony::Confirmed,
                HandOverTestimony::Contradicted => is_contradicted = true,
                HandOverTestimony::Unknown if !is_contradicted && begin.elapsed() >= settings.interval => {
                    return HandOverTestimony::Unknown;
                }
                HandOverTestimony::Unknown => {}
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let patience = settings.propagation + settings.interval;
    if let Ok(testimony) = tokio::time::timeout(patience, settled).await {
        return testimony;
    }
    match of_source.ask_hand_over().await {
        HandOverTestimony::Unknown if is_contradicted => HandOverTestimony::Contradicted,
        testimony => testimony,
    }
}

#[cfg(test)]
#[path = "hand_over_tests.rs"]
mod tests;
