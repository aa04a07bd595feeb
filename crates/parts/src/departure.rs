//! What a seed records of a shoot that leaves it (docs/understand/ownership.md, "A planned move"): how far it
//! is decides what a call-off has to do.
//!
//! Only where the seed keeps an owner record: where nobody asks whose the shoot is, its epoch ends with the
//! hand-over.

use ownership::{Phase, Step};
use runtime::{Result, error::Explain};

use crate::{
    Backups, Facts, OwnerRecord,
    claim::{advance, refused, writer},
};

/// The steps of a source that the garden knows of.
#[derive(Debug)]
pub struct Departure;

impl Departure {
    /// "Checking that no DNS server contradicts the owner record": while the API still serves. A server that
    /// shows another record would hold up the end of the epoch, and with it the final snapshot, after the API
    /// has stopped.
    pub async fn check_servers(f: &Facts) -> Result<()> {
        let Some(claim) = OwnerRecord::claim(f).await? else {
            return Ok(());
        };
        let checked = claim.check_before_sealing().await;
        checked.context("the move does not stop the API yet; fix or stop the DNS server that contradicts")
    }

    /// "Recording that the seed begins to leave the shoot": phase `Leaving`. From here on it lets go of what
    /// is outside.
    pub async fn begin(f: &Facts) -> Result<()> {
        step_from(f, Phase::Held, Step::Leave).await
    }

    /// "Recording that etcd will not serve again in this epoch": phase `Sealing`. It must come after the API
    /// has stopped and before the owner record goes. What is called off after it goes on in a new epoch.
    pub async fn seal(f: &Facts) -> Result<()> {
        step_from(f, Phase::Leaving, Step::Seal).await?;
        Backups::announce_sealing(f).await;
        Ok(())
    }

    /// "Recording that the seed keeps the shoot": a move was called off before its epoch had ended.
    pub async fn call_off(f: &Facts) -> Result<()> {
        step_from(f, Phase::Leaving, Step::Stay).await
    }
}

/// Takes a step from this phase. In any other one it was taken, by an earlier run of the flow.
async fn step_from(f: &Facts, phase: Phase, step: Step<String>) -> Result<()> {
    advance(f, |now| {
        if now.phase != phase {
            return Ok(None);
        }
        now.step(&writer(f), step.clone()).map(Some).map_err(refused)
    })
    .await
}
