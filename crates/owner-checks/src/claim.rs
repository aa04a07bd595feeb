//! What a gardenlet hands over with the Cluster: all that is needed to ask whose the shoot is.

use std::{fmt::Display, net::SocketAddr, sync::Arc, time::Duration};

use api::{
    extensions::Cluster as ClusterObject,
    gardencore::seed::{OwnerChecks, SeedDNSProviderConfig},
    meta::{ErrorCode, RawExtension},
};
use ownership::{Authorities, Claim, Network, SecondWitness, Terms, Watch, Witnesses, check_before_sealing};
use permit::Clock;
use runtime::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::terms::terms;

/// A gardenlet records its seed's identity when it starts.
const WAIT_FOR_IDENTITY: Duration = Duration::from_secs(10);

/// One shoot in one epoch, as this seed has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerClaim {
    /// The uid of the Shoot; empty where the Cluster has none, or in a process of a single shoot.
    pub shoot_uid: String,
    /// Name of the owner record.
    pub name: String,
    /// This seed's, which the record must have.
    pub identity: String,
    /// Zone of the record.
    pub zone: String,
    /// Its servers; found by the zone's NS records where none are named.
    pub authorities: Vec<SocketAddr>,
    /// The ownership epoch.
    pub epoch: i64,
    /// How often it is asked, and for how long an answer is good.
    pub terms: Terms,
}

impl OwnerClaim {
    /// What the Cluster hands over; none where the seed does not check owners.
    ///
    /// # Errors
    /// It does, and something that is needed is missing or wrong: then nothing may be done for the shoot.
    pub fn of(cluster: &ClusterObject) -> Result<Option<Self>> {
        let Some(seed) = &cluster.spec.seed else {
            return Ok(None);
        };
        let checks: Option<OwnerChecks> = part(seed, "/spec/settings/ownerChecks")?;
        let Some(checks) = checks.filter(|checks| checks.enabled) else {
            return Ok(None);
        };
        let dns: Option<SeedDNSProviderConfig> = part(seed, "/spec/dns/internal")?;
        let (Some(dns), Some(name)) = (dns, owner_name(&cluster.spec.shoot.0)) else {
            return Err(wrong(
                "the Seed has spec.settings.ownerChecks on and no spec.dns.internal: add it, or switch them off",
            ));
        };
        Ok(Some(Self {
            shoot_uid: shoot_uid(&cluster.spec.shoot.0),
            name,
            identity: identity(&seed.0)?,
            zone: dns.zone_name().to_owned(),
            authorities: checks.addresses().map_err(wrong)?,
            epoch: epoch(cluster)?,
            terms: terms(&checks, Terms::default()).map_err(wrong)?,
        }))
    }

    /// Begins to ask; nothing is asked before it is run. `second`: the second witness.
    ///
    /// # Errors
    /// It cannot be asked like that.
    pub fn watch(&self, second: Arc<dyn SecondWitness>) -> Result<Watch> {
        let (claim, authorities) = self.parsed()?;
        let witnesses = Witnesses {
            authorities: Arc::new(authorities),
            wire: Arc::new(Network),
            second,
        };
        Watch::new(claim, self.terms, witnesses, Clock::default()).map_err(cannot_be_asked)
    }

    /// Checks once whether a DNS server contradicts the record, before a planned move stops the API.
    ///
    /// # Errors
    /// The claim is invalid, or a server contradicts the record; the error lists the answer of each server.
    pub async fn check_before_sealing(&self) -> Result<()> {
        let (claim, authorities) = self.parsed()?;
        let checked = check_before_sealing(&claim, &self.terms, &authorities, &Network).await;
        checked.map_err(Error::transient)
    }

    fn parsed(&self) -> Result<(Claim, Authorities)> {
        let claim = Claim::new(&self.name, &self.identity, self.epoch).map_err(cannot_be_asked)?;
        let authorities = match self.authorities.as_slice() {
            [] => Authorities::found(&self.zone),
            named => Authorities::named(&self.zone, named.iter().copied()),
        };
        Ok((claim, authorities.map_err(cannot_be_asked)?))
    }
}

fn cannot_be_asked(error: impl Display) -> Error {
    wrong(format!("it cannot be asked who owns the shoot: {error}"))
}

/// Beside the internal name of the shoot's API, which the gardenlet tells.
fn owner_name(shoot: &Value) -> Option<String> {
    let addresses = shoot.pointer("/status/advertisedAddresses")?.as_array()?;
    let internal = addresses.iter().find(|address| address["name"] == "internal")?;
    placement::names::owner_record(internal["url"].as_str()?.strip_prefix("https://")?)
}

/// As `placement::names::uid`: a garden that was restored gives the object another uid, and the status keeps
/// the first.
fn shoot_uid(shoot: &Value) -> String {
    let uids = ["/status/uid", "/metadata/uid"].map(|path| shoot.pointer(path).and_then(Value::as_str));
    let uid = uids.into_iter().flatten().find(|uid| !uid.is_empty());
    uid.unwrap_or_default().to_owned()
}

fn identity(seed: &Value) -> Result<String> {
    let identity = seed.pointer("/status/clusterIdentity").and_then(Value::as_str);
    identity
        .filter(|identity| !identity.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| {
            Error::not_ready(
                WAIT_FOR_IDENTITY,
                "the gardenlet has not recorded status.clusterIdentity of the Seed yet",
            )
        })
}

/// The ownership epoch of the shoot of a Cluster, whether or not its owner is checked. A shoot that was never
/// handed over is in its first.
///
/// # Errors
/// It says anything else than a number, which is no first epoch.
pub fn epoch(cluster: &ClusterObject) -> Result<i64> {
    match cluster.spec.shoot.0.pointer("/status/ownership/epoch") {
        None | Some(Value::Null) => Ok(1),
        Some(epoch) => epoch.as_i64().ok_or_else(|| {
            wrong(format!(
                "status.ownership.epoch of the Shoot is {epoch}, which is no number"
            ))
        }),
    }
}

fn part<T: DeserializeOwned>(of: &RawExtension, path: &str) -> Result<Option<T>> {
    let found = of.0.pointer(path).filter(|part| !part.is_null());
    found
        .map(|part| serde_json::from_value(part.clone()))
        .transpose()
        .map_err(|error| wrong(format!("{path} of the Seed cannot be understood: {error}")))
}

fn wrong(message: impl Into<String>) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, message)
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
