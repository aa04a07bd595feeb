#![allow(clippy::unwrap_used)]
use crate::acls::{AclAssociation, NetworkAcl};

use super::*;

const OURS: &str = "acl-ours";

fn acl(id: &str, subnets: &[&str]) -> NetworkAcl {
    let associations: Vec<AclAssociation> = subnets
        .iter()
        .map(|subnet| AclAssociation {
            network_acl_association_id: format!("{id}/{subnet}"),
            subnet_id: (*subnet).into(),
        })
        .collect();
    NetworkAcl {
        network_acl_id: id.into(),
        vpc_id: "vpc".into(),
        is_default: id == "acl-default",
        associations: associations.into(),
        ..NetworkAcl::default()
    }
}

fn ours(subnets: &[&str], tags: &[(&str, &str)]) -> NetworkAcl {
    let tags: Vec<Tag> = tags.iter().map(|(subnet, acl)| tag(subnet, acl)).collect();
    NetworkAcl {
        tags: tags.into(),
        ..acl(OURS, subnets)
    }
}

fn is_ours(acl: &NetworkAcl) -> bool {
    acl.network_acl_id == OURS
}

fn make_before(pairs: &[(&str, &str)]) -> Before {
    let pairs = pairs
        .iter()
        .map(|(subnet, acl)| ((*subnet).to_owned(), (*acl).to_owned()));
    Before {
        acls: pairs.collect(),
        ..Before::default()
    }
}

