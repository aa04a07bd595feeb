#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use kube::{ResourceExt, runtime::watcher::Event};
use rstest::rstest;
use serde_json::json;

use super::book::{Answer, Book, has_range};

fn node_of(name: &str, uid: &str, cidrs: &[&str]) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": uid},
        "spec": {"podCIDR": cidrs.first(), "podCIDRs": cidrs},
    }))
    .unwrap()
}

fn node(name: &str, cidrs: &[&str]) -> Node {
    node_of(name, &format!("uid of {name}"), cidrs)
}

fn book(range: &str, size: u8) -> Book {
    Book::new(range.parse().unwrap(), size, &[]).unwrap()
}

fn list(book: &mut Book, nodes: &[Node]) {
    book.take(&Event::Init);
    for node in nodes {
        book.take(&Event::InitApply(node.clone()));
    }
    book.take(&Event::InitDone);
}

fn reserve_range(book: &mut Book, node: &Node) -> Option<String> {
    match book.reserve(node) {
        Answer::Range(range) => Some(range.to_string()),
        Answer::NoneLeft => None,
        Answer::NotReady => Some("not ready".into()),
    }
}

#[test]
fn nothing_is_given_out_before_all_nodes_were_seen() {
    let mut book = book("10.0.0.0/22", 24);
    assert_eq!(book.reserve(&node("b", &[])), Answer::NotReady);
    book.take(&Event::Init);
    book.take(&Event::InitApply(node("b", &[])));
    assert_eq!(book.reserve(&node("b", &[])), Answer::NotReady);
    book.take(&Event::InitApply(node("a", &["10.0.0.0/24"])));
    book.take(&Event::InitDone);
    assert_eq!(reserve_range(&mut book, &node("b", &[])).unwrap(), "10.0.1.0/24");
}

#[test]
fn every_range_is_given_out_once_and_then_none() {
    let mut book = book("10.0.0.0/20", 24);
    list(&mut book, &[node("old", &["10.0.7.0/24"])]);
    let ranges: BTreeSet<_> = (0..15)
        .map(|i| reserve_range(&mut book, &node(&format!("n{i}"), &[])).unwrap())
        .collect();
    assert_eq!(ranges.len(), 15);
    assert!(!ranges.contains("10.0.7.0/24"));
    assert_eq!(book.reserve(&node("one too many", &[])), Answer::NoneLeft);
}

#[test]
fn a_node_that_asks_again_gets_the_same() {
    let mut book = book("10.0.0.0/22", 24);
    list(&mut book, &[]);
    let first = reserve_range(&mut book, &node("a", &[]));
    // The Node's status changed before the Node shows the range.
    book.take(&Event::Apply(node("a", &[])));
    assert_eq!(reserve_range(&mut book, &node("a", &[])), first);
    // A relist from before the write.
    list(&mut book, &[node("a", &[])]);
    assert_eq!(reserve_range(&mut book, &node("a", &[])), first);
    assert_ne!(reserve_range(&mut book, &node("b", &[])), first);
}

#[test]
fn a_range_is_free_again_when_its_node_is_gone() {
    let mut book = book("10.0.0.0/23", 24);
    let (a, b) = (node("a", &["10.0.0.0/24"]), node("b", &["10.0.1.0/24"]));
    list(&mut book, &[a.clone(), b.clone()]);
    assert_eq!(reserve_range(&mut book, &node("c", &[])), None);
    book.take(&Event::Delete(a.clone()));
    assert_eq!(reserve_range(&mut book, &node("c", &[])).unwrap(), "10.0.0.0/24");
    // Missed by the watch, seen in the next list.
    list(&mut book, &[a.clone(), node("c", &[])]);
    assert_eq!(reserve_range(&mut book, &node("d", &[])).unwrap(), "10.0.1.0/24");
}

#[test]
fn a_range_that_was_given_back_rests() {
    let mut book = book("10.0.0.0/22", 24);
    list(&mut book, &[]);
    let a = node("a", &[]);
    assert_eq!(reserve_range(&mut book, &a).unwrap(), "10.0.0.0/24");
    book.take(&Event::Delete(a));
    assert_eq!(reserve_range(&mut book, &node("b", &[])).unwrap(), "10.0.1.0/24");
}

#[test]
fn what_the_node_shows_wins_over_what_was_reserved() {
    let mut book = book("10.0.0.0/23", 24);
    list(&mut book, &[]);
    assert_eq!(reserve_range(&mut book, &node("a", &[])).unwrap(), "10.0.0.0/24");
    // A former lock holder assigned this range.
    book.take(&Event::Apply(node("a", &["10.0.1.0/24"])));
    assert_eq!(reserve_range(&mut book, &node("b", &[])).unwrap(), "10.0.0.0/24");
    assert_eq!(reserve_range(&mut book, &node("c", &[])), None);
}

#[test]
fn a_refused_range_is_given_back_but_not_one_that_is_shown() {
    let mut book = book("10.0.0.0/24", 24);
    list(&mut book, &[]);
    let a = node("a", &[]);
    assert!(reserve_range(&mut book, &a).is_some());
    book.give_back(&a);
    assert!(reserve_range(&mut book, &node("b", &[])).is_some());
    book.take(&Event::Apply(node("b", &["10.0.0.0/24"])));
    book.give_back(&node("b", &[]));
    assert_eq!(reserve_range(&mut book, &node("c", &[])), None);
}

#[test]
fn a_node_of_the_same_name_is_another_node() {
    let mut book = book("10.0.0.0/23", 24);
    list(&mut book, &[node_of("a", "first", &["10.0.0.0/24"])]);
    book.take(&Event::Apply(node_of("a", "second", &[])));
    // A late deletion of the first Node takes no range from the second Node.
    assert_eq!(
        reserve_range(&mut book, &node_of("a", "second", &[])).unwrap(),
        "10.0.0.0/24"
    );
    book.take(&Event::Delete(node_of("a", "first", &["10.0.0.0/24"])));
    assert_eq!(reserve_range(&mut book, &node("b", &[])).unwrap(), "10.0.1.0/24");
}

