//! Names of a shoot beside its owner record: an update of them says in which epoch the shoot is, and the
//! server makes it in that epoch only.
//!
//! A request that is delivered late may land when the right that let it out is long over
//! (docs/understand/ownership.md): beside the names of another seed, or of the same seed in a later epoch,
//! with the same values. The server compares, whenever it lands.

use std::time::Duration;

use api::extensions::{Cluster, DNSRecord};
use cloud_local::dns::{self, Held, Server, absolute};
use extension::Context;
use hickory_proto::{
    op::{Message, ResponseCode},
    rr::Name,
};
use owner_checks::OwnerClaim;
use runtime::{Error, Result};

use super::claim::epoch_name;

/// When a refused update is tried again. The owner record is written, or this seed learns that it has lost
/// the shoot.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// What the zone has to say for an update to be made.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    name: Name,
    text: String,
}

impl Epoch {
    /// For updates of a zone; none where owners are not checked, or the owner record lies in another zone: a
    /// server can only compare what is in the zone that it changes.
    pub(super) fn of(context: &Context<DNSRecord>, zone: &Name) -> Result<Option<Self>> {
        context
            .cluster
            .as_ref()
            .map_or(Ok(None), |cluster| Self::told(cluster, zone))
    }

    fn told(cluster: &Cluster, zone: &Name) -> Result<Option<Self>> {
        let Some(claim) = OwnerClaim::of(cluster)? else {
            return Ok(None);
        };
        let epoch = Self {
            name: epoch_name(&absolute(&claim.name)?)?,
            text: claim.epoch.to_string(),
        };
        let is_there = absolute(&claim.zone)? == *zone && zone.zone_of(&epoch.name);
        Ok(is_there.then_some(epoch))
    }

    /// Whether it still is so. If not, nothing was changed, and it is no matter of the values.
    async fn check(&self, server: &Server) -> Result<()> {
        let stands = match server.text_of(&self.name).await? {
            Held::Text(text) if text == self.text => return Ok(()),
            Held::Text(text) => format!("says {text:?}"),
            Held::Nothing => "says nothing".to_owned(),
            Held::Other(what) => what,
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

/// Sends an update that is made in this epoch only, and gives the server's verdict on the rest of it.
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn told(zone: &str, change: impl FnOnce(&mut Value)) -> Option<(String, String)> {
        let mut spec = json!({
            "cloudProfile": {},
            "seed": {
                "spec": {
                    "settings": {"ownerChecks": {"enabled": true}},
                    "dns": {"internal": {"type": "local", "domain": "internal.example.test", "zone": "example.test",
                        "credentialsRef": {}}},
                },
                "status": {"clusterIdentity": "seed-a"},
            },
            "shoot": {"status": {"ownership": {"epoch": 3}, "advertisedAddresses": [
                {"name": "internal", "url": "https://api.web.dev.internal.example.test"},
            ]}},
        });
        change(&mut spec);
        let cluster =
            serde_json::from_value(json!({"metadata": {"name": "shoot--dev--web"}, "spec": spec})).unwrap();
        let epoch = Epoch::told(&cluster, &absolute(zone).unwrap()).unwrap();
        epoch.map(|epoch| (epoch.name.to_ascii(), epoch.text))
    }

    #[test]
    fn what_is_beside_the_owner_record_is_changed_in_its_epoch() {
        let name = "epoch.owner.web.dev.internal.example.test.".to_owned();
        assert_eq!(told("example.test", |_| {}), Some((name.clone(), "3".into())));
        let first = told("Example.Test.", |spec| {
            spec["shoot"]["status"]["ownership"] = Value::Null;
        });
        assert_eq!(first, Some((name, "1".into())));
        // Of the users' names nobody knows whether that zone has the record: a parent has not, nor has a part
        // of it that is given away.
        for other in ["test", "internal.example.test", "example.com"] {
            assert_eq!(told(other, |_| {}), None, "{other}");
        }
        let off =
            |spec: &mut Value| spec["seed"]["spec"]["settings"]["ownerChecks"]["enabled"] = json!(false);
        assert_eq!(told("example.test", off), None);
    }
}
