//! The hosts' side of a closed zone.
//!
//! A host enters the list of hosts, ConfigMap `hosts`, at the first start of the host's agent: a key with the
//! host's name. Silence never removes a host: a silent host may still let packets pass.

use std::collections::BTreeSet;

use ::api::meta::ErrorCode;
use kube::{ResourceExt, api::Patch};
use runtime::{Error, Result, clock};
use serde_json::{Value, json};

use super::order::{LABEL, OF_HOST, Order, damaged};
use crate::{
    cloud::{self, Cloud},
    ledger,
};

/// Name of the list of hosts. Distinct from every technical id (`shoot--…`).
pub const HOSTS: &str = "hosts";
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

/// A host in an account, represented by the host's agent.
pub struct Host {
    cloud: Cloud,
    name: String,
}

impl Host {
    /// The host with this name; equal to the Node's name.
    #[must_use]
    pub fn new(cloud: Cloud, name: &str) -> Self {
        Self {
            cloud,
            name: name.to_owned(),
        }
    }

    /// Adds the host to the list, unless present. From now on, a closing needs this host's confirmation.
    ///
    /// # Errors
    /// The cloud refuses.
    pub async fn register(&self) -> Result<()> {
        let list = ledger::open(&self.cloud, HOSTS, "hosts").await?;
        if list.data.is_some_and(|data| data.contains_key(&self.name)) {
            return Ok(());
        }
        // Writes only the host's key, so hosts never conflict.
        let entry = json!({"data": {&self.name: clock::now_rfc3339_nano()}});
        let objects = self.cloud.objects();
        let written = objects
            .patch(HOSTS, &self.cloud.changing(), &Patch::Merge(entry))
            .await;
        written.map(drop).map_err(|e| {
            cloud::error(
                format_args!("could not enter {} into the list of hosts", self.name),
                e,
            )
        })
    }

    /// The account's orders to hosts.
    ///
    /// # Errors
    /// The cloud does not answer, or an object is invalid.
    pub async fn orders(&self) -> Result<Vec<Order>> {
        let marked = kube::api::ListParams::default().labels(&format!("{LABEL}=true"));
        let objects = self.cloud.objects().list(&marked).await;
        let objects = objects.map_err(|e| cloud::error("could not list the closed zones", e))?;
        let read = objects
            .items
            .iter()
            .map(|object| Order::from_config_map(object).map_err(|why| damaged(&object.name_any(), &why)));
        read.collect()
    }

    /// Confirms that the host's kernel has applied the order. Call only after the kernel has the rules.
    ///
    /// # Errors
    /// The cloud refuses.
    pub async fn confirm(&self, order: &Order) -> Result<()> {
        self.say(order, json!(order.revision.to_string())).await
    }

    /// Withdraws the confirmation of the host.
    ///
    /// # Errors
    /// The cloud refuses.
    pub async fn withdraw(&self, order: &Order) -> Result<()> {
        self.say(order, Value::Null).await
    }

    /// For exactly the object that was read (by UID). A new object of the same name is a new order, and a
    /// deleted object needs no answer.
    async fn say(&self, order: &Order, what: Value) -> Result<()> {
        let body = json!({
            "metadata": {"uid": order.uid},
            "data": {format!("{OF_HOST}{}", self.name): what},
        });
        let objects = self.cloud.objects();
        let patch = Patch::Merge(body);
        match objects.patch(&order.name, &self.cloud.changing(), &patch).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(()),
            Err(error) => Err(cloud::error(
                format_args!("could not say on {} what host {} does", order.name, self.name),
                error,
            )),
        }
    }
}
