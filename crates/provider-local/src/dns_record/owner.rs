//! Writes and removes the owner record of a shoot: both names in one update, and only while they are what was
//! read.
//!
//! Reading comes first, and nobody holds anything between reading and writing: the server compares again. So
//! two writers, a writer that was stopped in between, and an update that was on the way for long all end in
//! the same way: what was read does not stand any more, nothing is changed, and what stands now is judged
//! anew.

use cloud_local::dns::{self, Held, Server};
use hickory_proto::{op::ResponseCode, rr::Name};
use runtime::{Error, Result};
use tracing::info;

use super::claim::{Changes, Claim};

/// For how many seconds it may be kept where nothing else is said. Owner checks ask past every cache
/// (docs/understand/ownership.md).
const TTL: u32 = 10;
/// So often is judged anew when somebody else has written meanwhile. Whoever loses twice has lost to a later
/// epoch, or is tried again.
const ATTEMPTS: usize = 3;

/// Makes the record that of the claim. It is refused for ever where a later epoch has begun, or this one has
/// ended.
pub(super) async fn write(server: &Server, zone: &Name, claim: &Claim, ttl: Option<i64>) -> Result<()> {
    let ttl = ttl.and_then(|ttl| u32::try_from(ttl).ok()).unwrap_or(TTL);
    for _ in 0..ATTEMPTS {
        // The epoch first: asked for last, the former owner could be seen beside the epoch that a twin of
        // ours has written meanwhile, which would be refused.
        let mut epoch = server.text_of(&claim.epoch_name).await?;
        let owner = server.text_of(&claim.name).await?;
        if epoch == Held::Nothing && owner != Held::Nothing {
            // Or both were written in between, for the first time.
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

/// Takes away what the claim has written, if it still stands.
pub(super) async fn remove(server: &Server, zone: &Name, claim: &Claim) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let epoch = server.text_of(&claim.epoch_name).await?;
        let owner = server.text_of(&claim.name).await?;
        let Some(changes) = claim.remove(&epoch, &owner) else {
            info!(name = %claim.name, epoch = claim.epoch(), ?owner, "nothing of ours is there");
            return Ok(());
        };
        if change(server, zone, &changes, TTL).await? {
            info!(name = %claim.name, epoch = claim.epoch(), "the owner record was removed");
            return Ok(());
        }
    }
    Err(contended(claim))
}

/// Whether the changes were made. If not, something else stood there than what was read.
async fn change(server: &Server, zone: &Name, changes: &Changes, ttl: u32) -> Result<bool> {
    match server.update(dns::change(zone, changes, ttl)?).await? {
        ResponseCode::NoError => Ok(true),
        ResponseCode::NXRRSet | ResponseCode::YXRRSet | ResponseCode::NXDomain | ResponseCode::YXDomain => {
            Ok(false)
        }
        code => Err(server.refused(zone, code)),
    }
}

fn contended(claim: &Claim) -> Error {
    Error::transient(format!(
        "{} or its epoch is changed by somebody else all the time",
        claim.name
    ))
}
