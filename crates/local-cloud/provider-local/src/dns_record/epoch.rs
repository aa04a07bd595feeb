//! Names of a shoot beside the owner record. An update requires the epoch of the shoot, and the server
//! applies the update only in that epoch.
//!
//! A late request may arrive long after the end of the permit (docs/understand/ownership.md). By then, the
//! record may belong to a different seed, or to the same seed in a later epoch with the same values. The
//! server compares the epoch at any time of arrival.

use std::time::Duration;

use api::extensions::{Cluster, DNSRecord};
use cloud_local::dns::{self, Server, TextRecord, absolute};
use extension::Context;
use hickory_proto::{
    op::{Message, ResponseCode},
    rr::Name,
};
use owner_checks::OwnerClaim;
use runtime::{Error, Result};

use super::claim::epoch_name;

/// Requeue interval after a refused update. Meanwhile the owner record is written, or this seed learns of the
/// loss.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// The text that the zone must have for an update.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    name: Name,
    text: String,
}

impl Epoch {
    /// The requirement for updates of a zone. `None` if owners are not checked, or if the owner record is in
    /// a different zone. A server can only compare records in the zone of the update.
    pub(super) fn for_zone(context: &Context<DNSRecord>, zone: &Name) -> Result<Option<Self>> {
        context
            .cluster
            .as_ref()
            .map_or(Ok(None), |cluster| Self::from_cluster(cluster, zone))
    }

    fn from_cluster(cluster: &Cluster, zone: &Name) -> Result<Option<Self>> {
        let Some(claim) = OwnerClaim::from_cluster(cluster)? else {
            return Ok(None);
        };
        let epoch = Self {
            name: epoch_name(&absolute(&claim.name)?)?,
            text: claim.epoch.to_string(),
        };
        let is_there = absolute(&claim.zone)? == *zone && zone.zone_of(&epoch.name);
        Ok(is_there.then_some(epoch))
    }

    /// Whether the requirement still holds. If not, the update changed nothing, and the values were not the
    /// cause.
    async fn check(&self, server: &Server) -> Result<()> {
        let stands = match server.text_of(&self.name).await? {
            TextRecord::Text(text) if text == self.text => return Ok(()),
            TextRecord::Text(text) => format!("says {text:?}"),
            TextRecord::Nothing => "says nothing".to_owned(),
            TextRecord::Other(what) => what,
        };
        Err(Error::not_ready(
            TRY_AGAIN,
            format!(
                "{} {stands}, and the shoot is in ownership epoch {} here: nothing was changed in its zone",
                self.name, self.text
            ),
        ))
    }
}

/// Sends an update that applies only in this epoch, and returns the server's verdict on the remaining
/// requirements.
pub(super) async fn send(server: &Server, update: Message, epoch: Option<&Epoch>) -> Result<ResponseCode> {
    let Some(epoch) = epoch else {
        return server.update(update).await;
    };
    let code = server
        .update(dns::only_while(update, &epoch.name, &epoch.text)?)
        .await?;
    if matches!(code, ResponseCode::NXRRSet | ResponseCode::NXDomain) {
        epoch.check(server).await?;
    }
    Ok(code)
}

#[cfg(test)]
#[path = "epoch_tests.rs"]
mod tests;
