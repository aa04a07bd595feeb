//! Closed zones: machines of a cluster in a closed zone, and pods on these machines, exchange no packet with
//! any peer. An agent on each host of the cloud (crate `cloud-local-agent`) closes the zone. The order to the
//! agents, and their confirmations, are in a single object per cluster, `isolation.<cluster>`:
//!
//! | key | value | writer |
//! |---|---|---|
//! | `zone` | the account's name of the zone | [`Isolation`] |
//! | `since` | time of the first request, RFC 3339 | [`Isolation`] |
//! | `wanted` | `closed` or `open` | [`Isolation`] |
//! | `revision` | a number that grows with each change of `wanted` | [`Isolation`] |
//! | `host.<host>` | the revision in the host's kernel | the host's agent, see [`Host`] |
//!
//! Promises:
//! - At most one zone of a cluster is ever closed. There is a single object with a fixed zone, and the object
//!   is deleted only after every host has confirmed the opening.
//! - The order is written with the resourceVersion that was read, so a writer that lost a conflict begins
//!   again. A host writes only the host's own key, for the object that was read (by UID). A confirmation of
//!   an older revision does not count.
//! - **Every host** means each host in the list of hosts. In an account without a list, no agent could close
//!   a zone: that is an error, never "closed". The administrator who removes a host for good has to remove
//!   the host from the list.
//!
//! A closing covers all traffic of a machine, like the access list of the machine's subnet. Here, traffic
//! between two machines of the closed zone is closed as well, unlike with a real access list.

mod host;
mod machine;
mod order;

use std::{collections::BTreeSet, time::Duration};

use ::api::meta::ErrorCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, Patch, Preconditions},
};
use runtime::{Error, Result, client::wait, clock};
use serde_json::json;

pub use host::{HOSTS, Host};
pub use machine::{MACHINES, Machine};
pub use order::{LABEL, Order};

use crate::{
    cloud::{self, Cloud},
    pod::CLUSTER,
};

/// Time in which a call waits for the hosts. Much longer than a running agent takes, and not longer than
/// further waits for the cloud: a waiting call occupies a worker.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(30);
/// Maximum attempts of a write with conflicts. More than the writers of a cluster's object.
const ATTEMPTS: usize = 20;

/// Name of the object of a cluster; `cluster` is the shoot's technical id.
#[must_use]
pub fn name_of(cluster: &str) -> String {
    format!("isolation.{cluster}")
}

/// A zone that is closed, or is being closed or opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The account's name of the zone.
    pub zone: String,
    /// Time of the first request, RFC 3339.
    pub since: String,
    /// The zone is ordered closed, and every host has confirmed that the kernel drops all packets.
    pub confirmed: bool,
}

/// The closed zone of a cluster.
pub struct Isolation {
    cloud: Cloud,
    cluster: String,
    objects: Api<ConfigMap>,
    patience: Duration,
}

