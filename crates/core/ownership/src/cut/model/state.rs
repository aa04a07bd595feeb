//! A state of the model.

use super::super::forwarding::{GateRoute, destination_route, source_route};
use super::super::record::{LiveOwnership, SealedAttempt};
use super::super::source::{AttemptMarks, BucketMark, CutProgress, SourceMark};
use super::history::{History, events_until};
use super::rules::{CutRule, CutScenario};
use super::sides::{Budget, ClientWrite, DestinationSide, MoveSeed, NextOwner, SeedLink, SourceSide};
use crate::conditional::Conditional;
use crate::marks::OwnershipObject;
use crate::phase::{Ownership, Phase, SeedEpoch, Step, Writer};

pub(super) type Garden = LiveOwnership<MoveSeed>;

pub(super) const HISTORIES: &str = "two histories: a revision has two contents";
pub(super) const LOST_WRITE: &str = "lost write: an acknowledged revision is missing";
pub(super) const TWO_WRITERS: &str = "I1: a write is acknowledged after a later epoch was opened";
pub(super) const FOREIGN: &str = "foreign data: the follower writes into an etcd that is open";
pub(super) const CIRCLE: &str = "a request goes in a circle";
pub(super) const UNAVAILABLE: &str = "unavailable: no step of a healthy process helps";

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CutState {
    pub(super) garden: Garden,
    /// The record under way. May land at any time.
    pub(super) record: Option<Conditional<Garden>>,
    /// The garden right after the record.
    pub(super) recorded: Option<Garden>,
    /// The epoch in DNS.
    pub(super) zone: i64,
    /// The attempt in the bucket of A.
    pub(super) marked_attempt: Option<u32>,
    /// `ownership.json` in the bucket of B.
    pub(super) own_bucket: Option<OwnershipObject>,
    /// The chain in the bucket of B, with the proof.
    pub(super) chain: Option<(History, Option<SealedAttempt>)>,
    pub(super) source: SourceSide,
    pub(super) destination: DestinationSide,
    pub(super) next: Option<NextOwner>,
    pub(super) write: Option<ClientWrite>,
    /// All revisions that a client has observed.
    pub(super) observed: History,
    /// The second epoch was opened.
    pub(super) was_opened: bool,
    pub(super) failed_links: [bool; 3],
    pub(super) budget: Budget,
    pub(super) broken: Option<&'static str>,
}

pub(super) fn epoch_of_source() -> SeedEpoch<MoveSeed> {
    SeedEpoch {
        seed: MoveSeed::A,
        epoch: 1,
    }
}

pub(super) fn epoch_of_destination() -> SeedEpoch<MoveSeed> {
    SeedEpoch {
        seed: MoveSeed::B,
        epoch: 2,
    }
}

impl CutState {
    pub(super) fn first(scenario: &CutScenario) -> Self {
        let held = Ownership::first(MoveSeed::A);
        let leaving = held.step(&Writer::Seed(MoveSeed::A), Step::Leave).unwrap();
        let leaving = Garden::of_epoch(leaving.becomes);
        let passing = leaving.begin_passing(&MoveSeed::A, MoveSeed::B).unwrap();
        let first = Self {
            garden: passing.becomes,
            record: None,
            recorded: None,
            zone: 1,
            marked_attempt: None,
            own_bucket: None,
            chain: None,
            source: SourceSide {
                is_alive: true,
                has_data: true,
                log: History::default(),
                is_volume_new: false,
                has_lost_revision: false,
                mark: None,
                progress: CutProgress::default(),
                proof: None,
                serves: true,
                streams: true,
                report: None,
                knows_record: false,
                is_lost: false,
                relay: 0,
                relay_answer: None,
            },
            destination: DestinationSide {
                is_alive: true,
                log: History::default(),
                received: History::default(),
                pending: None,
                follows: true,
                proved: None,
                knows_record: false,
                has_opened: false,
                skips_revisions: false,
                permit: 0,
                is_lost: false,
                answer: None,
            },
            next: None,
            write: None,
            observed: History::default(),
            was_opened: false,
            failed_links: [false; 3],
            budget: Budget {
                loses: scenario.drifts,
                gains: scenario.drifts,
                ..scenario.budget
            },
            broken: None,
        };
        if scenario.timed { first.sealed() } else { first }
    }

