#![allow(clippy::unwrap_used)]
use super::*;

const PODS: &str = "10.0.0.0/16";

fn machines(of: &[(&str, &str, &str)]) -> Machines {
    of.iter()
        .map(|(name, range, address)| {
            let machine = Machine {
                range: range.parse().ok(),
                address: address.parse().ok(),
            };
            ((*name).to_owned(), machine)
        })
        .collect()
}

fn planned(of: &[(&str, &str, &str)]) -> Result<Plan, String> {
    plan(&machines(of), "own", PODS.parse().unwrap())
}

const OWN: (&str, &str, &str) = ("own", "10.0.1.0/24", "192.0.2.1");

#[test]
fn each_other_machine_gets_a_route_a_neighbour_and_a_forwarding() {
    let plan = planned(&[OWN, ("b", "10.0.2.0/24", "192.0.2.2"), ("c", "10.0.3.0/24", "")]).unwrap();
    assert_eq!(plan.gateway(), Ipv4Addr::new(10, 0, 1, 0));
    let hardware = [0x02, b'n', 192, 0, 2, 2];
    let expected = Tables {
        routes: [("10.0.2.0/24".parse().unwrap(), Ipv4Addr::new(10, 0, 2, 0))].into(),
        neighbours: [(Ipv4Addr::new(10, 0, 2, 0), hardware)].into(),
        forwarding: [(hardware, Ipv4Addr::new(192, 0, 2, 2))].into(),
    };
    assert_eq!(plan.tables, expected);
    assert_eq!(plan.passed_over, Vec::<String>::new());
}

#[test]
fn nothing_is_planned_while_this_machine_is_not_known() {
    for (of, words) in [
        (vec![("b", "10.0.2.0/24", "192.0.2.2")], "there is no Node own"),
        (vec![("own", "", "192.0.2.1")], "no podCIDR"),
        (vec![("own", "10.0.1.0/24", "")], "no InternalIP"),
        (Vec::new(), "there is no Node own"),
    ] {
        let why = planned(&of).unwrap_err();
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn no_node_draws_traffic_that_is_not_for_its_pods() {
    for (other, words) in [
        (("x", "0.0.0.0/0", "192.0.2.9"), "not a part of 10.0.0.0/16"),
        (("x", "192.0.2.0/24", "192.0.2.9"), "not a part of 10.0.0.0/16"),
        (
            ("x", "10.0.1.128/25", "192.0.2.9"),
            "overlaps this machine's 10.0.1.0/24",
        ),
        (
            ("x", "10.0.0.0/16", "192.0.2.9"),
            "overlaps this machine's 10.0.1.0/24",
        ),
        (
            ("x", "10.0.2.0/25", "192.0.2.9"),
            "overlaps another machine's 10.0.2.0/24",
        ),
        (
            ("x", "10.0.9.0/24", "192.0.2.1"),
            "has the address of this machine",
        ),
    ] {
        let plan = planned(&[OWN, ("b", "10.0.2.0/24", "192.0.2.2"), other]).unwrap();
        assert_eq!(plan.tables.routes.len(), 1, "{other:?}");
        assert!(plan.passed_over[0].contains(words), "{:?}", plan.passed_over);
    }
}

#[test]
fn an_address_that_was_given_again_leads_to_the_machine_that_has_it() {
    let plan = planned(&[
        OWN,
        ("b", "10.0.2.0/24", "192.0.2.2"),
        ("c", "10.0.3.0/24", "192.0.2.2"),
    ])
    .unwrap();
    assert_eq!(plan.tables.routes.len(), 2);
    assert_eq!(plan.tables.forwarding.len(), 1);
}
