//! The protocol of `docs/ownership.md`, explored exhaustively.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::unchecked_time_subtraction,
    clippy::struct_excessive_bools
)]

mod action;
mod ask;
mod check;
mod scenario;
mod state;
mod step;

use check::{explore, without};
use scenario::{Off, Scenario, Seed, settings};

/// Epochs, for masks.
const FIRST: u8 = 0b10;
const SECOND: u8 = 0b100;

/// The source's etcd, and a destination that takes over with or without its help; all call-offs.
fn etcd() -> Scenario {
    Scenario {
        sidecars: FIRST,
        planned: true,
        sees: &["fence", "final", "drained"],
        ..Scenario::new("etcd")
    }
}

/// A move is called off: in the same epoch, and by a grant of a later one, also after the point of no return.
fn call_off() -> Scenario {
    Scenario {
        last: 3,
        sees: &["fence", "final", "drained", "third"],
        settings: settings(0, 1, 1, 0),
        name: "call-off",
        ..etcd()
    }
}

/// The source's etcd and actuators, which ask its sidecar.
fn relay() -> Scenario {
    Scenario {
        sidecars: FIRST,
        actuators: FIRST,
        settings: settings(0, 2, 1, 0),
        ..Scenario::new("relay")
    }
}

/// The source's actuators without a second witness, and a move with its help.
fn drained() -> Scenario {
    Scenario {
        actuators: FIRST,
        planned: true,
        others_seal: true,
        sees: &["fence", "final", "drained"],
        ..Scenario::new("drained")
    }
}

/// A gardenlet asks the garden.
fn gardenlet() -> Scenario {
    Scenario {
        gardenlets: FIRST,
        ..Scenario::new("gardenlet")
    }
}

/// The destination dies, and a third seed takes over.
fn several() -> Scenario {
    Scenario {
        sidecars: SECOND,
        others_seal: true,
        seats: &[Seed::A, Seed::B, Seed::C],
        last: 3,
        sees: &["fence", "final", "third"],
        settings: settings(1, 1, 1, 0),
        ..Scenario::new("several claimants")
    }
}

/// There, and back in a later epoch.
fn back() -> Scenario {
    Scenario {
        actuators: FIRST,
        last: 3,
        sees: &["fence", "acts", "third"],
        settings: settings(0, 2, 1, 0),
        ..Scenario::new("there and back")
    }
}

/// One write to the garden is under way for any time, beside others.
fn late() -> Scenario {
    Scenario {
        seats: &[Seed::A, Seed::B, Seed::C],
        planned: true,
        others_seal: true,
        late_writes: true,
        sees: &["fence", "final", "drained"],
        settings: settings(0, 1, 1, 0),
        ..Scenario::new("late writes")
    }
}

/// The same, where a destination may open before it arrives.
fn late_grant() -> Scenario {
    Scenario {
        last: 3,
        planned: false,
        sees: &["fence", "final", "third"],
        seats: &[Seed::A, Seed::B],
        name: "a late grant",
        ..late()
    }
}

/// One update of DNS is under way for any time; at first that of the first owner, whose process fell asleep in it.
fn late_updates() -> Scenario {
    Scenario {
        sidecars: FIRST,
        last: 3,
        late_updates: true,
        caches: false,
        settings: settings(0, 1, 1, 0),
        ..Scenario::new("late updates")
    }
}

/// After a move the shoot is deleted, and so is all that could tell.
fn deletion() -> Scenario {
    Scenario {
        sidecars: FIRST,
        deletion: true,
        sees: &["fence", "deleted"],
        ..Scenario::new("deletion")
    }
}

/// A secondary server that is behind.
fn servers() -> Scenario {
    Scenario {
        sidecars: FIRST,
        servers: 2,
        settings: settings(0, 2, 1, 0),
        ..Scenario::new("two servers")
    }
}

/// One part of ten: the source's clock loses a second in ten, the destination's gains one.
fn drift() -> Scenario {
    Scenario {
        actuators: FIRST,
        drift: true,
        settings: settings(0, 9, 1, 100_000),
        ..Scenario::new("drift")
    }
}

