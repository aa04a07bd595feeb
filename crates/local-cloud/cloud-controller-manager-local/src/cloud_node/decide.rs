//! The difference between a Node and the data of the cloud. Pure.

use cloud_local::{Instance, Inventory, ProviderId};
use k8s_openapi::api::core::v1::{Node, NodeAddress, Taint};
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use crate::nodes;

/// The kubelet sets this taint on a Node that the cloud has yet to describe. Only pods that tolerate the
/// taint are scheduled on the Node.
pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// The node address that the kubelet was started with.
pub const PROVIDED_IP: &str = "alpha.kubernetes.io/provided-node-ip";

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const TYPE: &str = "node.kubernetes.io/instance-type";

/// The wanted writes. Both may be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// All addresses of the Node, if the present addresses differ. Written first: once the taint is gone,
    /// readers rely on the addresses.
    pub addresses: Option<Vec<NodeAddress>>,
    /// The change that ends the initialisation: id, labels, and the removal of the taint.
    pub initialise: Option<Value>,
}

/// The reason why no decision is possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The cloud has no instance for this Node (yet).
    NoInstance,
    /// The kubelet was started with an address that the instance does not have.
    AddressUnknown(String),
}

/// Whether the Node waits to be described.
#[must_use]
pub fn is_uninitialised(node: &Node) -> bool {
    nodes::is_tainted(node, UNINITIALIZED)
}

/// Whether the Node belongs to a foreign cloud: the id has a different format, and an id cannot be changed.
#[must_use]
pub fn is_foreign(node: &Node) -> bool {
    nodes::provider_id(node).is_some_and(|id| id.parse::<ProviderId>().is_err())
}

/// Compares a Node with the instance of the Node.
pub fn decide(node: &Node, inventory: &Inventory) -> Result<Plan, Obstacle> {
    let instance = instance_of(node, inventory).ok_or(Obstacle::NoInstance)?;
    let wanted = addresses(node, instance)?;
    let current = node
        .status
        .iter()
        .flat_map(|status| status.addresses.iter().flatten());
    let addresses = (!wanted.is_empty() && !current.eq(&wanted)).then_some(wanted);
    let initialise = is_uninitialised(node).then(|| initialise(node, instance));
    Ok(Plan {
        addresses,
        initialise,
    })
}

/// By id if the Node has an id: an instance of the same name may be a different machine.
fn instance_of<'a>(node: &Node, inventory: &'a Inventory) -> Option<&'a Instance> {
    match nodes::provider_id(node) {
        Some(id) => inventory.by_id(&id.parse::<ProviderId>().ok()?.id),
        None => inventory.by_name(&node.name_any()),
    }
}

/// The addresses of the instance; the address used by the kubelet is the first of its type. Without a host
/// name in the cloud, the kubelet's host name stays.
fn addresses(node: &Node, instance: &Instance) -> Result<Vec<NodeAddress>, Obstacle> {
    let mut wanted = instance.node_addresses();
    if wanted.is_empty() {
        return Ok(wanted);
    }
    if let Some(provided) = node.annotations().get(PROVIDED_IP) {
        let used = wanted.iter().position(|address| address.address == *provided);
        let used = wanted.remove(used.ok_or_else(|| Obstacle::AddressUnknown(provided.clone()))?);
        wanted.insert(0, used);
    }
    if !wanted.iter().any(|address| address.type_ == "Hostname") {
        let own = node
            .status
            .iter()
            .flat_map(|status| status.addresses.iter().flatten());
        wanted.extend(own.filter(|address| address.type_ == "Hostname").cloned());
    }
    Ok(wanted)
}

