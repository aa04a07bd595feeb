//! The instances of a cluster, as the cloud lists the instances.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use ::api::meta::ErrorCode;
use k8s_openapi::api::core::v1::{ConfigMap, NodeAddress};
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    account::Account,
    cloud::{self, Cloud, instances},
    provider_id::ProviderId,
};

/// Time for which a single answer of the cloud serves all Nodes. Much shorter than the time until a Node that
/// became not ready is checked. Long enough that some hundred Nodes that become not ready together (a zone is
/// cut off) cost a single request.
const ANSWER_SERVES: Duration = Duration::from_secs(1);

/// The kinds of addresses that a Node can have.
const ADDRESS_TYPES: &[&str] = &[
    "InternalIP",
    "ExternalIP",
    "InternalDNS",
    "ExternalDNS",
    "Hostname",
];

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Instance {
    /// Never reused for a later instance.
    pub id: String,
    /// The addresses of the instance.
    pub addresses: Vec<Address>,
    /// Zone of the instance.
    pub zone: String,
    /// Region of the zone.
    pub region: String,
    /// Size of the instance, as named by users of the cloud.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether the instance runs.
    pub state: State,
}

/// An address of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// `InternalIP`, `ExternalIP`, `InternalDNS`, `ExternalDNS` or `Hostname`.
    #[serde(rename = "type")]
    pub type_: String,
    /// The address.
    pub address: String,
}

/// Whether an instance runs. A terminated instance is not in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// The instance runs.
    Running,
    /// The instance exists, does not run, and can be started again.
    Stopped,
}

impl Instance {
    /// The id in the form of `spec.providerID`.
    #[must_use]
    pub fn provider_id(&self) -> ProviderId {
        ProviderId {
            zone: self.zone.clone(),
            id: self.id.clone(),
        }
    }

    /// The addresses in the form of a Node's status.
    #[must_use]
    pub fn node_addresses(&self) -> Vec<NodeAddress> {
        self.addresses
            .iter()
            .map(|address| NodeAddress {
                type_: address.type_.clone(),
                address: address.address.clone(),
            })
            .collect()
    }

    fn check(&self) -> Result<(), String> {
        if self.id.is_empty() || self.id.contains('/') {
            return Err("its id is empty or has a slash".into());
        }
        if self.zone.is_empty() || self.zone.contains('/') {
            return Err("its zone is empty or has a slash".into());
        }
        match self
            .addresses
            .iter()
            .find(|a| !ADDRESS_TYPES.contains(&a.type_.as_str()))
        {
            Some(wrong) => Err(format!("there is no address of type {:?}", wrong.type_)),
            None => Ok(()),
        }
    }
}

/// All instances of a cluster at one moment, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory(BTreeMap<String, Instance>);

impl Inventory {
    /// Reads the list of this name from the cloud. An error means an unknown state, not an empty list (I4).
    pub(crate) async fn read(cloud: &Cloud, name: &str) -> Result<Self> {
        // Not from a cache: an entry that is missing in a cache may only be late.
        let list = cloud.objects().get(name).await;
        let list =
            list.map_err(|e| cloud::error(format_args!("could not read the list of instances {name}"), e))?;
        Self::parse(&list).map_err(|why| {
            Error::config(
                ErrorCode::ErrInfraDependencies,
                format!("ConfigMap {name} in the cloud cannot be used: {why}; put its content right"),
            )
        })
    }

    /// Parses the list. A single invalid entry makes the whole list invalid: an instance that is missing in
    /// the rest would count as gone.
    pub fn parse(list: &ConfigMap) -> Result<Self, String> {
        if list.metadata.deletion_timestamp.is_some() {
            return Err("it is being deleted".into());
        }
        let mut ids = BTreeSet::new();
        let mut instances = BTreeMap::new();
        for (name, text) in list.data.iter().flatten() {
            let instance: Instance =
                serde_json::from_str(text).map_err(|e| format!("instance {name}: {e}"))?;
            instance.check().map_err(|e| format!("instance {name}: {e}"))?;
            if !ids.insert(instance.id.clone()) {
                return Err(format!(
                    "instance {name}: another one has the id {:?} too",
                    instance.id
                ));
            }
            instances.insert(name.clone(), instance);
        }
        Ok(Self(instances))
    }

