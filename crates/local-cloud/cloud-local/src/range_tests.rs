#![allow(clippy::unwrap_used)]
use rstest::rstest;

use super::{Ipv4Net, around, free, overlap, read};

fn range(text: &str) -> Ipv4Net {
    read(text).unwrap()
}

#[test]
fn the_first_free_range_of_the_pool_is_given_out() {
    let pool = range("10.180.0.0/22");
    for (taken, expected) in [
        (vec![], Some("10.180.0.0/24")),
        (vec!["10.180.0.0/24"], Some("10.180.1.0/24")),
        (vec!["10.180.1.0/24"], Some("10.180.0.0/24")),
        // Taken ranges may be larger, smaller or elsewhere.
        (vec!["10.180.0.0/23", "10.180.2.128/25"], Some("10.180.3.0/24")),
        (vec!["192.168.0.0/16"], Some("10.180.0.0/24")),
        (vec!["10.0.0.0/8"], None),
    ] {
        let taken: Vec<_> = taken.into_iter().map(range).collect();
        assert_eq!(
            free(pool, &taken).map(|r| r.to_string()).as_deref(),
            expected,
            "{taken:?}"
        );
    }
    assert_eq!(free(range("10.180.0.0/25"), &[]), None, "the pool is too small");
    assert_eq!(free(range("0.0.0.0/0"), &[]), Some(range("0.0.0.0/24")));
}

#[test]
fn every_range_of_a_pool_is_given_out_once() {
    let pool = range("10.180.0.0/16");
    let mut taken = Vec::new();
    while let Some(next) = free(pool, &taken) {
        assert!(taken.iter().all(|other| !overlap(&next, other)));
        taken.push(next);
    }
    assert_eq!(taken.len(), 256);
}

#[test]
fn a_wrong_range_is_refused_with_what_to_write() {
    assert_eq!(
        read("10.180.1.0/14").unwrap_err(),
        "\"10.180.1.0/14\" does not begin at a boundary of its size: write 10.180.0.0/14"
    );
    for wrong in ["", "10.0.0.0", "10.0.0.0/33", "fd00::/8", "a/8"] {
        assert!(read(wrong).unwrap_err().contains("no IPv4 range"), "{wrong}");
    }
}

/// The right column is the result of Go's `net.ParseCIDR` for the left column.
#[rstest]
#[case("100.96.0.0/11", "100.96.0.0/11")]
#[case("0.0.0.0/0", "0.0.0.0/0")]
#[case("10.1.2.3/32", "10.1.2.3/32")]
#[case::second_address("100.96.0.1/11", "100.96.0.0/11")]
#[case::not_at_the_boundary("100.97.0.0/11", "100.96.0.0/11")]
#[case::last_address("100.127.255.255/11", "100.96.0.0/11")]
#[case::anywhere("10.1.2.3/0", "0.0.0.0/0")]
fn a_range_begins_at_its_boundary_whatever_was_written(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(around(text).unwrap().to_string(), expected);
}

#[rstest]
#[case("10.0.0.0")]
#[case("10.0.0.0/")]
#[case("10.0.0.0/33")]
#[case("10.0.0.0/+8")]
#[case("10.0.0.0/8/8")]
#[case("10.0.0/8")]
#[case("fd00::/64")]
#[case("")]
fn what_is_no_range_is_refused(#[case] text: &str) {
    let why = around(text).unwrap_err();
    assert!(why.contains("100.96.0.0/11"), "{why}");
}
