//! The fault detection must work: without these tests, a book without faults would prove nothing.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Service};
use serde_json::json;

use super::book::{Book, Manager, UNINITIALIZED};

const KUBERNETES: &str = "kube-controller-manager";
const CLOUD: &str = "cloud-controller-manager-local";

fn node(name: &str, version: u64, range: Option<(&str, &str)>) -> Node {
    let registered = json!({"manager": "kubelet", "fieldsV1": {"f:spec": {"f:taints": {}}}});
    let (spec, fields) = match range {
        None => (
            json!({"taints": [{"key": UNINITIALIZED, "effect": "NoSchedule"}]}),
            json!([registered]),
        ),
        Some((range, giver)) => (
            json!({"podCIDR": range, "podCIDRs": [range], "providerID": "local:///zone-a/i"}),
            json!([registered, {"manager": giver, "fieldsV1": {"f:spec": {"f:podCIDR": {}, "f:podCIDRs": {}}}}]),
        ),
    };
    let node = json!({
        "metadata": {"name": name, "resourceVersion": version.to_string(), "managedFields": fields}, "spec": spec,
    });
    serde_json::from_value(node).unwrap()
}

/// A book of Nodes that came without a range and were given these.
fn book(ranges: &[(&str, u64, &str, &str)]) -> Book {
    let (mut book, now) = (Book::default(), Instant::now());
    for (name, version, range, giver) in ranges {
        book.node_comes(name, now);
        book.see_node(&node(name, 1, None), true, now);
        book.see_node(
            &node(name, *version, Some((range, giver))),
            true,
            now + Duration::from_secs(2),
        );
    }
    book
}

#[test]
fn all_is_well_where_each_manager_gives_while_it_holds_the_lock() {
    let begin = Instant::now();
    let mut book = book(&[
        ("a", 5, "10.0.0.0/24", KUBERNETES),
        ("b", 15, "10.0.1.0/24", KUBERNETES),
        ("c", 25, "10.0.2.0/24", CLOUD),
        ("d", 35, "10.0.3.0/24", CLOUD),
    ]);
    book.see_holder(Some("10".into()), "kube-controller-manager-0_1");
    book.see_holder(Some("20".into()), "cloud-controller-manager-0_1");
    book.see_holder(Some("30".into()), "");
    assert_eq!(book.faults(), Vec::<String>::new());
    let now = Instant::now();
    assert_eq!(book.waiting(now), Vec::<&str>::new());
    let waits = book.waits(begin, now);
    assert_eq!((waits.nodes, waits.by_kubernetes, waits.by_cloud), (4, 2, 2));
    assert_eq!(waits.range, Duration::from_secs(2));
    let both = [Some(Manager::Kubernetes), Some(Manager::Cloud)];
    assert_eq!(book.givers(begin), both.into());
}

#[test]
fn a_range_that_was_given_without_the_lock_is_found() {
    let mut book = book(&[("a", 25, "10.0.0.0/24", KUBERNETES)]);
    book.see_holder(Some("10".into()), "kube-controller-manager-0_1");
    book.see_holder(Some("20".into()), "cloud-controller-manager-0_1");
    assert_eq!(book.faults().len(), 1, "{:?}", book.faults());
    assert!(book.faults()[0].contains("while cloud-controller-manager-0_1"));
}

#[test]
fn ranges_that_overlap_or_change_are_found() {
    let same = book(&[
        ("a", 1, "10.0.0.0/24", CLOUD),
        ("b", 2, "10.0.0.0/24", KUBERNETES),
    ]);
    assert_eq!(
        same.faults(),
        ["a and b share addresses: 10.0.0.0/24, 10.0.0.0/24"]
    );
    let within = book(&[("a", 1, "10.0.0.0/23", CLOUD), ("b", 2, "10.0.1.0/24", CLOUD)]);
    assert_eq!(within.faults().len(), 1, "{:?}", within.faults());
    let mut changed = book(&[("a", 1, "10.0.0.0/24", CLOUD)]);
    changed.see_node(&node("a", 2, Some(("10.0.1.0/24", CLOUD))), true, Instant::now());
    changed.see_node(&node("a", 3, None), true, Instant::now());
    assert_eq!(changed.faults().len(), 2, "{:?}", changed.faults());
}

#[test]
fn what_waits_is_named_and_has_no_range_in_the_end() {
    let (mut book, now) = (Book::default(), Instant::now());
    book.node_comes("n", now);
    book.service_comes("s", now);
    book.see_node(&node("n", 1, None), true, now);
    assert_eq!(book.waiting(now), ["n", "s"]);
    assert_eq!(book.faults(), ["n has no range"]);
}

#[test]
fn services_that_share_an_address_are_found() {
    let (mut book, now) = (Book::default(), Instant::now());
    for name in ["a", "b"] {
        let shown = json!({"metadata": {"name": name}, "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}});
        let service: Service = serde_json::from_value(shown).unwrap();
        book.service_comes(name, now);
        book.see_service(&service, now);
    }
    assert_eq!(book.faults(), ["a and b have the same address 10.0.0.1"]);
}
