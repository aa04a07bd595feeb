//! I1 to I3 hold in every reachable state.

use super::check::explore;
use super::scenario::{Off, Scenario};
use super::scenarios;

/// R17-06: with or without the source, no two seeds acknowledge writes.
#[test]
fn etcd_moves_with_and_without_its_source() {
    explore(&scenarios::etcd());
}

#[test]
fn moves_are_called_off() {
    explore(&scenarios::call_off());
}

#[test]
fn actuators_ask_the_sidecar() {
    explore(&scenarios::relay());
}

#[test]
fn a_source_is_drained() {
    explore(&scenarios::drained());
}

/// Security: the destination fences a source whose owner record still stands.
#[test]
fn a_hand_over_is_forged() {
    explore(&scenarios::forged());
}

/// Security: the destination fences the source, whatever phase the garden has.
#[test]
fn phases_of_a_claimant_are_forged() {
    explore(&scenarios::forged_phases());
}

#[test]
fn a_gardenlet_asks_the_garden() {
    explore(&scenarios::gardenlet());
}

#[test]
fn several_seeds_claim() {
    explore(&scenarios::several());
}

#[test]
fn there_and_back() {
    explore(&scenarios::back());
}

#[test]
fn writes_to_the_garden_come_late() {
    explore(&scenarios::late());
}

#[test]
fn a_grant_comes_late() {
    explore(&scenarios::late_grant());
}

#[test]
fn updates_of_dns_come_late() {
    explore(&scenarios::late_updates());
}

#[test]
fn a_shoot_is_deleted() {
    explore(&scenarios::deletion());
}

#[test]
fn a_server_is_behind() {
    explore(&scenarios::servers());
}

#[test]
fn clocks_drift() {
    explore(&scenarios::drift());
}

#[test]
fn seeds_try_what_is_not_theirs() {
    explore(&scenarios::strangers());
}

#[test]
fn data_directories_are_lost() {
    explore(&scenarios::data());
}

/// No shoot is lost by the deletion, and a grant to the same seed (`renew`) keeps the data.
#[test]
fn a_stranger_deletes_the_record() {
    explore(&scenarios::slip());
}

#[test]
fn a_stranger_deletes_the_record_beside_actuators() {
    explore(&scenarios::slip_beside_relay());
}

#[test]
fn a_stranger_deletes_the_record_beside_a_gardenlet() {
    explore(&scenarios::slip_beside_gardenlet());
}

#[test]
fn the_two_names_are_out_of_step() {
    explore(&scenarios::out_of_step());
}

/// The fence asks the servers of all former seeds, so that a server that only the source asks extends no
/// permit.
#[test]
fn seeds_ask_different_servers() {
    explore(&scenarios::two_lists());
}

/// The refusal alone is enough, whatever the fence asks: planned moves need no fence.
#[test]
fn a_takeover_between_different_lists_is_refused() {
    explore(&Scenario {
        off: Some(Off::ServersOfFormerSeeds),
        ..scenarios::refused_lists()
    });
}

/// After a long pause I1 allows for writes until the next reading of the host clock.
#[test]
fn a_hypervisor_pauses_the_etcd_of_the_source() {
    explore(&scenarios::host_pauses());
}

/// The same for I3.
#[test]
fn a_hypervisor_pauses_the_gardenlet_of_the_source() {
    explore(&scenarios::host_pauses_gardenlet());
}
