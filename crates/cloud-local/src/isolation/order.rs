//! What is wanted of hosts, as it is written in the object of a cluster.

use std::collections::BTreeSet;

use ::api::meta::ErrorCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use runtime::Error;

use crate::pod::CLUSTER;

/// Label of these objects, by which agents find them.
pub const LABEL: &str = "local.provider.extensions.gardener.cloud/isolation";
/// What is wanted.
pub(super) const CLOSED: &str = "closed";
const OPEN: &str = "open";
/// What a host's key begins with.
pub(super) const OF_HOST: &str = "host.";

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
    pub(super) uid: String,
    pub(super) name: String,
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

pub(super) fn damaged(name: &str, why: &str) -> Error {
    Error::config(
        ErrorCode::ErrInfraDependencies,
        format!(
            "ConfigMap {name} in the cloud does not say which zone is closed: {why}; put its content right"
        ),
    )
}
