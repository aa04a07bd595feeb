//! Addresses of load balancers: a single ledger for the account, because two clusters in the account must not
//! get the same address.
//!
//! The ledger is a single object, written with the resourceVersion that was read. So a writer that lost a
//! conflict begins again and sees the address of the first writer. An address is recorded before a Service
//! shows the address, and is released before the Service is gone.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc};

use ::api::meta::ErrorCode;
use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::ConfigMap;
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::{
    account::Account,
    cloud::Cloud,
    ledger,
    traffic::{self, Traffic},
};

/// Name of the ledger.
pub const LEDGER: &str = "load-balancers";
/// Maximum attempts to choose an address after conflicts. More than the Services that all clusters of an
/// account create at a time.
const ATTEMPTS: usize = 20;

/// The entry of a load balancer in the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalancer {
    /// The address of the load balancer.
    pub address: Ipv4Addr,
    /// `namespace/name` of the Service, for people.
    pub service: String,
}

type Entries = BTreeMap<String, LoadBalancer>;

/// The load balancers of a cluster.
pub struct LoadBalancers {
    account: Arc<Account>,
    cluster: String,
    range: Ipv4Net,
}

impl LoadBalancers {
    /// Of this cluster; new addresses come from `range`.
    #[must_use]
    pub fn new(account: Arc<Account>, cluster: &str, range: Ipv4Net) -> Self {
        Self {
            account,
            cluster: cluster.to_owned(),
            range,
        }
    }

    /// The address of a Service's load balancer, assigned if missing. `wanted` counts only for a new
    /// assignment.
    pub async fn ensure(&self, uid: &str, service: &str, wanted: Option<&str>) -> Result<Ipv4Addr> {
        let cloud = self.account.open().await?;
        let key = self.key(uid);
        for _ in 0..ATTEMPTS {
            let ledger = open(&cloud).await?;
            let entries = entries(&ledger)?;
            if let Some(there) = entries.get(&key) {
                return Ok(there.address);
            }
            let address = choose(self.range, &entries, wanted)?;
            let entry = LoadBalancer {
                address,
                service: service.to_owned(),
            };
            let text = serde_json::to_string(&entry)
                .map_err(|e| Error::bug("a load balancer does not serialise").caused_by(e))?;
            if write(&cloud, &ledger, &key, Some(text)).await? {
                return Ok(address);
            }
        }
        Err(Error::transient(format!(
            "the ledger of load balancers was written by others {ATTEMPTS} times in a row"
        )))
    }

    /// Forwards the address of a Service's load balancer to the cluster's machines, by the present `traffic`.
    pub async fn carry(&self, uid: &str, service: &str, address: Ipv4Addr, traffic: &Traffic) -> Result<()> {
        let cloud = self.account.open().await?;
        traffic::carry(&cloud, &self.cluster, (uid, service), address, traffic).await
    }

    /// Releases the address of a Service's load balancer; packets to the address are dropped then. The
    /// address and even the ledger may be missing: the deletion of a Service that never got an address must
    /// not wait for ever.
    pub async fn release(&self, uid: &str) -> Result<()> {
        let cloud = self.account.open().await?;
        // Before a further Service gets the address.
        traffic::end(&cloud, uid).await?;
        let key = self.key(uid);
        for _ in 0..ATTEMPTS {
            let ledger = open(&cloud).await?;
            let there = ledger.data.as_ref().is_some_and(|data| data.contains_key(&key));
            if !there || write(&cloud, &ledger, &key, None).await? {
                return Ok(());
            }
        }
        Err(Error::transient(format!(
            "the ledger of load balancers was written by others {ATTEMPTS} times in a row"
        )))
    }

    fn key(&self, uid: &str) -> String {
        format!("{}.{uid}", self.cluster)
    }
}