impl Isolation {
    /// For the cluster with this technical id, in this account.
    #[must_use]
    pub fn new(cloud: Cloud, cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            objects: cloud.objects(),
            cloud,
            patience: CONFIRMED_WITHIN,
        }
    }

    /// Sets the time in which a call waits for the hosts. The default is half a minute.
    #[must_use]
    pub fn waiting(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The closed zone, including a zone that some hosts have yet to confirm as closed, or as open again.
    ///
    /// # Errors
    /// The cloud does not answer, or the object is invalid. An error never means that no zone is closed.
    pub async fn find(&self) -> Result<Option<Closed>> {
        let Some((_, order)) = self.read().await? else {
            return Ok(None);
        };
        let confirmed = order.shut && order.missing(&host::all(&self.cloud).await?).is_empty();
        Ok(Some(Closed {
            zone: order.zone,
            since: order.since,
            confirmed,
        }))
    }

    /// Closes the zone with this name, and waits for the confirmation of every host. A zone that is already
    /// closed is not written again, only awaited.
    ///
    /// # Errors
    /// [`Error::NotReady`] while a confirmation is missing: the order stays, and the next call continues the
    /// wait. [`Error::Config`] while a different zone of the cluster is closed, and if no host is registered.
    pub async fn close(&self, zone: &str) -> Result<()> {
        let hosts = host::all(&self.cloud).await?;
        for _ in 0..ATTEMPTS {
            let order = match self.read().await? {
                None => self.begin(zone).await?,
                Some((_, order)) if order.zone != zone => return Err(self.other(&order.zone, zone)),
                Some((_, order)) if order.shut => Some(order),
                Some((object, order)) => self.write(&object, &order, true).await?,
            };
            if let Some(order) = order {
                return self.await_hosts(&order, &hosts).await.map(drop);
            }
        }
        Err(self.overtaken())
    }

    /// Opens the closed zone, and waits for the confirmation of every host. Success without a closed zone.
    ///
    /// # Errors
    /// [`Error::NotReady`] while a confirmation is missing: the order stays, and the next call continues the
    /// wait.
    pub async fn open(&self) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let order = match self.read().await? {
                None => return Ok(()),
                Some((_, order)) if !order.shut => Some(order),
                Some((object, order)) => self.write(&object, &order, false).await?,
            };
            if let Some(order) = order {
                let hosts = host::all(&self.cloud).await?;
                let object = self.await_hosts(&order, &hosts).await?;
                if self.remove(&object).await? {
                    return Ok(());
                }
            }
        }
        Err(self.overtaken())
    }

    async fn read(&self) -> Result<Option<(ConfigMap, Order)>> {
        let name = name_of(&self.cluster);
        let found = self.objects.get_opt(&name).await.map_err(|error| {
            cloud::error(
                format_args!("could not look for the closed zone of {}", self.cluster),
                error,
            )
        })?;
        let read = found.map(|object| Order::from_config_map(&object).map(|order| (object, order)));
        read.transpose().map_err(|why| order::damaged(&name, &why))
    }

    /// Creates the order. `None` if a concurrent writer was faster.
    async fn begin(&self, zone: &str) -> Result<Option<Order>> {
        let wanted = json!({
            "metadata": {"name": name_of(&self.cluster), "labels": {CLUSTER: self.cluster, LABEL: "true"}},
            "data": {"zone": zone, "since": clock::now_rfc3339_nano(), "wanted": order::CLOSED, "revision": "1"},
        });
        let wanted: ConfigMap = serde_json::from_value(wanted)
            .map_err(|e| Error::bug("the object of a closed zone is none").caused_by(e))?;
        self.written(self.objects.create(&self.cloud.creating(), &wanted).await)
    }

    /// Changes the order. `None` if the object has changed since the read.
    async fn write(&self, read: &ConfigMap, order: &Order, shut: bool) -> Result<Option<Order>> {
        let meta = &read.metadata;
        let revision = order.revision + 1;
        let body = json!({
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "data": {"wanted": order::word(shut), "revision": revision.to_string()},
        });
        let (name, patch) = (name_of(&self.cluster), Patch::Merge(body));
        self.written(self.objects.patch(&name, &self.cloud.changing(), &patch).await)
    }

    fn written(&self, answer: kube::Result<ConfigMap>) -> Result<Option<Order>> {
        match answer {
            Ok(object) => Order::from_config_map(&object)
                .map(Some)
                .map_err(|why| order::damaged(&name_of(&self.cluster), &why)),
            // A concurrent writer has created, changed or removed the object.
            Err(kube::Error::Api(status)) if status.code == 409 || status.is_not_found() => Ok(None),
            Err(error) => Err(cloud::error(
                format_args!("could not say which zone of {} is to be closed", self.cluster),
                error,
            )),
        }
    }

    /// Waits until every host has confirmed the order. Returns the object at that time.
    async fn await_hosts(&self, order: &Order, hosts: &BTreeSet<String>) -> Result<ConfigMap> {
        let name = name_of(&self.cluster);
        let overtaken = || wait::WaitState::Fail(self.overtaken());
        let found = wait::until(&self.objects, &name, self.patience, |object| {
            match object.map(Order::from_config_map) {
                Some(Ok(now)) if now.same_as(order) => match now.missing(hosts) {
                    missing if missing.is_empty() => wait::WaitState::Done,
                    missing => wait::WaitState::Wait(format!(
                        "zone {} is not {} on {}: see that cloud-local-agent runs there; a host that is gone for \
                         good has to be taken out of ConfigMap {HOSTS}",
                        now.zone,
                        order::word(now.shut),
                        missing.join(", ")
                    )),
                },
                Some(Err(why)) => wait::WaitState::Fail(order::damaged(&name, &why)),
                Some(Ok(_)) | None => overtaken(),
            }
        });
        found.await?.ok_or_else(|| self.overtaken())
    }

    /// Removes the object. Returns whether the object was unchanged since the read.
    async fn remove(&self, read: &ConfigMap) -> Result<bool> {
        let only = DeleteParams::default().preconditions(Preconditions {
            uid: read.metadata.uid.clone(),
            resource_version: read.metadata.resource_version.clone(),
        });
        match self.objects.delete(&name_of(&self.cluster), &only).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(true),
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
            Err(error) => Err(cloud::error(
                format_args!("could not forget the zone of {} that is open again", self.cluster),
                error,
            )),
        }
    }

    fn other(&self, there: &str, wanted: &str) -> Error {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "zone {there} of {} is closed, and only one may be: open it before zone {wanted} is closed",
                self.cluster
            ),
        )
    }

    fn overtaken(&self) -> Error {
        Error::transient(format!(
            "somebody else has just changed which zone of {} is closed",
            self.cluster
        ))
    }
}
