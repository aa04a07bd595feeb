//! The other side of a closed zone: the hosts of the cloud.
//!
//! A host is in the list of hosts, ConfigMap `hosts`, from the first start of its agent on: a key with its name. Nobody takes it out
//! because it is silent: a host that is silent may still let packets pass.

use std::collections::BTreeSet;

use ::api::meta::ErrorCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{ResourceExt, api::Patch};
use runtime::{Error, Result, clock};
use serde_json::{Value, json};

use super::LABEL;
use crate::{
    cloud::{self, Cloud},
    ledger,
    pod::CLUSTER,
};

/// Name of the list of hosts. No technical id (`shoot--…`) looks like it.
pub const HOSTS: &str = "hosts";
/// What is wanted.
pub(super) const CLOSED: &str = "closed";
const OPEN: &str = "open";
/// What a host's key begins with.
const OF_HOST: &str = "host.";

pub(super) fn word(shut: bool) -> &'static str {
    if shut { CLOSED } else { OPEN }
}

/// What is wanted of hosts for one cluster, and which of them have done it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The cluster: the shoot's technical id.
    pub cluster: String,
    /// What the account calls the zone.
    pub zone: String,
    /// When closing was first asked for, RFC 3339.
    pub since: String,
    /// No packet is to pass.
    pub shut: bool,
    /// Which wish it is, of this object.
    pub revision: u64,
    uid: String,
    name: String,
    done: BTreeSet<String>,
}

impl Order {
    /// Reads the object.
    ///
    /// # Errors
    /// It cannot be understood, and why. Nothing is concluded from it.
    pub fn of(object: &ConfigMap) -> Result<Self, String> {
        let data = object.data.as_ref();
        let field = |key: &str| {
            let found = data
                .and_then(|data| data.get(key))
                .filter(|text| !text.is_empty());
            found.ok_or_else(|| format!("it has no {key}"))
        };
        let revision = field("revision")?;
        let shut = match field("wanted")?.as_str() {
            CLOSED => true,
            OPEN => false,
            other => return Err(format!("{other:?} is neither {CLOSED} nor {OPEN}")),
        };
        let cluster = object.labels().get(CLUSTER);
        let done = data.into_iter().flatten();
        Ok(Self {
            cluster: cluster
                .cloned()
                .ok_or_else(|| format!("it has no label {CLUSTER}"))?,
            zone: field("zone")?.clone(),
            since: field("since")?.clone(),
            shut,
            revision: revision
                .parse()
                .map_err(|_| format!("revision {revision:?} is no number"))?,
            uid: object.uid().unwrap_or_default(),
            name: object.name_any(),
            done: done
                .filter(|(_, told)| *told == revision)
                .filter_map(|(key, _)| key.strip_prefix(OF_HOST).map(str::to_owned))
                .collect(),
        })
    }

    /// The host has told that its kernel has it.
    #[must_use]
    pub fn is_done_by(&self, host: &str) -> bool {
        self.done.contains(host)
    }

    /// Those hosts that have not.
    pub(super) fn missing(&self, hosts: &BTreeSet<String>) -> Vec<String> {
        hosts.difference(&self.done).cloned().collect()
    }

    /// The same wish, whoever has fulfilled it.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        (&self.uid, self.revision) == (&other.uid, other.revision)
    }
}

/// Names of all hosts.
pub(super) async fn all(cloud: &Cloud) -> Result<BTreeSet<String>> {
    let list = cloud.objects().get_opt(HOSTS).await;
    let list = list.map_err(|e| cloud::error("could not read the list of hosts", e))?;
    let hosts: BTreeSet<_> = list.and_then(|list| list.data).into_iter().flatten().collect();
    if hosts.is_empty() {
        return Err(Error::config(
            ErrorCode::ErrInfraDependencies,
            format!(
                "ConfigMap {HOSTS} of account {} lists no host that could close a zone: run cloud-local-agent on \
                 every host of the cloud",
                cloud.account()
            ),
        ));
    }
    Ok(hosts.into_iter().map(|(host, _)| host).collect())
}

/// A host, as its agent speaks for it in one account.
pub struct Host {
    cloud: Cloud,
    name: String,
}

impl Host {
    /// Of this name, which is its Node's.
    #[must_use]
    pub fn new(cloud: Cloud, name: &str) -> Self {
        Self {
            cloud,
            name: name.to_owned(),
        }
    }

    /// Enters the host into the list, unless it is there. From now on no zone is closed without it.
    ///
    /// # Errors
    /// The cloud refuses.
    pub async fn register(&self) -> Result<()> {
        let list = ledger::open(&self.cloud, HOSTS, "hosts").await?;
        if list.data.is_some_and(|data| data.contains_key(&self.name)) {
            return Ok(());
        }
        // Only its own key is written: hosts do not meet.
        let entry = json!({"data": {&self.name: clock::now_rfc3339_nano()}});
        let objects = self.cloud.objects();
        let written = objects.patch(HOSTS, &self.cloud.changing(), &Patch::Merge(entry));
        written.await.map(drop).map_err(|e| {
            cloud::error(
                format_args!("could not enter {} into the list of hosts", self.name),
                e,
            )
        })
    }

    /// What the account wants of hosts.
    ///
    /// # Errors
    /// The cloud does not answer, or an object cannot be understood.
    pub async fn orders(&self) -> Result<Vec<Order>> {
        let marked = kube::api::ListParams::default().labels(&format!("{LABEL}=true"));
        let objects = self.cloud.objects().list(&marked).await;
        let objects = objects.map_err(|e| cloud::error("could not list the closed zones", e))?;
        let read = objects
            .items
            .iter()
            .map(|object| Order::of(object).map_err(|why| super::damaged(&object.name_any(), &why)));
        read.collect()
    }

    /// Says that the host's kernel has what is wanted. To be called when it has, and not before.
    ///
    /// # Errors
    /// The cloud refuses.
    pub async fn confirm(&self, order: &Order) -> Result<()> {
        self.say(order, json!(order.revision.to_string())).await
    }

    /// Takes back what the host has said.
    ///
    /// # Errors
    /// The cloud refuses.
    pub async fn withdraw(&self, order: &Order) -> Result<()> {
        self.say(order, Value::Null).await
    }

    /// Of the object that was read. Another one of its name is another wish, and one that is gone needs no answer.
    async fn say(&self, order: &Order, what: Value) -> Result<()> {
        let body = json!({
            "metadata": {"uid": order.uid},
            "data": {format!("{OF_HOST}{}", self.name): what},
        });
        let objects = self.cloud.objects();
        let written = objects.patch(&order.name, &self.cloud.changing(), &Patch::Merge(body));
        match written.await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(()),
            Err(error) => Err(cloud::error(
                format_args!("could not say on {} what host {} does", order.name, self.name),
                error,
            )),
        }
    }
}