#[rstest]
#[case::larger("10.0.0.0/22", "10.0.4.0/24")]
#[case::smaller("10.0.0.128/25", "10.0.1.0/24")]
#[case::not_at_a_boundary("10.0.0.7/24", "10.0.1.0/24")]
#[case::elsewhere("192.168.0.0/16", "10.0.0.0/24")]
#[case::around("10.0.0.0/8", "none")]
#[case::ipv6("fd00::/64", "10.0.0.0/24")]
#[case::rubbish("rubbish", "10.0.0.0/24")]
fn whatever_a_node_has_is_not_given_out(#[case] has: &str, #[case] expected: &str) {
    let mut book = book("10.0.0.0/20", 24);
    let old = node("old", &[has]);
    assert!(has_range(&old));
    list(&mut book, std::slice::from_ref(&old));
    let range = reserve_range(&mut book, &node("new", &[]));
    assert_eq!(range.as_deref().unwrap_or("none"), expected);
    book.take(&Event::Delete(old));
    assert!(reserve_range(&mut book, &node("later", &[])).is_some());
}

#[test]
fn the_range_of_services_is_kept_out() {
    let blocked = ["10.0.0.0/23".parse().unwrap()];
    let mut book = Book::new("10.0.0.0/22".parse().unwrap(), 24, &blocked).unwrap();
    list(&mut book, &[]);
    assert_eq!(reserve_range(&mut book, &node("a", &[])).unwrap(), "10.0.2.0/24");
    assert_eq!(reserve_range(&mut book, &node("b", &[])).unwrap(), "10.0.3.0/24");
    assert_eq!(reserve_range(&mut book, &node("c", &[])), None);
}

#[test]
fn nodes_that_share_a_range_are_told_and_it_stays_taken_until_both_are_gone() {
    let mut book = book("10.0.0.0/24", 24);
    let (a, b) = (node("a", &["10.0.0.0/24"]), node("b", &["10.0.0.0/25"]));
    list(&mut book, &[a.clone(), b.clone()]);
    assert_eq!(book.sharers(&a), ["b"]);
    assert_eq!(book.sharers(&b), ["a"]);
    book.take(&Event::Delete(a));
    assert!(book.sharers(&b).is_empty());
    assert_eq!(reserve_range(&mut book, &node("c", &[])), None);
    book.take(&Event::Delete(b));
    assert!(reserve_range(&mut book, &node("c", &[])).is_some());
}

#[rstest]
#[case("10.0.0.0/16", 24, true)]
#[case("10.0.0.0/24", 24, true)]
#[case("10.0.0.0/8", 24, true)]
#[case("0.0.0.0/0", 16, true)]
#[case("10.0.0.1/32", 32, true)]
#[case("10.0.0.0/24", 23, false)]
#[case("10.0.0.0/7", 24, false)]
#[case("10.0.0.0/24", 33, false)]
fn sizes_must_fit(#[case] range: &str, #[case] size: u8, #[case] good: bool) {
    let made = Book::new(range.parse().unwrap(), size, &[]);
    assert_eq!(made.is_ok(), good);
    if let Ok(mut book) = made {
        list(&mut book, &[]);
        let first = reserve_range(&mut book, &node("a", &[])).unwrap();
        assert!(first.ends_with(&format!("/{size}")), "{first}");
    }
}

/// A long life in any order: after each step, no two Nodes of the cluster have an address in common.
#[test]
fn no_two_nodes_ever_share_a_range() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut book = book("10.0.0.0/19", 24);
    list(&mut book, &[]);
    // The Nodes in the cluster.
    let mut cluster: Vec<Node> = Vec::new();
    for step in 0..5_000 {
        match next(6) {
            0 | 1 if cluster.len() < 40 => {
                cluster.push(node_of(&format!("n{}", next(60)), &format!("u{step}"), &[]));
            }
            2 if !cluster.is_empty() => {
                let at = usize::try_from(next(cluster.len() as u64)).unwrap();
                let gone = cluster.remove(at);
                book.take(&Event::Delete(gone));
            }
            3 => list(&mut book, &cluster),
            _ if !cluster.is_empty() => {
                let at = usize::try_from(next(cluster.len() as u64)).unwrap();
                if !has_range(&cluster[at])
                    && let Some(range) = reserve_range(&mut book, &cluster[at].clone())
                {
                    // Half of the writes are refused.
                    if next(2) == 0 {
                        book.give_back(&cluster[at]);
                    } else {
                        let written =
                            node_of(&cluster[at].name_any(), &cluster[at].uid().unwrap(), &[&range]);
                        cluster[at] = written;
                    }
                }
                book.take(&Event::Apply(cluster[at].clone()));
            }
            _ => {}
        }
        // Names are unique in a cluster: a later Node of a name replaces the earlier Node.
        let mut names = BTreeSet::new();
        let doubles: Vec<_> = (0..cluster.len())
            .rev()
            .filter(|at| !names.insert(cluster[*at].name_any()))
            .collect();
        for at in doubles {
            let gone = cluster.remove(at);
            book.take(&Event::Delete(gone));
        }
        let shown: Vec<_> = cluster
            .iter()
            .filter_map(|node| node.spec.as_ref()?.pod_cidr.clone())
            .collect();
        assert_eq!(
            shown.iter().collect::<BTreeSet<_>>().len(),
            shown.len(),
            "step {step}: {shown:?}"
        );
    }
}
