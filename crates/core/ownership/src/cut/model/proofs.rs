//! The invariants hold in every reachable state.

use super::explore::explore;
use super::rules::CutScenario;
use super::scenarios;
use super::state::CutState;

type Event = (&'static str, fn(&CutState) -> bool);

const OPENED: Event = ("the destination opens", |state| state.was_opened);

/// The record of the first attempt is under way while a later attempt stands.
const LATE: Event = ("a late record", |state| {
    let late = state.record.as_ref();
    late.is_some_and(|late| late.tests.attempt < state.garden.attempt)
});

#[test]
fn a_record_lands_after_a_cancellation() {
    explore(&scenarios::cancellation(), &[OPENED, LATE]);
}

#[test]
fn the_source_restarts_in_the_cut() {
    explore(&scenarios::source_restarts(), &[OPENED, LATE]);
}

#[test]
fn the_source_loses_its_volume_in_the_cut() {
    let is_restored: Event = ("a new volume during the cut", |state| {
        state.record.is_some() && state.source.is_volume_new
    });
    explore(&scenarios::source_volume(), &[OPENED, LATE, is_restored]);
}

#[test]
fn leases_end_in_the_hold() {
    let is_late: Event = ("a revision after the end", |state| {
        let end = state.source.progress.end;
        state.was_opened && end.is_some_and(|end| end < state.source.log.revision())
    });
    explore(&scenarios::leases(), &[OPENED, is_late]);
}

/// The cut need not wait for writes that the client gave up: no client observes their revisions.
#[test]
fn clients_give_up_writes() {
    explore(&scenarios::given_up_writes(), &[OPENED]);
    explore(
        &CutScenario {
            ignores_given_up_writes: true,
            ..scenarios::given_up_writes()
        },
        &[OPENED],
    );
}

#[test]
fn the_destination_restarts_before_it_opens() {
    let is_between: Event = ("a restart after the record", |state| {
        let is_restarted = state.budget.destination_restarts == 0;
        state.recorded.is_some() && !state.was_opened && is_restarted
    });
    explore(&scenarios::destination_restarts(), &[OPENED, is_between]);
}

#[test]
fn the_destination_loses_its_volume() {
    let is_empty: Event = ("an empty volume after the record", |state| {
        let is_lost = state.budget.destination_volumes == 0;
        state.recorded.is_some() && !state.was_opened && is_lost && state.chain.is_none()
    });
    explore(&scenarios::destination_volume(), &[OPENED, is_empty]);
}

#[test]
fn a_seed_dies_around_the_record() {
    let dies_early: Event = ("a destination that dies before the record", |state| {
        !state.destination.is_alive && state.recorded.is_none() && state.source.serves
    });
    let dies_late: Event = ("a destination that dies after the record", |state| {
        !state.destination.is_alive && state.recorded.is_some() && state.next.is_some()
    });
    explore(&scenarios::deaths(), &[OPENED, dies_early, dies_late]);
}

#[test]
fn seeds_are_cut_from_each_other_and_from_the_garden() {
    let is_cut: Event = ("seeds that are cut from each other", |state| {
        state.was_opened && !state.seeds_are_linked()
    });
    explore(&scenarios::links(), &[OPENED, LATE, is_cut]);
}

#[test]
fn requests_pass_both_gates() {
    let returns: Event = ("a request that was forwarded twice", |state| {
        state.write.is_some_and(|write| write.hops == 2)
    });
    explore(&scenarios::forwarding(), &[OPENED, returns]);
}

#[test]
fn a_third_seed_takes_over() {
    let forwards: Event = ("a source that forwards", |state| state.source.relay > 0);
    let is_taken: Event = ("a takeover", |state| {
        state.next.is_some_and(|next| next.has_opened)
    });
    explore(&scenarios::takeover(), &[OPENED, forwards, is_taken]);
}

#[test]
fn clocks_drift_during_a_takeover() {
    let is_taken: Event = ("a takeover", |state| {
        state.next.is_some_and(|next| next.has_opened)
    });
    explore(&scenarios::drift(), &[OPENED, is_taken]);
}
