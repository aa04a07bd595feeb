//! Moves on a real API server, with its policies in force: the users and times of a permitted destination,
//! and the specification of a move whose Shoot is edited meanwhile.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod garden;
#[path = "moves/journey.rs"]
mod journey;
#[path = "moves/policies.rs"]
mod policies;
#[path = "moves/preflight.rs"]
mod preflight;
#[path = "moves/renewal.rs"]
mod renewal;
#[path = "moves/servers.rs"]
mod servers;
#[path = "moves/source.rs"]
mod source;
#[path = "moves/takeover.rs"]
mod takeover;

use garden::Garden;

#[tokio::test(flavor = "multi_thread")]
async fn moves_are_approved_and_followed() {
    let garden = Garden::start().await.unwrap();
    // Before any other shoot is on its way.
    Box::pin(journey::one_after_the_other(&garden)).await;
    policies::seed_name_of_a_shoot(&garden).await;
    policies::a_seed_approves_nothing(&garden).await;
    servers::the_internal_domain_of_a_seed_does_not_change_once_set(&garden).await;
    Box::pin(journey::a_verdict_never_lands_on_a_newer_specification(&garden)).await;
    Box::pin(journey::with_the_controller(&garden)).await;
    Box::pin(preflight::with_the_controller(&garden)).await;
    Box::pin(takeover::with_the_controller(&garden)).await;
    garden::no_gaps();
}
