//! The parts of the cut that runs explore.

use super::rules::CutScenario;
use super::sides::Budget;

/// The move is cancelled and begun again; the record lands at any time.
pub(super) fn cancellation() -> CutScenario {
    CutScenario {
        attempts: 3,
        budget: Budget {
            cancellations: 1,
            source_restarts: 1,
            destination_restarts: 1,
            ..Budget::of_writes(1)
        },
        ..CutScenario::new("cancellation")
    }
}

/// The process beside the etcd of A starts again, and attempts are given up.
pub(super) fn source_restarts() -> CutScenario {
    CutScenario {
        budget: Budget {
            source_restarts: 2,
            leases: 1,
            ..Budget::of_writes(2)
        },
        ..CutScenario::new("the source restarts")
    }
}

/// The volume of A is lost, with or without a revision that the bucket does not have.
pub(super) fn source_volume() -> CutScenario {
    CutScenario {
        budget: Budget {
            source_volumes: 1,
            source_restarts: 1,
            ..Budget::of_writes(2)
        },
        ..CutScenario::new("the source loses its volume")
    }
}

/// Leases end at A and at B, also in the hold.
pub(super) fn leases() -> CutScenario {
    CutScenario {
        attempts: 1,
        budget: Budget {
            leases: 1,
            own_leases: 1,
            ..Budget::of_writes(2)
        },
        ..CutScenario::new("leases end")
    }
}

/// Clients give up writes that are at the etcd of A.
pub(super) fn given_up_writes() -> CutScenario {
    CutScenario {
        attempts: 1,
        budget: Budget {
            leases: 1,
            ..Budget::of_writes(2)
        },
        gives_up_writes: true,
        ..CutScenario::new("clients give up writes")
    }
}

/// The process beside the etcd of B starts again at any time.
pub(super) fn destination_restarts() -> CutScenario {
    CutScenario {
        attempts: 1,
        budget: Budget {
            destination_restarts: 1,
            leases: 1,
            ..Budget::of_writes(2)
        },
        ..CutScenario::new("the destination restarts")
    }
}

/// The volume of B is lost at any time.
pub(super) fn destination_volume() -> CutScenario {
    CutScenario {
        attempts: 1,
        budget: Budget {
            leases: 1,
            destination_volumes: 1,
            ..Budget::of_writes(2)
        },
        ..CutScenario::new("the destination loses its volume")
    }
}

/// One seed dies, and B starts again.
pub(super) fn deaths() -> CutScenario {
    CutScenario {
        budget: Budget {
            deaths: 1,
            destination_restarts: 1,
            failing_links: 1,
            ..Budget::of_writes(1)
        },
        ..CutScenario::new("a seed dies")
    }
}

/// Any link fails at any time, also right after the record.
pub(super) fn links() -> CutScenario {
    CutScenario {
        budget: Budget {
            failing_links: 2,
            source_restarts: 1,
            ..Budget::of_writes(1)
        },
        ..CutScenario::new("links fail")
    }
}

/// Clients of both API servers write through the cut, and B starts again.
pub(super) fn forwarding() -> CutScenario {
    CutScenario {
        attempts: 1,
        budget: Budget {
            destination_restarts: 1,
            ..Budget::of_writes(2)
        },
        via_destination: true,
        ..CutScenario::new("requests are forwarded")
    }
}

/// A third seed takes over from B, while A forwards.
pub(super) fn takeover() -> CutScenario {
    CutScenario {
        budget: Budget {
            destination_restarts: 1,
            ..Budget::of_writes(0)
        },
        timed: true,
        forwards: true,
        ..CutScenario::new("a third seed takes over")
    }
}

/// The same with the drift of clocks.
pub(super) fn drift() -> CutScenario {
    CutScenario {
        budget: Budget::of_writes(0),
        timed: true,
        drifts: true,
        validity: 9,
        ..CutScenario::new("clocks drift")
    }
}