    /// The state after the cut: the record is under way.
    fn sealed(mut self) -> Self {
        let end = self.source.log.end();
        let report = SealedAttempt {
            attempt: self.garden.attempt,
            end,
        };
        self.source.mark = Some(SourceMark::Passed(report));
        self.source.report = Some(report);
        self.source.streams = false;
        self.marked_attempt = Some(self.garden.attempt);
        self.destination.proved = Some(report);
        self.destination.follows = false;
        let record = self.garden.hand_over(&MoveSeed::A, &report, true);
        self.record = record.ok();
        self
    }

    pub(super) fn is_linked(&self, link: SeedLink) -> bool {
        !self.failed_links[link as usize]
    }

    /// The source's gardenlet and sidecar reach the garden.
    pub(super) fn source_reaches_garden(&self) -> bool {
        self.source.is_alive && self.is_linked(SeedLink::SourceToGarden)
    }

    pub(super) fn seeds_are_linked(&self) -> bool {
        self.source.is_alive && self.destination.is_alive && self.is_linked(SeedLink::Seeds)
    }

    /// A read by either seed is enough: the source reads the garden for a question of the destination.
    pub(super) fn destination_reaches_garden(&self) -> bool {
        let by_source = self.seeds_are_linked() && self.source_reaches_garden();
        self.destination.is_alive && self.is_linked(SeedLink::DestinationToGarden) || by_source
    }

    pub(super) fn is_owned_by_source(&self) -> bool {
        self.garden.is_owned_by(&epoch_of_source())
    }

    pub(super) fn is_passing(&self) -> bool {
        self.is_owned_by_source() && self.garden.passing_to.is_some()
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.is_owned_by_source() && self.garden.ownership.phase == Phase::Leaving
    }

    /// The marks that a process of A finds when the process starts.
    pub(super) fn marks(&self, scenario: &CutScenario) -> AttemptMarks {
        let in_bucket = if scenario.is_on(CutRule::BucketIsRead) {
            self.marked_attempt
        } else {
            None
        };
        let absent = BucketMark::Absent;
        AttemptMarks {
            beside_data: self.source.mark,
            is_volume_new: self.source.is_volume_new,
            in_bucket: in_bucket.map_or(absent, |attempt| BucketMark::Passing { attempt }),
        }
    }

    pub(super) fn route_at_source(&self, scenario: &CutScenario) -> GateRoute {
        let source = &self.source;
        if !source.is_alive || !source.serves && !source.knows_record {
            return GateRoute::Hold;
        }
        if source.is_lost && !scenario.is_on(CutRule::ForwardingOutlivesLost) {
            return GateRoute::Refuse;
        }
        let progress = if scenario.is_on(CutRule::HoldBeforeEnd) {
            source.progress
        } else {
            CutProgress::default()
        };
        source_route(
            &progress,
            source.mark.as_ref(),
            source.knows_record.then_some(2),
            !source.is_lost,
            source.relay > 0 || !scenario.is_on(CutRule::RelayedPermit),
        )
    }

    pub(super) fn route_at_destination(&self) -> GateRoute {
        let destination = &self.destination;
        destination_route(
            destination.has_opened,
            destination.has_permit(),
            destination.knows_record,
            (!destination.knows_record).then_some(1),
        )
    }

    /// Whether the source could acknowledge a write of its own epoch now.
    pub(super) fn source_acknowledges(&self, scenario: &CutScenario) -> bool {
        self.source.has_data && self.route_at_source(scenario) == GateRoute::Etcd
    }

    /// The length of the history that the record names.
    pub(super) fn recorded_len(&self) -> Option<u8> {
        let end = self.recorded.as_ref()?.followed?;
        Some(events_until(&end))
    }

    /// A client observes all revisions of this history.
    pub(super) fn observe(&mut self, history: History) {
        if !self.observed.is_prefix_of(&history) {
            let is_short = history.is_prefix_of(&self.observed);
            self.broken = Some(if is_short { LOST_WRITE } else { HISTORIES });
        }
        self.observed = history;
    }
}
