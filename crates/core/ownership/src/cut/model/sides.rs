//! The source, the destination, a third seed and the request of a client.

use std::time::Duration;

use super::super::record::{FollowedEnd, SealedAttempt};
use super::super::source::{CutProgress, SourceMark};
use super::history::History;

/// The present, by every clock. States keep remaining and elapsed times.
pub(super) const NOW: Duration = Duration::from_secs(1000);

pub(super) fn seconds(number: u8) -> Duration {
    Duration::from_secs(number.into())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MoveSeed {
    A,
    B,
    C,
}

/// The process beside the etcd of A, the gate of A, and the memory of the gardenlet of A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SourceSide {
    pub(super) is_alive: bool,
    /// The data of etcd are there.
    pub(super) has_data: bool,
    pub(super) log: History,
    pub(super) is_volume_new: bool,
    /// The restore of the new volume has lost a revision.
    pub(super) has_lost_revision: bool,
    pub(super) mark: Option<SourceMark>,
    pub(super) progress: CutProgress,
    pub(super) proof: Option<FollowedEnd>,
    /// The process has opened the gate since the process started.
    pub(super) serves: bool,
    pub(super) streams: bool,
    /// In the memory of the gardenlet.
    pub(super) report: Option<SealedAttempt>,
    /// The record was read.
    pub(super) knows_record: bool,
    /// DNS has shown a later epoch.
    pub(super) is_lost: bool,
    /// The relayed permit of B, in seconds.
    pub(super) relay: u8,
    /// An answer of B under way, and the age of the question.
    pub(super) relay_answer: Option<(u8, u8)>,
}

/// The process beside the etcd of B, the gate of B, and the follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DestinationSide {
    pub(super) is_alive: bool,
    pub(super) log: History,
    /// The events that the follower has received from A.
    pub(super) received: History,
    /// A transaction that was sent to the own etcd and not answered.
    pub(super) pending: Option<u8>,
    pub(super) follows: bool,
    pub(super) proved: Option<SealedAttempt>,
    pub(super) knows_record: bool,
    pub(super) has_opened: bool,
    /// The volume was lost after etcd had opened.
    pub(super) skips_revisions: bool,
    /// The remaining permit, in seconds.
    pub(super) permit: u8,
    pub(super) is_lost: bool,
    /// A positive answer under way, and the age of the question.
    pub(super) answer: Option<u8>,
}

impl DestinationSide {
    pub(super) fn restarted(self) -> Self {
        Self {
            pending: None,
            follows: false,
            knows_record: false,
            has_opened: false,
            permit: 0,
            answer: None,
            ..self
        }
    }

    pub(super) fn has_permit(&self) -> bool {
        self.is_alive && self.permit > 0
    }

    /// Whether a write could be acknowledged now.
    pub(super) fn acknowledges(&self) -> bool {
        self.has_opened && self.has_permit()
    }
}

/// The owner of the third epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct NextOwner {
    /// Seconds since all witnesses were seen.
    pub(super) fence: Option<u8>,
    pub(super) has_opened: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RequestPlace {
    SourceGate,
    SourceEtcd,
    DestinationGate,
}

/// A write of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClientWrite {
    pub(super) id: u8,
    pub(super) place: RequestPlace,
    /// The epoch that the request carries.
    pub(super) carried: Option<i64>,
    pub(super) hops: u8,
    pub(super) is_given_up: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SeedLink {
    Seeds,
    SourceToGarden,
    DestinationToGarden,
}

/// Events that may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) writes: u8,
    pub(super) leases: u8,
    pub(super) own_leases: u8,
    pub(super) cancellations: u8,
    pub(super) source_restarts: u8,
    pub(super) source_volumes: u8,
    pub(super) destination_restarts: u8,
    pub(super) destination_volumes: u8,
    pub(super) deaths: u8,
    pub(super) failing_links: u8,
    /// Clocks of the fenced side may lose a second.
    pub(super) loses: bool,
    /// The clock of the third seed may gain a second.
    pub(super) gains: bool,
}

impl Budget {
    /// Writes of clients, and no fault.
    pub(super) fn of_writes(writes: u8) -> Self {
        Self {
            writes,
            ..Self::default()
        }
    }
}