fn subnets(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn swap(association: &str, acl: &str) -> Swap {
    Swap {
        association: association.into(),
        acl: acl.into(),
    }
}

#[test]
fn what_is_known_stays_and_what_is_new_is_added() {
    let acls = [acl("acl-default", &["a", "b"]), acl("acl-x", &["c"])];
    let all = subnets(&["a", "c"]);
    assert_eq!(
        before(&all, &acls, is_ours, None).unwrap(),
        make_before(&[("a", "acl-default"), ("c", "acl-x")])
    );
    assert_eq!(
        before(&all, &acls, is_ours, Some(&make_before(&[("a", "acl-old")]))).unwrap(),
        make_before(&[("a", "acl-old"), ("c", "acl-x")])
    );
}

#[test]
fn a_seed_that_knows_nothing_reads_the_tags() {
    let acls = [ours(&["a"], &[("a", "acl-x")]), acl("acl-default", &["b"])];
    let told = before(&subnets(&["a", "b"]), &acls, is_ours, None).unwrap();
    assert_eq!(told, make_before(&[("a", "acl-x"), ("b", "acl-default")]));

    let untold = [ours(&["a"], &[])];
    let error = before(&subnets(&["a"]), &untold, is_ours, None).unwrap_err();
    assert_eq!(error.codes(), [ErrorCode::ErrInfraDependencies], "{error}");
}

#[test]
fn a_subnet_that_no_acl_lists_keeps_no_other_subnet_open() {
    let acls = [ours(&[], &[]), acl("acl-x", &["a"])];
    let both = subnets(&["a", "gone"]);
    let found = before(&both, &acls, is_ours, None).unwrap();
    assert_eq!(found, make_before(&[("a", "acl-x")]));
    assert_eq!(closing(&both, &acls, OURS), [swap("acl-x/a", OURS)]);
    assert_eq!(unlisted(&both, &acls), ["gone"]);
}

#[test]
fn manual_changes_of_a_closed_zone_are_reported() {
    let mut recorded = make_before(&[("a", "acl-x"), ("b", "acl-x"), ("gone", "acl-x")]);
    let acls = [ours(&["a"], &[]), acl("acl-x", &["b"])];
    assert!(
        reopened(&recorded, &acls, is_ours).is_empty(),
        "no ACL is recorded"
    );
    recorded.isolation_acl = Some(OURS.into());
    let changes = reopened(&recorded, &acls, is_ours);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(
        changes[0].contains("subnet b of the closed zone had the network ACL acl-x"),
        "{changes:?}"
    );
    let changes = reopened(&recorded, &acls[1..], is_ours);
    assert!(
        changes[0].contains("the network ACL acl-ours, which closed the zone, was removed"),
        "{changes:?}"
    );
}

#[test]
fn only_what_is_open_is_closed() {
    let acls = [ours(&["a"], &[]), acl("acl-x", &["b", "other"])];
    assert_eq!(
        closing(&subnets(&["a", "b"]), &acls, OURS),
        [swap("acl-x/b", OURS)]
    );
}

#[test]
fn each_gets_back_what_it_had() {
    let acls = [
        ours(&["a", "b"], &[("b", "acl-x")]),
        acl("acl-default", &[]),
        acl("acl-x", &[]),
    ];
    let opening = opening(Some(&make_before(&[("a", "acl-default")])), &acls, is_ours, false);
    assert_eq!(
        opening.swaps,
        [swap("acl-ours/a", "acl-default"), swap("acl-ours/b", "acl-x")]
    );
    assert!(opening.changed.is_empty() && opening.stuck.is_empty());
}

#[test]
fn what_somebody_has_set_is_left_and_told() {
    let acls = [
        ours(&["a"], &[]),
        acl("acl-default", &[]),
        acl("acl-hand", &["b"]),
    ];
    let before = make_before(&[
        ("a", "acl-default"),
        ("b", "acl-default"),
        ("gone", "acl-default"),
    ]);
    let opening = opening(Some(&before), &acls, is_ours, false);
    assert_eq!(opening.swaps, [swap("acl-ours/a", "acl-default")]);
    let told: Vec<String> = opening.changed.iter().map(ToString::to_string).collect();
    assert!(
        told.len() == 1 && told[0].starts_with("b has acl-hand"),
        "{told:?}"
    );
}

#[test]
fn a_former_one_that_is_gone_is_stuck_but_in_a_deletion() {
    let acls = [ours(&["a", "b"], &[]), acl("acl-default", &[])];
    let before = make_before(&[("a", "acl-default"), ("b", "acl-gone")]);
    let left = opening(Some(&before), &acls, is_ours, false);
    assert_eq!(left.swaps, [swap("acl-ours/a", "acl-default")]);
    assert!(
        left.stuck.len() == 1 && left.stuck[0].contains("acl-gone is gone"),
        "{:?}",
        left.stuck
    );
    let deleted = opening(Some(&before), &acls, is_ours, true);
    assert!(deleted.stuck.is_empty());
    assert_eq!(deleted.swaps[1], swap("acl-ours/b", "acl-default"));
}

#[test]
fn what_nobody_knows_is_stuck() {
    let acls = [ours(&["a"], &[]), acl("acl-default", &[])];
    let left = opening(None, &acls, is_ours, false);
    assert!(
        left.swaps.is_empty() && left.stuck[0].contains("nothing says"),
        "{left:?}"
    );
}

#[test]
fn an_opening_is_confirmed_by_an_acl_of_others_in_front_of_each_subnet() {
    let before = make_before(&[("a", "acl-default"), ("b", "acl-default")]);
    for (acls, closed, unlisted) in [
        (vec![acl("acl-default", &["a", "b"])], vec![], vec![]),
        (
            vec![ours(&["a"], &[]), acl("acl-default", &["b"])],
            vec!["a"],
            vec![],
        ),
        // The ACL in front of the subnet was just made and is not listed.
        (vec![acl("acl-default", &["b"])], vec![], vec!["a"]),
    ] {
        let found = unconfirmed(Some(&before), &acls, is_ours);
        assert_eq!(
            (found.closed, found.unlisted),
            (strings(&closed), strings(&unlisted))
        );
    }
    assert_eq!(unconfirmed(None, &[], is_ours), Unconfirmed::default());
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}
