//! The shoots that are woken when a slot is free.

use super::*;

fn next(at_most: usize, destination: &str, known: &[Arc<Shoot>]) -> Vec<String> {
    let slots = MigrationSlots::new(at_most);
    let next = slots.next(
        &shoot("arrived", destination),
        destination,
        known,
        Timestamp::UNIX_EPOCH,
    );
    next.iter().map(|shoot| shoot.name_any()).collect()
}

#[test]
fn the_next_shoots_are_of_different_projects() {
    let known = [
        of_project("p", &waiting("p-first", 1)),
        of_project("p", &waiting("p-second", 2)),
        of_project("p", &waiting("p-third", 3)),
        of_project("q", &waiting("q-first", 4)),
    ];
    assert_eq!(next(3, B, &known), ["p-first", "q-first", "p-second"]);
}

#[test]
fn who_has_waited_longest_is_next() {
    let known = [
        waiting("third", 3),
        Arc::new(shoot("ready", B)),
        waiting("first", 1),
        waiting("second", 2),
    ];
    assert_eq!(next(2, B, &known), ["first", "second"]);
    assert_eq!(next(5, B, &known), ["first", "second", "third"]);
    assert!(next(5, "seed-c", &known).is_empty());
}

/// Each check reads many objects.
#[test]
fn no_shoot_is_woken_without_a_free_slot() {
    let known = [on_the_way("held"), waiting("first", 1)];
    assert!(next(1, B, &known).is_empty());
    assert_eq!(next(2, B, &known), ["first"]);
}

/// Otherwise the shoots of the source with the share would be woken, and would leave the slot to a shoot that
/// asks again a minute later.
#[test]
fn the_shoot_that_may_take_the_slot_is_woken() {
    let held = of_project("p", &on_the_way("held"));
    let known = [
        held,
        of_project("q", &waiting("of-q", 1)),
        of_project("r", &waiting("of-r", 2)),
        of_project("s", &at_seed_c(&waiting("of-s", 3))),
        // The cache does not show that this shoot has arrived.
        of_project("s", &on_the_way("arrived")),
    ];
    assert_eq!(next(2, B, &known), ["of-s", "of-q"]);
    let slots = MigrationSlots::new(2);
    let reserve = |shoot: &Shoot| slots.reserve(shoot, B, None, &known[..4], Timestamp::UNIX_EPOCH);
    assert_eq!(reserve(&known[1]), Err(NoSlot::LeftToOthers(1)));
    assert_eq!(reserve(&known[3]), Ok(()));
}
