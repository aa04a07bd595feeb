//! The explored scenarios. Each scenario models in detail only the processes of the explored question, so
//! that all scenarios together stay small.

use std::time::Duration;

use permit::UNNOTICED_PAUSE;

use super::scenario::{Scenario, Seed, settings};
use crate::settings::Settings;

/// Epochs, for masks.
const FIRST: u8 = 0b10;
const SECOND: u8 = 0b100;

/// The source's etcd, and a destination that takes over with or without the source's help; all cancellations.
pub(super) fn etcd() -> Scenario {
    Scenario {
        sidecars: FIRST,
        planned: true,
        sees: &["fence", "final", "drained"],
        ..Scenario::new("etcd")
    }
}

/// A move is cancelled: in the same epoch, and by a grant of a later epoch, also after the point of no
/// return.
pub(super) fn call_off() -> Scenario {
    Scenario {
        last: 3,
        sees: &["fence", "final", "drained", "third"],
        settings: settings(0, 1, 1, 0),
        name: "call-off",
        ..etcd()
    }
}

/// The source's etcd and actuators; the actuators ask the sidecar of etcd.
pub(super) fn relay() -> Scenario {
    Scenario {
        sidecars: FIRST,
        actuators: FIRST,
        settings: settings(0, 2, 1, 0),
        ..Scenario::new("relay")
    }
}

/// The source's actuators without a second witness, and a move with the source's help.
pub(super) fn drained() -> Scenario {
    Scenario {
        actuators: FIRST,
        planned: true,
        others_seal: true,
        sees: &["fence", "final", "drained"],
        ..Scenario::new("drained")
    }
}

/// The source's actuators, and a hand-over by a stolen certificate of the source's gardenlet.
pub(super) fn forged() -> Scenario {
    Scenario {
        actuators: FIRST,
        forged: true,
        ..Scenario::new("forged hand-over")
    }
}

/// The source's actuators, and a stolen certificate of the destination's gardenlet.
pub(super) fn forged_phases() -> Scenario {
    Scenario {
        actuators: FIRST,
        forged_phases: true,
        ..Scenario::new("forged phases")
    }
}

/// A gardenlet asks the garden.
pub(super) fn gardenlet() -> Scenario {
    Scenario {
        gardenlets: FIRST,
        ..Scenario::new("gardenlet")
    }
}

