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
mod tests {
    #![allow(clippy::unwrap_used)]
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn read(change: &Value) -> Result<Order, String> {
        let mut object = json!({
            "metadata": {"name": "isolation.web", "uid": "1", "labels": {CLUSTER: "web"}},
            "data": {"zone": "a", "since": "2026-01-01T00:00:00Z", "wanted": "closed", "revision": "2",
                "host.one": "2", "host.two": "1"},
        });
        for (key, value) in change.as_object().into_iter().flatten() {
            object["data"][key] = value.clone();
        }
        Order::from_config_map(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn what_a_host_said_of_an_earlier_wish_is_nothing() {
        let order = read(&json!({})).unwrap();
        assert!(order.shut && order.is_done_by("one") && !order.is_done_by("two"));
        let hosts = ["one", "three", "two"].map(str::to_owned).into();
        assert_eq!(order.missing(&hosts), ["three", "two"]);
        assert!(!read(&json!({"wanted": "open"})).unwrap().shut);
        assert!(!order.same_as(&read(&json!({"revision": "3"})).unwrap()));
    }

    #[rstest]
    #[case("zone", "", "no zone")]
    #[case("since", "", "no since")]
    #[case("wanted", "maybe", "neither closed nor open")]
    #[case("revision", "x", "is no number")]
    fn what_cannot_be_understood_is_told(#[case] key: &str, #[case] value: &str, #[case] why: &str) {
        let told = read(&json!({key: value})).unwrap_err();
        assert!(told.contains(why), "{told}");
    }
}
