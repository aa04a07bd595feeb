//! Phases that a seed records while a shoot leaves the seed (docs/understand/ownership.md, "A planned move").
//! The phase decides the steps of a cancellation.
//!
//! Only for seeds with owner records: without owner checks, the epoch ends with the hand-over.

use ownership::{Phase, Step};
use runtime::{Result, error::Explain};

use crate::{
    Backups, Facts, OwnerRecord,
    ownership::claim::{advance, refused, writer},
    task::{NONE, PartTask},
};

/// The steps of a source that the gardenlet records in the garden.
#[derive(Debug)]
pub struct Departure;

impl Departure {
    /// [`Self::check_servers`], as a task.
    pub const CHECK_SERVERS: PartTask<Facts> = PartTask::new(
        "Checking that no DNS server contradicts the owner record",
        NONE,
        |input| Box::pin(Self::check_servers(input)),
    );
    /// [`Self::begin`], as a task.
    pub const BEGIN: PartTask<Facts> = PartTask::new(
        "Recording that the seed begins to leave the shoot",
        NONE,
        |input| Box::pin(Self::begin(input)),
    );
    /// [`Self::seal`], as a task.
    pub const SEAL: PartTask<Facts> = PartTask::new(
        "Recording that etcd will not serve again in this epoch",
        NONE,
        |input| Box::pin(Self::seal(input)),
    );
    /// [`Self::cancel`], as a task.
    pub const CANCEL: PartTask<Facts> =
        PartTask::new("Recording that the seed keeps the shoot", NONE, |input| {
            Box::pin(Self::cancel(input))
        });

    /// "Checking that no DNS server contradicts the owner record": runs while the API still serves. A server
    /// that shows a different record would delay the end of the epoch, and so the final snapshot, after the
    /// API has stopped.
    pub async fn check_servers(f: &Facts) -> Result<()> {
        let Some(claim) = OwnerRecord::claim(f).await? else {
            return Ok(());
        };
        let checked = claim.check_before_sealing().await;
        checked.context("the move does not stop the API yet; fix or stop the DNS server that contradicts")
    }

    /// "Recording that the seed begins to leave the shoot": phase `Leaving`. From here on the seed releases
    /// resources outside the seed.
    pub async fn begin(f: &Facts) -> Result<()> {
        step_from(f, Phase::Held, Step::Leave).await
    }

    /// "Recording that etcd will not serve again in this epoch": phase `Sealing`. This step must come after
    /// the stop of the API and before the deletion of the owner record. A move that is cancelled later
    /// continues in a new epoch.
    pub async fn seal(f: &Facts) -> Result<()> {
        step_from(f, Phase::Leaving, Step::Seal).await?;
        Backups::announce_sealing(f).await;
        Ok(())
    }

    /// "Recording that the seed keeps the shoot": a move was cancelled before the end of the epoch.
    pub async fn cancel(f: &Facts) -> Result<()> {
        step_from(f, Phase::Leaving, Step::CancelLeave).await
    }
}

/// Takes a step from this phase. In every other phase, an earlier run of the flow has taken the step.
async fn step_from(f: &Facts, phase: Phase, step: Step<String>) -> Result<()> {
    advance(f, |now| {
        if now.phase != phase {
            return Ok(None);
        }
        now.step(&writer(f), step.clone()).map(Some).map_err(refused)
    })
    .await
}