/// A free address. The first and the last address of the range are never assigned.
fn choose(range: Ipv4Net, taken: &Entries, wanted: Option<&str>) -> Result<Ipv4Addr> {
    let of = |address: Ipv4Addr| taken.values().find(|other| other.address == address);
    if let Some(text) = wanted {
        let problem = |what: String| {
            let code = ErrorCode::ErrConfigurationProblem;
            Error::config(code, format!("spec.loadBalancerIP {text:?} {what}"))
        };
        let address: Ipv4Addr = text.parse().map_err(|_| problem("is no IPv4 address".into()))?;
        if !range.contains(&address) {
            return Err(problem(format!(
                "is not in the range {range}: choose one in it, or leave it out"
            )));
        }
        return match of(address) {
            None => Ok(address),
            Some(other) => Err(problem(format!(
                "is that of {}: choose another, or leave it out",
                other.service
            ))),
        };
    }
    range
        .hosts()
        .find(|address| of(*address).is_none())
        .ok_or_else(|| {
            Error::config(
                ErrorCode::ErrInfraQuotaExceeded,
                format!(
                    "no address is free in {range}: remove unused Services of type LoadBalancer, or give a larger \
                     --load-balancer-range"
                ),
            )
        })
}

fn entries(ledger: &ConfigMap) -> Result<Entries> {
    let data = ledger.data.iter().flatten();
    data.map(|(key, text)| {
        let entry = serde_json::from_str(text).map_err(|why| {
            Error::config(
                ErrorCode::ErrInfraDependencies,
                format!("entry {key} of ConfigMap {LEDGER} in the cloud cannot be read: {why}; put its content right"),
            )
        })?;
        Ok((key.clone(), entry))
    })
    .collect()
}

async fn open(cloud: &Cloud) -> Result<ConfigMap> {
    ledger::open(cloud, LEDGER, "load balancers").await
}

async fn write(cloud: &Cloud, read: &ConfigMap, key: &str, entry: Option<String>) -> Result<bool> {
    let failed = "could not write the ledger of load balancers";
    ledger::write(cloud, read, (key, entry), failed).await
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn taken(addresses: &[&str]) -> Entries {
        addresses
            .iter()
            .map(|address| {
                let entry = LoadBalancer {
                    address: address.parse().unwrap(),
                    service: "default/other".into(),
                };
                (format!("c.{address}"), entry)
            })
            .collect()
    }

    #[rstest]
    #[case::first(&[], None, Some("10.0.0.1"))]
    #[case::next(&["10.0.0.1"], None, Some("10.0.0.2"))]
    #[case::gap(&["10.0.0.2"], None, Some("10.0.0.1"))]
    #[case::elsewhere(&["192.0.2.1"], None, Some("10.0.0.1"))]
    #[case::full(&["10.0.0.1", "10.0.0.2"], None, None)]
    #[case::wanted(&["10.0.0.1"], Some("10.0.0.2"), Some("10.0.0.2"))]
    #[case::wanted_and_taken(&["10.0.0.2"], Some("10.0.0.2"), None)]
    #[case::wanted_elsewhere(&[], Some("192.0.2.1"), None)]
    #[case::wanted_rubbish(&[], Some("here"), None)]
    fn an_address_is_given_out_once(
        #[case] others: &[&str],
        #[case] wanted: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let chosen = choose("10.0.0.0/30".parse().unwrap(), &taken(others), wanted);
        assert_eq!(
            chosen.as_ref().ok().map(ToString::to_string).as_deref(),
            expected,
            "{chosen:?}"
        );
        if let Err(error) = chosen {
            assert_eq!(error.codes().len(), 1, "somebody can mend it: {error}");
        }
    }

    #[test]
    fn a_ledger_that_cannot_be_read_gives_nothing_out() {
        let ledger = ConfigMap {
            data: Some(BTreeMap::from([("c.1".into(), "10.0.0.1".into())])),
            ..ConfigMap::default()
        };
        assert!(entries(&ledger).unwrap_err().to_string().contains("c.1"));
    }
}
