//! Each test switches a single rule off and expects a broken invariant, because a model that cannot fail
//! proves no property. Each test prints the shortest path.

use super::check::without;
use super::scenario::{Off, Scenario};
use super::scenarios;

#[test]
fn a_grant_that_tests_nothing() {
    without(Off::TestedGrant, scenarios::late(), &["I1", "I2"]);
}

#[test]
fn a_grant_that_tests_the_epoch_alone() {
    without(Off::WholeTest, scenarios::late_grant(), &["I1", "I2"]);
}

#[test]
fn seeds_that_take_each_others_steps() {
    without(Off::Writers, scenarios::strangers(), &["I1", "I2"]);
}

#[test]
fn a_fence_before_the_bucket() {
    without(Off::FenceAfterBucket, scenarios::call_off(), &["I1", "I2"]);
}

#[test]
fn a_fence_at_the_first_server() {
    without(Off::FenceAfterAllServers, scenarios::servers(), &["I1", "I2"]);
}

#[test]
fn validity_from_the_answer() {
    without(Off::ValidityFromSending, scenarios::gardenlet(), &["I3"]);
}

#[test]
fn answers_of_caches() {
    without(Off::Authoritative, scenarios::gardenlet(), &["I3"]);
}

#[test]
fn an_unconditional_update() {
    without(Off::ConditionalUpdate, scenarios::late_updates(), &["I1", "I2"]);
}

#[test]
fn epochs_that_are_not_compared() {
    without(Off::EpochCompared, scenarios::back(), &["I3"]);
}

#[test]
fn etcd_without_a_gate() {
    without(Off::GateInPath, scenarios::etcd(), &["I1", "data"]);
}

#[test]
fn a_final_snapshot_before_the_mark() {
    without(Off::DurableSeal, scenarios::etcd(), &["I1", "data"]);
}

#[test]
fn one_gate() {
    without(Off::TwoGates, scenarios::relay(), &["I3"]);
}

#[test]
fn a_fence_without_requests() {
    without(Off::RequestsInFence, scenarios::gardenlet(), &["I2", "I3"]);
}

#[test]
fn a_fence_without_propagation() {
    without(Off::PropagationInFence, scenarios::gardenlet(), &["I2", "I3"]);
}

#[test]
fn a_fence_without_drift() {
    without(Off::DriftInFence, scenarios::drift(), &["I2", "I3"]);
}

#[test]
fn a_clock_that_does_not_count_stops() {
    without(Off::ClockCountsAll, scenarios::gardenlet(), &["I3"]);
}

#[test]
fn a_missing_object_that_says_yours() {
    without(Off::MissingIsUnknown, scenarios::deletion(), &["I1"]);
}

#[test]
fn a_chain_that_is_chosen_again() {
    without(Off::ChainOnce, scenarios::data(), &["data: a later choice"]);
}

#[test]
fn foreign_data_that_are_kept() {
    without(Off::ForeignData, scenarios::data(), &["data: it opens with data"]);
}

#[test]
fn a_relay_that_gives_full_validity() {
    without(Off::RelayTellsWhatIsLeft, scenarios::relay(), &["I3"]);
}

#[test]
fn a_source_that_counts_as_drained() {
    without(Off::DrainedIsJudged, scenarios::drained(), &["I3"]);
}

#[test]
fn a_hand_over_that_the_record_contradicts() {
    without(Off::HandOverConfirmed, scenarios::forged(), &["I2", "I3"]);
}

#[test]
fn a_phase_that_the_claimant_has_not_noted() {
    without(Off::PhaseNoted, scenarios::forged_phases(), &["I2", "I3"]);
}

#[test]
fn a_deletion_that_ends_an_epoch_by_itself() {
    without(Off::DeletionNeedsWitness, scenarios::slip(), &["false loss"]);
}

#[test]
fn a_fresh_epoch_that_another_identity_ends() {
    without(Off::FreshEpoch, scenarios::out_of_step(), &["false loss"]);
}

#[test]
fn a_fence_that_asks_the_servers_of_the_destination_alone() {
    without(Off::ServersOfFormerSeeds, scenarios::two_lists(), &["I1"]);
}

/// The previous destination died, and the source is an earlier former owner.
#[test]
fn a_fence_that_asks_the_servers_of_the_last_two_seeds() {
    without(Off::ServersOfAllFormerSeeds, scenarios::two_lists(), &["I1"]);
}

#[test]
fn a_pause_without_a_host_clock() {
    without(Off::HostClock, scenarios::host_pauses(), &["I1"]);
}

#[test]
fn a_pause_of_a_gardenlet_without_a_host_clock() {
    without(Off::HostClock, scenarios::host_pauses_gardenlet(), &["I3"]);
}

#[test]
fn a_fence_without_unnoticed_pauses() {
    without(Off::PauseInFence, scenarios::host_pauses(), &["I1"]);
}

#[test]
fn a_fence_without_the_time_until_a_reading() {
    without(Off::ReadingInFence, scenarios::host_pauses(), &["I1"]);
    without(Off::ReadingInFence, scenarios::host_pauses_gardenlet(), &["I3"]);
}

/// The bound is tight: a fence that is one second shorter breaks the invariants.
#[test]
fn a_fence_that_is_one_second_shorter() {
    let scenario = Scenario {
        fence_less: 1,
        ..scenarios::gardenlet()
    };
    without(Off::Nothing, scenario, &["I2", "I3"]);
}
