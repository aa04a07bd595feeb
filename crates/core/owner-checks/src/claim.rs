//! The inputs of an owner check, read from the Cluster that a gardenlet writes.

use std::{fmt::Display, net::SocketAddr, sync::Arc, time::Duration};

use api::{
    extensions::Cluster as ClusterObject,
    gardencore::seed::{OwnerChecks, SeedDNSProviderConfig},
    meta::{ErrorCode, RawExtension},
};
use ownership::{
    Authorities, HandOverTestimony, Network, OwnershipClaim, SecondWitness, Terms, Watch, Witnesses,
    ask_hand_over, check_before_sealing, check_owned_elsewhere,
};
use permit::Clock;
use runtime::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::terms::terms;

/// A gardenlet records the identity of the seed when the gardenlet starts.
const WAIT_FOR_IDENTITY: Duration = Duration::from_secs(10);

/// This seed's claim to a shoot in a single epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerClaim {
    /// The uid of the Shoot. Empty where the Cluster has no uid, or in a process for a single shoot.
    pub shoot_uid: String,
    /// Name of the owner record.
    pub name: String,
    /// Identity of this seed, expected as the value of the record.
    pub identity: String,
    /// Zone of the record.
    pub zone: String,
    /// DNS servers of the zone. If the list is empty, the check finds the servers by the zone's NS records.
    pub authorities: Vec<SocketAddr>,
    /// The ownership epoch of the claim.
    pub epoch: i64,
    /// Interval of the check and validity of an answer.
    pub terms: Terms,
}

impl OwnerClaim {
    /// The claim in the Cluster; `None` where the seed does not check owners.
    ///
    /// # Errors
    /// The seed checks owners, and a required field is missing or invalid. Then no work may be done for the
    /// shoot.
    pub fn from_cluster(cluster: &ClusterObject) -> Result<Option<Self>> {
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

    /// Creates the check; the first question leaves when the caller runs the [`Watch`]. `second`: the second
    /// witness.
    ///
    /// # Errors
    /// The claim or the terms are invalid.
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

    /// Checks once whether the owner record names a different seed in exactly the epoch of this claim.
    ///
    /// # Errors
    /// The claim is invalid, or the record does not prove that; the error lists the answer of each server.
    pub async fn check_owned_elsewhere(&self) -> Result<()> {
        let (claim, authorities) = self.parsed()?;
        let checked = check_owned_elsewhere(&claim, &self.terms, &authorities, &Network).await;
        checked.map_err(Error::transient)
    }

    /// Asks once whether the owner record confirms a hand-over by the seed of exactly this epoch. An invalid
    /// claim gets no answer.
    pub async fn ask_hand_over(&self) -> HandOverTestimony {
        let Ok((claim, authorities)) = self.parsed() else {
            return HandOverTestimony::Unknown;
        };
        ask_hand_over(&claim, &self.terms, &authorities, &Network).await
    }

    fn parsed(&self) -> Result<(OwnershipClaim, Authorities)> {
        let claim = OwnershipClaim::new(&self.name, &self.identity, self.epoch).map_err(cannot_be_asked)?;
        let authorities = match self.authorities.as_slice() {
            [] => Authorities::discover(&self.zone),
            named => Authorities::named(&self.zone, named.iter().copied()),
        };
        Ok((claim, authorities.map_err(cannot_be_asked)?))
    }
}

fn cannot_be_asked(error: impl Display) -> Error {
    wrong(format!("it cannot be asked who owns the shoot: {error}"))
}

/// Derives the owner record's name from the internal name of the shoot's API, as the gardenlet reports that
/// name in `status.advertisedAddresses`.
fn owner_name(shoot: &Value) -> Option<String> {
    let addresses = shoot.pointer("/status/advertisedAddresses")?.as_array()?;
    let internal = addresses.iter().find(|address| address["name"] == "internal")?;
    placement::names::owner_record(internal["url"].as_str()?.strip_prefix("https://")?)
}

/// The same rule as `placement::names::uid`: a restored garden gives the object a new uid, and the status
/// keeps the first uid.
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

/// The ownership epoch of a Cluster's shoot, whether or not the seed checks owners. A shoot that was never
/// handed over is in epoch 1.
///
/// # Errors
/// `status.ownership.epoch` is not a number. Such a value must not count as epoch 1.
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
