//! Networks in the cloud: a ConfigMap per network, and a ledger in which ranges are claimed before networks
//! are created.
//!
//! Each network has a list of instances, empty at first. The list is created only for a network that never
//! existed, and is never created again. For the cloud-controller-manager, an instance that is missing in the
//! list is gone (I4).
//!
//! Two shoots, on two seeds, may request a network at the same moment. The ledger is a single object, written
//! with the resourceVersion that was read. So the loser of a conflict claims again, and sees the first claim.
//! A claim survives a crash before the creation of the network, and is released last at the removal of the
//! network.

use std::collections::BTreeMap;

use api::meta::ErrorCode;
use ipnet::Ipv4Net;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use runtime::{Error, Result, clock};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{
    cloud::{self, Cloud},
    ledger,
    range::{self, overlap},
};

/// Name of the ledger. Distinct from every technical id (`shoot--…`).
const LEDGER: &str = "networks";
/// Label of a network's ConfigMap.
const LABEL: &str = "local.provider.extensions.gardener.cloud/network";
/// Maximum attempts of a claim after conflicts. More than the shoots that a seed creates at a time.
const ATTEMPTS: usize = 20;

/// A network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Distinguishes the network from a later network of the same name.
    pub id: String,
    /// The address range of the network.
    pub range: Ipv4Net,
}

/// A request for a network.
#[derive(Clone, Debug)]
pub struct Request {
    /// The pool of ranges.
    pub pool: Ipv4Net,
    /// Exactly this range.
    pub fixed: Option<Ipv4Net>,
    /// The network that was there before.
    pub before: Option<Network>,
    /// Ranges that must not be used, in addition to existing networks.
    pub taken: Vec<Ipv4Net>,
}

/// The networks of an account.
pub struct Networks {
    cloud: Cloud,
    objects: Api<ConfigMap>,
}

impl Networks {
    /// Of this account.
    #[must_use]
    pub fn new(cloud: Cloud) -> Self {
        let objects = cloud.objects();
        Self { cloud, objects }
    }

    /// The account, for messages.
    #[must_use]
    pub fn account(&self) -> &str {
        self.cloud.account()
    }

    /// The network of this name.
    pub async fn find(&self, name: &str) -> Result<Option<Network>> {
        let found = self.objects.get_opt(name).await;
        let found = found.map_err(|e| cloud::error(format_args!("could not look for network {name}"), e))?;
        found
            .map(|object| network_of(name, object.data.as_ref()))
            .transpose()
    }

    /// Creates a network that overlaps no existing network.
    pub async fn make(&self, name: &str, request: &Request) -> Result<Network> {
        let network = self.claim(name, request).await?;
        // Before the network: an existing network proves that the list was created, and a list that is
        // missing then has been lost.
        if request.before.is_none() {
            self.begin_list(name).await?;
        }
        let object = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.into()),
                labels: Some(BTreeMap::from([(LABEL.into(), "true".into())])),
                ..ObjectMeta::default()
            },
            data: Some(data_of(&network)),
            ..ConfigMap::default()
        };
        match self.objects.create(&self.cloud.creating(), &object).await {
            Ok(_) => Ok(network),
            // Created by an attempt whose answer was lost.
            Err(kube::Error::Api(status)) if status.is_already_exists() => self
                .find(name)
                .await?
                .ok_or_else(|| Error::transient(format!("network {name} came and went"))),
            Err(error) => Err(cloud::error(format_args!("could not make network {name}"), error)),
        }
    }

    /// Creates the empty list of instances, unless the list exists.
    async fn begin_list(&self, name: &str) -> Result<()> {
        let list = ConfigMap {
            metadata: ObjectMeta {
                name: Some(cloud::instances(name)),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        match self.objects.create(&self.cloud.creating(), &list).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(error) => Err(cloud::error(
                format_args!("could not begin the list of instances of network {name}"),
                error,
            )),
        }
    }

    /// Removes a network with the list of instances, and releases the range.
    pub async fn remove(&self, name: &str) -> Result<()> {
        for object in [name, &cloud::instances(name)] {
            let doing = format!("could not remove {object} of network {name}");
            cloud::delete(&self.objects, object, &doing).await?;
        }
        let given_up = Patch::Merge(json!({"data": {name: null}}));
        match self
            .objects
            .patch(LEDGER, &PatchParams::default(), &given_up)
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(cloud::error(
                format_args!("could not give the range of network {name} back"),
                error,
            )),
        }
    }

    /// Records the name's range in the ledger, or returns the recorded range.
    async fn claim(&self, name: &str, request: &Request) -> Result<Network> {
        for _ in 0..ATTEMPTS {
            let ledger = ledger::open(&self.cloud, LEDGER, "networks").await?;
            let claims = claims_of(&ledger)?;
            if let Some(claimed) = claims.get(name) {
                return Ok(claimed.clone());
            }
            let others: Vec<_> = claims.into_values().map(|network| network.range).collect();
            let network = choose(name, request, &others)?;
            let entry = Some(format!("{} {}", network.id, network.range));
            let failed = format!("could not claim a range for network {name}");
            if ledger::write(&self.cloud, &ledger, (name, entry), &failed).await? {
                return Ok(network);
            }
        }
        Err(Error::transient(format!(
            "the ledger of networks was written by others {ATTEMPTS} times in a row"
        )))
    }
}

