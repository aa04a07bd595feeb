//! Moves on a real API server, with its policies in force: the users and times of a permitted destination,
//! and the specification of a move whose Shoot is edited meanwhile.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "../garden/mod.rs"]
mod garden;
mod journey;
mod policies;
mod preflight;
mod preparation;
mod renewal;
mod servers;
mod shares;
mod source;
mod source_credentials;
mod takeover;
mod too_large;

use garden::Garden;

testkit::scenarios! {
    mod moves for Garden = Garden::start();
    in_sequence:
    moves_are_approved_and_followed;
}

/// A single story: each step begins with the objects of the former steps.
async fn moves_are_approved_and_followed(garden: &Garden) {
    // Before any other shoot is on its way.
    Box::pin(journey::one_after_the_other(garden)).await;
    Box::pin(too_large::a_shoot_that_is_too_large_holds_no_slot(garden)).await;
    Box::pin(shares::a_free_slot_goes_to_a_different_project(garden)).await;
    policies::seed_name_of_a_shoot(garden).await;
    policies::a_seed_approves_nothing(garden).await;
    servers::the_internal_domain_of_a_seed_does_not_change_once_set(garden).await;
    Box::pin(journey::a_verdict_never_lands_on_a_newer_specification(garden)).await;
    Box::pin(journey::with_the_controller(garden)).await;
    Box::pin(preflight::with_the_controller(garden)).await;
    Box::pin(preparation::with_the_controller(garden)).await;
    Box::pin(takeover::with_the_controller(garden)).await;
}
