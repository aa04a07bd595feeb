//! What a gardenlet hands over with the Cluster: all that is needed to ask whose the shoot is. Pure.

use std::{net::SocketAddr, time::Duration};

use api::{
    constants::OWNERSHIP_EPOCH,
    extensions::{Cluster as ClusterObject, ExtensionObject},
    gardencore::seed::{OwnerChecks, SeedDNSProviderConfig},
    meta::{ErrorCode, RawExtension},
};
use kube::ResourceExt;
use runtime::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Operation, Role, kind};

/// A gardenlet records its seed's identity when it starts.
const WAIT_FOR_IDENTITY: Duration = Duration::from_secs(10);

/// One shoot in one epoch, as this seed has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
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
}

/// Whether the owner's right is needed: not to let go of what is here (RX-42), not for what belongs to no shoot, and not for the
/// owner record itself, which is written before anybody can confirm it and whose writes are conditional instead.
pub(crate) fn concerns<K: ExtensionObject>(object: &K, operation: Operation) -> bool {
    operation.acts_outside() && Role::of(object, None) != Role::Shootless && !is_owner_record(object)
}

/// An annotation alone makes no owner record: a provider writes any other record whatever stands there.
fn is_owner_record<K: ExtensionObject>(object: &K) -> bool {
    let is_text = |object: &K| {
        let object = serde_json::to_value(object).unwrap_or_default();
        object.pointer("/spec/recordType") == Some(&json!("TXT"))
    };
    kind::name::<K>() == "DNSRecord" && object.annotations().contains_key(OWNERSHIP_EPOCH) && is_text(object)
}

impl Wanted {
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
            name,
            identity: identity(&seed.0)?,
            zone: dns.zone_name().to_owned(),
            authorities: checks.addresses().map_err(wrong)?,
            epoch: epoch(&cluster.spec.shoot.0)?,
        }))
    }
}

/// Beside the internal name of the shoot's API, which the gardenlet tells.
fn owner_name(shoot: &Value) -> Option<String> {
    let addresses = shoot.pointer("/status/advertisedAddresses")?.as_array()?;
    let internal = addresses.iter().find(|address| address["name"] == "internal")?;
    placement::names::owner_record(internal["url"].as_str()?.strip_prefix("https://")?)
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

/// A shoot that was never handed over is in its first. Anything else than a number is no first epoch.
fn epoch(shoot: &Value) -> Result<i64> {
    match shoot.pointer("/status/ownership/epoch") {
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
#[path = "wanted_tests.rs"]
mod tests;