/// The network to claim: the former network, else the requested range, else the first free range.
fn choose(name: &str, request: &Request, others: &[Ipv4Net]) -> Result<Network> {
    let id = || {
        let seed = format!("{name} {}", clock::now_rfc3339_nano());
        let digest = Sha256::digest(seed.as_bytes());
        digest
            .iter()
            .take(8)
            .fold("net-".to_owned(), |id, byte| format!("{id}{byte:02x}"))
    };
    let wanted = match (&request.before, request.fixed) {
        (Some(before), _) => Some(before.clone()),
        (None, Some(range)) => Some(Network { id: id(), range }),
        (None, None) => None,
    };
    let taken: Vec<Ipv4Net> = others.iter().chain(&request.taken).copied().collect();
    if let Some(wanted) = wanted {
        return match taken.iter().find(|other| overlap(&wanted.range, other)) {
            None => Ok(wanted),
            Some(other) => Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "the node network {} overlaps {other}, which is in use: choose another",
                    wanted.range
                ),
            )),
        };
    }
    range::free(request.pool, &taken).map(|range| Network { id: id(), range }).ok_or_else(|| {
        Error::config(
            ErrorCode::ErrInfraQuotaExceeded,
            format!(
                "no network of size /{} is free in the pool {}: remove unused shoots or give a larger pool",
                range::GIVEN_OUT,
                request.pool
            ),
        )
    })
}

fn data_of(network: &Network) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("id".into(), network.id.clone()),
        ("nodesCIDR".into(), network.range.to_string()),
    ])
}

fn network_of(name: &str, data: Option<&BTreeMap<String, String>>) -> Result<Network> {
    let field = |key: &str| data.and_then(|data| data.get(key));
    match (field("id"), field("nodesCIDR").map(|text| range::read(text))) {
        (Some(id), Some(Ok(range))) => Ok(Network {
            id: id.clone(),
            range,
        }),
        _ => Err(damaged(name)),
    }
}

fn claims_of(ledger: &ConfigMap) -> Result<BTreeMap<String, Network>> {
    let claims = ledger.data.iter().flatten();
    claims
        .map(
            |(name, claim)| match claim.split_once(' ').map(|(id, text)| (id, range::read(text))) {
                Some((id, Ok(range))) => Ok((name.clone(), Network { id: id.into(), range })),
                _ => Err(damaged(LEDGER)),
            },
        )
        .collect()
}

fn damaged(name: &str) -> Error {
    Error::config(
        ErrorCode::ErrInfraDependencies,
        format!("ConfigMap {name} in the cloud does not say which network it is: put its content back"),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn request(fixed: Option<&str>) -> Request {
        Request {
            pool: "10.180.0.0/23".parse().unwrap(),
            fixed: fixed.map(|text| text.parse().unwrap()),
            before: None,
            taken: vec!["10.180.0.0/24".parse().unwrap()],
        }
    }

    #[test]
    fn a_network_avoids_the_shoots_own_ranges_and_other_networks() {
        let chosen = choose("s", &request(None), &[]).unwrap();
        assert_eq!(chosen.range.to_string(), "10.180.1.0/24");
        assert!(chosen.id.starts_with("net-") && chosen.id.len() == 20);
        let full = choose("s", &request(None), &[chosen.range]).unwrap_err();
        assert_eq!(full.codes(), [ErrorCode::ErrInfraQuotaExceeded]);
    }

    #[test]
    fn a_fixed_range_that_is_in_use_is_refused() {
        assert_eq!(
            choose("s", &request(Some("10.9.0.0/16")), &[])
                .unwrap()
                .range
                .to_string(),
            "10.9.0.0/16"
        );
        let error = choose(
            "s",
            &request(Some("10.9.0.0/16")),
            &["10.9.3.0/24".parse().unwrap()],
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the node network 10.9.0.0/16 overlaps 10.9.3.0/24, which is in use: choose another"
        );
    }

    #[test]
    fn what_was_there_before_is_made_again() {
        let before = Network {
            id: "net-1".into(),
            range: "10.180.1.0/24".parse().unwrap(),
        };
        let request = Request {
            before: Some(before.clone()),
            ..request(Some("10.9.0.0/16"))
        };
        assert_eq!(choose("s", &request, &[]).unwrap(), before);
    }
}
