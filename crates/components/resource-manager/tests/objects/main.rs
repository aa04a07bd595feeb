//! ManagedResources on real API servers, of a seed and of a shoot. In the seed the controller has only the
//! rights of the chart.
//!
//! All shoots of these scenarios are the same API server; each shoot has a namespace there and in the seed.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod annotations;
mod away;
mod filled;
mod keeping;
mod life;
mod owner;
mod refused;
mod silent;
mod world;

use world::World;

// At the same time: a scenario that waits must not block another scenario.
testkit::scenarios! {
    mod managed_resources for World = World::start() => World::end;
    at_once:
    life::{in_the_shoot, in_the_seed},
    keeping::{objects_are_kept, objects_are_kept_half_way},
    annotations::{of_objects, of_immutable_objects, of_deletion, of_managed_resources},
    refused::{wrong_manifests, another_s_object},
    away::{a_shoot_that_is_away, a_shoot_that_is_away_for_a_moment, a_shoot_without_a_way},
    filled::{a_shoot_that_its_users_have_filled},
    owner::{
        a_shoot_that_is_lost,
        a_shoot_that_has_left,
        a_shoot_that_is_back,
        a_shoot_of_which_nobody_says_whose_it_is,
    },
    silent::{shoots_of_which_nobody_says_whose_they_are};
}
