//! Closed zones: machines of a cluster in a closed zone exchange no packet with anybody, and nor do the pods
//! on them. What carries that out is an agent on each host of the cloud (crate `cloud-local-agent`); what is
//! wanted of it, and what it has done, is in one object a cluster, `isolation.<cluster>`:
//!
//! | key | value | who writes |
//! |---|---|---|
//! | `zone` | the account's name of the zone | [`Isolation`] |
//! | `since` | when it was first asked for, RFC 3339 | [`Isolation`] |
//! | `wanted` | `closed` or `open` | [`Isolation`] |
//! | `revision` | a number that grows with each change of `wanted` | [`Isolation`] |
//! | `host.<host>` | the revision that the host's kernel has | the host's agent, see [`Host`] |
//!
//! Promises:
//! - At most one zone of a cluster is ever closed: there is one object, its zone never changes, and it goes
//!   only when every host has said that it lets packets pass again.
//! - What is wanted is written in the version that was read, so of two writers one begins again. A host
//!   writes only its own key, for the object that it has read (by uid), and what it says of an older revision
//!   counts for nothing.
//! - **Every host** means each one in the list of hosts. An account without a list has nobody who would close
//!   anything: that is an error, never "closed". A host that is gone for good has to be taken out of the list
//!   by whoever took it away.
//!
//! What is closed is the way to and from a machine, as by the access list of its subnet. Here that holds
//! between two machines of the closed zone as well, which a real access list lets pass.

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
use runtime::{Error, Result, clock, wait};
use serde_json::json;

pub use host::{HOSTS, Host};
pub use machine::{MACHINES, Machine};
pub use order::{LABEL, Order};

use crate::{
    cloud::{self, Cloud},
    pod::CLUSTER,
};

/// How long one call waits for the hosts. Much longer than an agent takes that runs, and not longer than
/// other waits for the cloud: whoever waits keeps others from working.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(30);
/// How often a state is written again when others write it. More than writers of one cluster's object.
const ATTEMPTS: usize = 20;

/// Name of the object of a cluster; `cluster` is the shoot's technical id.
#[must_use]
pub fn name_of(cluster: &str) -> String {
    format!("isolation.{cluster}")
}

/// A zone that is closed, or is being closed or opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// What the account calls it.
    pub zone: String,
    /// When it was first asked for, RFC 3339.
    pub since: String,
    /// It is wanted closed, and every host has said that its kernel lets no packet pass.
    pub confirmed: bool,
}

/// The closed zone of one cluster.
pub struct Isolation {
    cloud: Cloud,
    cluster: String,
    objects: Api<ConfigMap>,
    patience: Duration,
}

impl Isolation {
    /// Of this cluster, by its technical id, in this account.
    #[must_use]
    pub fn new(cloud: Cloud, cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            objects: cloud.objects(),
            cloud,
            patience: CONFIRMED_WITHIN,
        }
    }

    /// With another bound for how long one call waits for the hosts. It is half a minute otherwise.
    #[must_use]
    pub fn waiting(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The zone that is closed, also one of which hosts have yet to say that it is closed, or open again.
    ///
    /// # Errors
    /// The cloud does not answer, or what it holds cannot be read. It is not concluded that none is closed.
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

    /// Closes the zone with this name, and waits until every host has confirmed it. One that is closed is
    /// left alone, and waited for.
    ///
    /// # Errors
    /// [`Error::NotReady`] while a host has not confirmed it: the wish stands, and the next call goes on
    /// waiting. [`Error::Config`] while another zone of the cluster is closed, and where no host is there
    /// that would close it.
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

    /// Opens the zone that is closed, and waits until every host has confirmed it. That none is closed is
    /// success.
    ///
    /// # Errors
    /// [`Error::NotReady`] while a host has not confirmed it: the wish stands, and the next call goes on
    /// waiting.
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
        let read = found.map(|object| Order::of(&object).map(|order| (object, order)));
        read.transpose().map_err(|why| order::damaged(&name, &why))
    }

    /// The first wish. None if somebody else was faster.
    async fn begin(&self, zone: &str) -> Result<Option<Order>> {
        let wanted = json!({
            "metadata": {"name": name_of(&self.cluster), "labels": {CLUSTER: self.cluster, LABEL: "true"}},
            "data": {"zone": zone, "since": clock::now_rfc3339_nano(), "wanted": order::CLOSED, "revision": "1"},
        });
        let wanted: ConfigMap = serde_json::from_value(wanted)
            .map_err(|e| Error::bug(format!("the object of a closed zone is none: {e}")))?;
        self.written(self.objects.create(&self.cloud.creating(), &wanted).await)
    }

    /// The wish for something else. None if the object is not what was read any more.
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
            Ok(object) => Order::of(&object)
                .map(Some)
                .map_err(|why| order::damaged(&name_of(&self.cluster), &why)),
            // Somebody else has made, changed or removed it.
            Err(kube::Error::Api(status)) if status.code == 409 || status.is_not_found() => Ok(None),
            Err(error) => Err(cloud::error(
                format_args!("could not say which zone of {} is to be closed", self.cluster),
                error,
            )),
        }
    }

    /// Waits until every host has what is wanted. Gives the object as it is then.
    async fn await_hosts(&self, order: &Order, hosts: &BTreeSet<String>) -> Result<ConfigMap> {
        let name = name_of(&self.cluster);
        let overtaken = || wait::Look::Fail(self.overtaken());
        let found = wait::until(&self.objects, &name, self.patience, |object| {
            match object.map(Order::of) {
                Some(Ok(now)) if now.same_as(order) => match now.missing(hosts) {
                    missing if missing.is_empty() => wait::Look::Done,
                    missing => wait::Look::Wait(format!(
                        "zone {} is not {} on {}: see that cloud-local-agent runs there; a host that is gone for \
                         good has to be taken out of ConfigMap {HOSTS}",
                        now.zone,
                        order::word(now.shut),
                        missing.join(", ")
                    )),
                },
                Some(Err(why)) => wait::Look::Fail(order::damaged(&name, &why)),
                Some(Ok(_)) | None => overtaken(),
            }
        });
        found.await?.ok_or_else(|| self.overtaken())
    }

    /// At last. Says whether it was still what was read.
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