/// The change contains the resourceVersion of the decision: taints are a single list with several writers.
fn initialise(node: &Node, instance: &Instance) -> Value {
    let labels: Map<String, Value> = [
        (ZONE, &instance.zone),
        (REGION, &instance.region),
        (TYPE, &instance.type_),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(key, value)| (key.to_owned(), json!(value)))
    .collect();
    let taints: Vec<&Taint> = nodes::taints(node)
        .iter()
        .filter(|taint| taint.key != UNINITIALIZED)
        .collect();
    let id = nodes::provider_id(node).map_or_else(|| instance.provider_id().to_string(), ToOwned::to_owned);
    json!({
        "metadata": {"uid": node.uid(), "resourceVersion": node.resource_version(), "labels": labels},
        "spec": {"providerID": id, "taints": taints},
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)] // JSON is written where it is used
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn inventory() -> Inventory {
        let instance = |id: &str, zone: &str| -> Instance {
            serde_json::from_value(json!({
                "id": id, "zone": zone, "region": "local", "type": "small", "state": "running",
                "addresses": [{"type": "InternalIP", "address": "10.180.1.5"}, {"type": "InternalIP", "address": "10.180.1.6"}],
            }))
            .unwrap()
        };
        [("one", instance("i-1", "a")), ("two", instance("i-2", "b"))]
            .map(|(name, instance)| (name.to_owned(), instance))
            .into_iter()
            .collect()
    }

    fn node(name: &str, spec: Value, more: Value) -> Node {
        let mut node = json!({
            "metadata": {"name": name, "uid": "u", "resourceVersion": "7"},
            "spec": spec,
            "status": {"addresses": [{"type": "Hostname", "address": "one.local"}]},
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            node["metadata"][key] = value.clone();
        }
        serde_json::from_value(node).unwrap()
    }

    fn uninitialised() -> Value {
        json!({"taints": [
            {"key": "other", "effect": "NoExecute"},
            {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
        ]})
    }

    fn list(addresses: &[NodeAddress]) -> Vec<&str> {
        addresses.iter().map(|address| address.address.as_str()).collect()
    }

    #[test]
    fn a_new_node_gets_id_labels_and_addresses_and_loses_only_that_taint() {
        let plan = decide(&node("one", uninitialised(), json!({})), &inventory()).unwrap();
        assert_eq!(
            list(&plan.addresses.unwrap()),
            ["10.180.1.5", "10.180.1.6", "one.local"]
        );
        assert_eq!(
            plan.initialise.unwrap(),
            json!({
                "metadata": {"uid": "u", "resourceVersion": "7", "labels": {
                    "topology.kubernetes.io/zone": "a",
                    "topology.kubernetes.io/region": "local",
                    "node.kubernetes.io/instance-type": "small",
                }},
                "spec": {"providerID": "local:///a/i-1", "taints": [{"key": "other", "effect": "NoExecute"}]},
            })
        );
    }

    #[test]
    fn a_node_that_is_described_is_left_alone() {
        let mut known = node("one", json!({"providerID": "local:///a/i-1"}), json!({}));
        let plan = decide(&known, &inventory()).unwrap();
        known.status.as_mut().unwrap().addresses = plan.addresses;
        assert_eq!(decide(&known, &inventory()).unwrap(), Plan::default());
    }

    #[test]
    fn the_id_counts_and_not_the_name() {
        let mut spec = uninitialised();
        spec["providerID"] = json!("local:///b/i-2");
        let plan = decide(&node("one", spec, json!({})), &inventory()).unwrap();
        let body = plan.initialise.unwrap();
        assert_eq!(body["spec"]["providerID"], "local:///b/i-2");
        assert_eq!(body["metadata"]["labels"]["topology.kubernetes.io/zone"], "b");
    }

    #[test]
    fn the_address_that_the_kubelet_uses_comes_first() {
        let annotated = |ip: &str| node("one", uninitialised(), json!({"annotations": {PROVIDED_IP: ip}}));
        let plan = decide(&annotated("10.180.1.6"), &inventory()).unwrap();
        assert_eq!(
            list(&plan.addresses.unwrap()),
            ["10.180.1.6", "10.180.1.5", "one.local"]
        );
        assert_eq!(
            decide(&annotated("10.9.9.9"), &inventory()),
            Err(Obstacle::AddressUnknown("10.9.9.9".into()))
        );
    }

    #[rstest]
    #[case::no_such_name("three", json!({}))]
    #[case::no_such_id("one", json!({"providerID": "local:///a/i-9"}))]
    fn without_an_instance_nothing_is_decided(#[case] name: &str, #[case] spec: Value) {
        assert_eq!(
            decide(&node(name, spec, json!({})), &inventory()),
            Err(Obstacle::NoInstance)
        );
    }

    #[test]
    fn nodes_of_other_clouds_are_told_apart() {
        assert!(is_foreign(&node(
            "one",
            json!({"providerID": "kind://docker/a/b"}),
            json!({})
        )));
        assert!(!is_foreign(&node(
            "one",
            json!({"providerID": "local:///a/i-1"}),
            json!({})
        )));
        assert!(!is_foreign(&node("one", json!({}), json!({}))));
    }
}
