//! The number of claims that decisions examine.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::shoot_domain::decision::{Obstacle, obstacle};

thread_local! {
    /// Claims that were examined in this thread.
    pub(super) static EXAMINED: Cell<usize> = const { Cell::new(0) };
}

fn claim(number: i64, domain: &str, is_reserved: bool) -> DomainClaim {
    let name = format!("shoot-{number}");
    DomainClaim {
        uid: format!("{number:05}"),
        shoot: ObjectRef::new(&name).within("garden-dev"),
        domain: domain.to_owned(),
        is_reserved,
        created: Some(Time(jiff::Timestamp::from_second(number).unwrap())),
        is_deleting: false,
        own_prefix: Some(format!("{name}.dev")),
    }
}

fn index_of(claims: impl IntoIterator<Item = DomainClaim>) -> DomainIndex {
    let mut index = DomainIndex::default();
    for claim in claims {
        index.set_claim(&claim.shoot.clone(), Some(claim));
    }
    index
}

/// The claims that a decision examines.
fn examined(index: &DomainIndex, claim: &DomainClaim) -> (usize, Option<Obstacle>) {
    EXAMINED.set(0);
    let found = obstacle(claim, index, &index.older(claim), &[]);
    (EXAMINED.get(), found)
}

/// A member creates any number of Shoots that a reserved domain refuses. The decisions about all these Shoots
/// then take a time that grows with the square of the number at most, and not with the third power.
#[test]
fn a_decision_examines_the_claims_that_overlap_once() {
    let of_size = |count: i64| {
        let refused = (2..count + 2).map(|number| claim(number, &format!("s{number}.customer.test"), false));
        let same = (2..count + 2).map(|number| claim(10_000 + number, "customer.test", false));
        let foreign =
            (2..count + 2).map(|number| claim(20_000 + number, &format!("s{number}.other.test"), false));
        index_of(
            refused
                .chain(same)
                .chain(foreign)
                .chain([claim(1, "customer.test", true)]),
        )
    };
    let (small, large) = (of_size(100), of_size(400));
    for domain in ["customer.test", "s3.customer.test", "web.s3.customer.test"] {
        let youngest = claim(90_000, domain, false);
        let (in_small, found) = examined(&small, &youngest);
        assert_eq!(found, Some(Obstacle::Reserved("00001".to_owned())), "{domain}");
        let (in_large, _) = examined(&large, &youngest);
        // Each claim that overlaps is examined, and for each claim a reservation.
        assert!(
            in_large <= 4 * in_small + 8,
            "{domain}: {in_small}, then {in_large}"
        );
        assert!(in_large <= 2 * 800 + 8, "{domain}: {in_large}");
    }
    // The reservation alone is found without the refused Shoots.
    EXAMINED.set(0);
    assert!(
        large
            .reservation_beside(&claim(90_000, "x.customer.test", false))
            .is_some()
    );
    assert_eq!(EXAMINED.get(), 1);
    // Shoots of different domains cost nothing.
    let (count, found) = examined(&large, &claim(90_000, "free.test", false));
    assert_eq!((count, found), (0, None));
}

#[test]
fn a_change_of_a_shoot_replaces_the_claim() {
    let mut index = index_of([claim(1, "customer.test", true)]);
    let young = claim(2, "web.customer.test", false);
    assert!(index.reservation_beside(&young).is_some());
    let moved = claim(1, "other.test", true);
    index.set_claim(&moved.shoot.clone(), Some(moved.clone()));
    assert!(index.reservation_beside(&young).is_none());
    assert!(index.reservation_beside(&claim(2, "other.test", false)).is_some());
    index.set_claim(&moved.shoot, None);
    assert!(index.reservation_beside(&claim(2, "other.test", false)).is_none());
}

/// Else a second Shoot would get the domain before the watch shows the first reservation.
#[test]
fn a_reservation_of_this_process_stays_until_the_watch_shows_the_reservation() {
    let first = claim(1, "customer.test", false);
    let young = claim(2, "customer.test", false);
    let mut index = index_of([first.clone(), young.clone()]);
    index.reserve(&first);
    assert!(index.reservation_beside(&young).is_some());
    // An old state of the Shoot, from before the reservation.
    index.set_claim(&first.shoot, Some(first.clone()));
    assert!(index.reservation_beside(&young).is_some());
    // A later Shoot of the same name has no reservation.
    let later = DomainClaim {
        uid: "later".to_owned(),
        ..first.clone()
    };
    index.set_claim(&first.shoot, Some(later));
    assert!(index.reservation_beside(&young).is_none());
    // A Shoot that is gone gets none.
    index.set_claim(&first.shoot, None);
    index.reserve(&first);
    assert!(index.reservation_beside(&young).is_none());
}