    /// The instance of this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Instance> {
        self.0.get(name)
    }

    /// The instance of this id, with any name.
    #[must_use]
    pub fn by_id(&self, id: &str) -> Option<&Instance> {
        self.0.values().find(|instance| instance.id == id)
    }
}

impl FromIterator<(String, Instance)> for Inventory {
    fn from_iter<T: IntoIterator<Item = (String, Instance)>>(instances: T) -> Self {
        Self(instances.into_iter().collect())
    }
}

/// Reads the instances of a cluster.
pub struct Instances {
    account: Arc<Account>,
    list: String,
    last: Mutex<Option<(Instant, Result<Arc<Inventory>>)>>,
}

impl Instances {
    /// Of this cluster in this account.
    #[must_use]
    pub fn new(account: Arc<Account>, cluster: &str) -> Self {
        Self {
            account,
            list: instances(cluster),
            last: Mutex::new(None),
        }
    }

    /// All instances, not older than a second. An error means an unknown state, not an empty list (I4).
    pub async fn read(&self) -> Result<Arc<Inventory>> {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = last.as_ref()
            && at.elapsed() < ANSWER_SERVES
        {
            return answer.clone();
        }
        let answer = self.ask().await.map(Arc::new);
        *last = Some((Instant::now(), answer.clone()));
        answer
    }

    async fn ask(&self) -> Result<Inventory> {
        let doing = || format!("could not read the list of instances {}", self.list);
        let cloud = self.account.open().await.map_err(|e| e.context(doing()))?;
        Inventory::read(&cloud, &self.list).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const GOOD: &str = r#"{"id":"i-1","addresses":[{"type":"InternalIP","address":"10.180.1.5"}],"zone":"a","region":"local","type":"small","state":"stopped"}"#;

    fn list(entries: &[(&str, &str)]) -> ConfigMap {
        serde_json::from_value(json!({"data": entries.iter().copied().collect::<BTreeMap<_, _>>()})).unwrap()
    }

    #[test]
    fn an_instance_is_found_by_name_and_by_id() {
        let inventory = Inventory::parse(&list(&[("node-1", GOOD)])).unwrap();
        let instance = inventory.by_name("node-1").unwrap();
        assert_eq!(inventory.by_id("i-1"), Some(instance));
        assert_eq!(instance.state, State::Stopped);
        assert_eq!(instance.provider_id().to_string(), "local:///a/i-1");
        assert!(inventory.by_name("node-2").is_none() && inventory.by_id("node-1").is_none());
        assert_eq!(Inventory::parse(&list(&[])).unwrap(), Inventory::default());
    }

    /// An instance in the invalid part must not count as gone (I4).
    #[rstest]
    #[case::no_json("{")]
    #[case::no_id(r#"{"addresses":[],"zone":"a","region":"r","type":"t","state":"running"}"#)]
    #[case::empty_id(r#"{"id":"","addresses":[],"zone":"a","region":"r","type":"t","state":"running"}"#)]
    #[case::no_zone(r#"{"id":"i","addresses":[],"zone":"","region":"r","type":"t","state":"running"}"#)]
    #[case::unknown_state(r#"{"id":"i","addresses":[],"zone":"a","region":"r","type":"t","state":"paused"}"#)]
    #[case::unknown_address(
        r#"{"id":"i","addresses":[{"type":"IP","address":"1"}],"zone":"a","region":"r","type":"t","state":"running"}"#
    )]
    #[case::second_of_an_id(GOOD)]
    fn one_wrong_entry_makes_the_list_unusable(#[case] wrong: &str) {
        let why = Inventory::parse(&list(&[("node-1", GOOD), ("node-2", wrong)])).unwrap_err();
        assert!(why.contains("node-2"), "{why}");
    }

    #[test]
    fn a_list_that_goes_away_is_not_used() {
        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert!(Inventory::parse(&serde_json::from_value(going).unwrap()).is_err());
    }
}
