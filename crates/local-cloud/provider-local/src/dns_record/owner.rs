//! Writes and removes the owner record of a shoot: both names in a single update. The update applies only
//! while both names have the values that were read.
//!
//! The read comes first, and no lock is held between read and write: the server compares again. Two
//! concurrent writers, a writer that was stopped in between, and a late update all have the same result. The
//! values that were read are outdated, the update changes nothing, and the new values are judged again.

use api::extensions::OWNER_RECORD_TTL_SECONDS;
use cloud_local::dns::{self, Server, TextRecord};
use hickory_proto::{op::ResponseCode, rr::Name};
use runtime::{Error, Result};
use tracing::info;

use super::claim::{Changes, RecordClaim};

/// Maximum attempts after concurrent writes. A writer that loses twice has lost to a later epoch, or is
/// retried.
const ATTEMPTS: usize = 3;

/// Writes the claim into the record. The write is refused for ever after a later epoch has begun, or after
/// this epoch has ended.
pub(super) async fn write(server: &Server, zone: &Name, claim: &RecordClaim, ttl: Option<i64>) -> Result<()> {
    let ttl = ttl
        .and_then(|ttl| u32::try_from(ttl).ok())
        .unwrap_or(OWNER_RECORD_TTL_SECONDS);
    for _ in 0..ATTEMPTS {
        // The epoch is read first. Otherwise the former owner could be combined with the epoch that a second
        // process of this seed has written meanwhile. That combination would be refused.
        let mut epoch = server.text_of(&claim.epoch_name).await?;
        let owner = server.text_of(&claim.name).await?;
        if epoch == TextRecord::Nothing && owner != TextRecord::Nothing {
            // Alternatively, both names were written for the first time in between.
            epoch = server.text_of(&claim.epoch_name).await?;
        }
        let Some(changes) = claim.write(&epoch, &owner)? else {
            return Ok(());
        };
        let written = change(server, zone, &changes, ttl).await;
        let written = written.map_err(|error| {
            error.context(format!(
                "the owner record {} is not written, and nothing outside of this seed is begun without it",
                claim.name
            ))
        });
        if written? {
            info!(name = %claim.name, epoch = claim.epoch(), "the owner record is ours");
            return Ok(());
        }
    }
    Err(contended(claim))
}

/// Removes the values of the claim, if still present.
pub(super) async fn remove(server: &Server, zone: &Name, claim: &RecordClaim) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let epoch = server.text_of(&claim.epoch_name).await?;
        let owner = server.text_of(&claim.name).await?;
        let Some(changes) = claim.remove(&epoch, &owner) else {
            info!(name = %claim.name, epoch = claim.epoch(), ?owner, "nothing of ours is there");
            return Ok(());
        };
        if change(server, zone, &changes, OWNER_RECORD_TTL_SECONDS).await? {
            info!(name = %claim.name, epoch = claim.epoch(), "the owner record was removed");
            return Ok(());
        }
    }
    Err(contended(claim))
}

/// Whether the changes were applied. If not, the record differed from the record that was read.
async fn change(server: &Server, zone: &Name, changes: &Changes, ttl: u32) -> Result<bool> {
    match server.update(dns::change(zone, changes, ttl)?).await? {
        ResponseCode::NoError => Ok(true),
        ResponseCode::NXRRSet | ResponseCode::YXRRSet | ResponseCode::NXDomain | ResponseCode::YXDomain => {
            Ok(false)
        }
        code => Err(server.refused(zone, code)),
    }
}

fn contended(claim: &RecordClaim) -> Error {
    Error::transient(format!(
        "{} or its epoch is changed by somebody else all the time",
        claim.name
    ))
}