/// The destination dies, and a third seed takes over.
pub(super) fn several() -> Scenario {
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

/// A move to a seed and back in a later epoch.
pub(super) fn back() -> Scenario {
    Scenario {
        actuators: FIRST,
        last: 3,
        sees: &["fence", "acts", "third"],
        settings: settings(0, 2, 1, 0),
        ..Scenario::new("there and back")
    }
}

/// A write to the garden is under way for any time, beside other writes.
pub(super) fn late() -> Scenario {
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

/// The same, where a destination may open etcd before that write arrives.
pub(super) fn late_grant() -> Scenario {
    Scenario {
        last: 3,
        planned: false,
        sees: &["fence", "final", "third"],
        seats: &[Seed::A, Seed::B],
        name: "a late grant",
        ..late()
    }
}

/// An update of DNS is under way for any time. At first that is the update of the first owner, whose process
/// fell asleep before sending.
pub(super) fn late_updates() -> Scenario {
    Scenario {
        sidecars: FIRST,
        last: 3,
        late_updates: true,
        caches: false,
        settings: settings(0, 1, 1, 0),
        ..Scenario::new("late updates")
    }
}

/// After a move the shoot is deleted, together with all records of the move.
pub(super) fn deletion() -> Scenario {
    Scenario {
        sidecars: FIRST,
        deletion: true,
        sees: &["fence", "deleted"],
        ..Scenario::new("deletion")
    }
}

/// A secondary server that is behind.
pub(super) fn servers() -> Scenario {
    Scenario {
        sidecars: FIRST,
        servers: 2,
        settings: settings(0, 2, 1, 0),
        ..Scenario::new("two servers")
    }
}

/// A drift of one part in ten: the source's clock loses a second in ten, the destination's clock gains a
/// second.
pub(super) fn drift() -> Scenario {
    Scenario {
        actuators: FIRST,
        drift: true,
        settings: settings(0, 9, 1, 100_000),
        ..Scenario::new("drift")
    }
}

/// Seeds try every step of every writer.
pub(super) fn strangers() -> Scenario {
    Scenario {
        sidecars: FIRST,
        strangers: true,
        settings: settings(0, 1, 1, 0),
        ..Scenario::new("rights")
    }
}

/// A move and back, where data directories are lost and final snapshots come late.
pub(super) fn data() -> Scenario {
    Scenario {
        last: 3,
        data_loss: true,
        others_seal: true,
        sees: &["fence", "final", "third"],
        settings: settings(0, 1, 1, 0),
        ..Scenario::new("data")
    }
}

/// A stranger deletes the owner record of a running shoot, or in the middle of a move; and the seed is
/// granted the next epoch.
pub(super) fn slip() -> Scenario {
    Scenario {
        sidecars: FIRST,
        planned: true,
        slip: true,
        sees: &["fence", "final", "drained", "renewed"],
        settings: settings(0, 2, 1, 0),
        ..Scenario::new("a slip")
    }
}

/// The same, where actuators ask the sidecar.
pub(super) fn slip_beside_relay() -> Scenario {
    Scenario {
        slip: true,
        sees: &["fence", "acts", "renewed"],
        settings: settings(0, 1, 1, 0),
        name: "a slip beside a relay",
        ..relay()
    }
}

/// The same, where a gardenlet asks the garden.
pub(super) fn slip_beside_gardenlet() -> Scenario {
    Scenario {
        slip: true,
        sees: &["fence", "acts", "renewed"],
        name: "a slip beside a gardenlet",
        ..gardenlet()
    }
}

/// Replicas apply the two names of an update separately. In a planned move the destination's etcd asks at
/// once.
pub(super) fn out_of_step() -> Scenario {
    Scenario {
        sidecars: FIRST | SECOND,
        planned: true,
        out_of_step: true,
        sees: &["fence", "final", "drained"],
        settings: settings(1, 1, 1, 0),
        ..Scenario::new("names out of step")
    }
}

/// The source asks the second server, and all other seeds ask the first server. The second server may be
/// behind for any time. The destination may die, and the third seed takes over from the source as well.
pub(super) fn two_lists() -> Scenario {
    Scenario {
        sidecars: FIRST,
        servers: 2,
        lists: [0b10, 0b01, 0b01],
        seats: &[Seed::A, Seed::B, Seed::C],
        last: 3,
        sees: &["fence", "third", "stale"],
        settings: settings(0, 1, 1, 0),
        ..Scenario::new("two lists of servers")
    }
}

/// The same, where garden-controller-manager refuses a takeover between seeds with different lists.
pub(super) fn refused_lists() -> Scenario {
    Scenario {
        refuses_other_lists: true,
        planned: true,
        sees: &["final", "drained"],
        name: "a refused takeover",
        ..two_lists()
    }
}

/// The hypervisor pauses the machine of the source's etcd for any time, any number of times. Requests take no
/// time, so that I1 detects a fence that is one second too short.
pub(super) fn host_pauses() -> Scenario {
    Scenario {
        sidecars: FIRST,
        host_pauses: true,
        planned: true,
        sees: &["fence", "final", "drained", "short pause", "long pause"],
        settings: Settings {
            requests: Duration::from_nanos(1),
            pause: UNNOTICED_PAUSE,
            ..settings(0, 2, 1, 0)
        },
        ..Scenario::new("host pauses")
    }
}

/// The same, where a gardenlet asks the garden. Requests take all of H.
pub(super) fn host_pauses_gardenlet() -> Scenario {
    Scenario {
        host_pauses: true,
        sees: &["fence", "acts", "short pause", "long pause"],
        settings: Settings {
            pause: UNNOTICED_PAUSE,
            ..settings(0, 2, 1, 0)
        },
        name: "host pauses beside a gardenlet",
        ..gardenlet()
    }
}