fn strangers() -> Scenario {
    Scenario {
        sidecars: FIRST,
        strangers: true,
        settings: settings(0, 1, 1, 0),
        ..Scenario::new("rights")
    }
}

fn data() -> Scenario {
    Scenario {
        last: 3,
        data_loss: true,
        others_seal: true,
        sees: &["fence", "final", "third"],
        settings: settings(0, 1, 1, 0),
        ..Scenario::new("data")
    }
}

macro_rules! holds {
    ($($test:ident: $scenario:expr;)*) => { $(#[test] fn $test() { explore(&$scenario); })* };
}

macro_rules! breaks {
    ($($test:ident: $off:ident, $scenario:expr, $what:expr;)*) => {
        $(#[test] fn $test() { without(Off::$off, $scenario, &$what); })*
    };
}

mod holds {
    use super::{
        back, call_off, data, deletion, drained, drift, etcd, explore, gardenlet, late, late_grant, late_updates, relay, servers, several, strangers,
    };

    holds! {
        etcd_moves: etcd();
        moves_are_called_off: call_off();
        actuators_ask_the_sidecar: relay();
        a_source_is_drained: drained();
        a_gardenlet_asks_the_garden: gardenlet();
        several_seeds_claim: several();
        there_and_back: back();
        writes_to_the_garden_come_late: late();
        a_grant_comes_late: late_grant();
        updates_of_dns_come_late: late_updates();
        a_shoot_is_deleted: deletion();
        a_server_is_behind: servers();
        clocks_drift: drift();
        seeds_try_what_is_not_theirs: strangers();
        data_directories_are_lost: data();
    }
}

mod breaks {
    use super::{
        Off, Scenario, back, data, deletion, drained, drift, call_off, etcd, gardenlet, late, late_grant, late_updates, relay, servers,
        strangers, without,
    };

    breaks! {
        a_grant_that_tests_nothing: TestedGrant, late(), ["I1", "I2"];
        a_grant_that_tests_the_epoch_alone: WholeTest, late_grant(), ["I1", "I2"];
        seeds_that_take_each_others_steps: Writers, strangers(), ["I1", "I2"];
        a_fence_before_the_bucket: FenceAfterBucket, call_off(), ["I1", "I2"];
        a_fence_at_the_first_server: FenceAfterAllServers, servers(), ["I1", "I2"];
        validity_from_the_answer: ValidityFromSending, gardenlet(), ["I3"];
        answers_of_caches: Authoritative, gardenlet(), ["I3"];
        an_unconditional_update: ConditionalUpdate, late_updates(), ["I1", "I2"];
        epochs_that_are_not_compared: EpochCompared, back(), ["I3"];
        etcd_without_a_gate: GateInPath, etcd(), ["I1", "data"];
        a_final_snapshot_before_the_mark: DurableSeal, etcd(), ["I1", "data"];
        one_gate: TwoGates, relay(), ["I3"];
        a_fence_without_requests: RequestsInFence, gardenlet(), ["I2", "I3"];
        a_fence_without_propagation: PropagationInFence, gardenlet(), ["I2", "I3"];
        a_fence_without_drift: DriftInFence, drift(), ["I2", "I3"];
        a_clock_that_does_not_count_stops: ClockCountsAll, gardenlet(), ["I3"];
        a_missing_object_that_says_yours: MissingIsUnknown, deletion(), ["I1"];
        a_chain_that_is_chosen_again: ChainOnce, data(), ["data: a later choice"];
        foreign_data_that_are_kept: ForeignData, data(), ["data: it opens with data"];
        a_relay_that_gives_full_validity: RelayTellsWhatIsLeft, relay(), ["I3"];
        a_source_that_counts_as_drained: DrainedIsJudged, drained(), ["I3"];
    }

    /// The bound is tight: one second less, and it breaks.
    #[test]
    fn a_fence_that_is_one_second_shorter() {
        without(Off::Nothing, Scenario { fence_less: 1, ..gardenlet() }, &["I2", "I3"]);
    }
}
