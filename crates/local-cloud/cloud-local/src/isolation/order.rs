//! The order to hosts, as written in the object of a cluster.

use std::collections::BTreeSet;

use ::api::meta::ErrorCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use runtime::Error;

use crate::pod::CLUSTER;

/// Label of these objects, by which agents select the objects.
pub const LABEL: &str = "local.provider.extensions.gardener.cloud/isolation";
/// Values of `wanted`.
pub(super) const CLOSED: &str = "closed";
const OPEN: &str = "open";
/// Prefix of a host's key.
pub(super) const OF_HOST: &str = "host.";

pub(super) fn word(shut: bool) -> &'static str {
    if shut { CLOSED } else { OPEN }
}

/// The order to hosts for a cluster, with the confirmations of the hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The cluster: the shoot's technical id.
    pub cluster: String,
    /// The account's name of the zone.
    pub zone: String,
    /// Time of the first request to close, RFC 3339.
    pub since: String,
    /// All packets must be dropped.
    pub shut: bool,
    /// The number of the order within this object.
    pub revision: u64,
    pub(super) uid: String,
    pub(super) name: String,
    done: BTreeSet<String>,
}

impl Order {
    /// Reads the object.
    ///
    /// # Errors
    /// The reason why the object is invalid. An invalid object must change nothing.
    pub fn from_config_map(object: &ConfigMap) -> Result<Self, String> {
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

    /// Whether the host has confirmed that the kernel has applied the order.
    #[must_use]
    pub fn is_done_by(&self, host: &str) -> bool {
        self.done.contains(host)
    }

    /// The hosts without a confirmation.
    pub(super) fn missing(&self, hosts: &BTreeSet<String>) -> Vec<String> {
        hosts.difference(&self.done).cloned().collect()
    }

    /// Whether both are the same order, regardless of the confirmations.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        (&self.uid, self.revision) == (&other.uid, other.revision)
    }
}

pub(super) fn damaged(name: &str, why: &str) -> Error {
    Error::config(
        ErrorCode::ErrInfraDependencies,
        format!(
            "ConfigMap {name} in the cloud does not say which zone is closed: {why}; put its content right"
        ),
    )
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
