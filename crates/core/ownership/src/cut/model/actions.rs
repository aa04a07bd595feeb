//! The actions that are possible in a state.

use super::super::destination::may_follow;
use super::super::forwarding::GateRoute;
use super::super::source::CutStep;
use super::history::{History, LEASE, SKIPPED};
use super::rules::{CutRule, CutScenario};
use super::sides::{MoveSeed, RequestPlace, SeedLink};
use super::state::{CutState, epoch_of_destination};
use crate::marks::OwnershipObject;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CutAction {
    /// A client sends a write to the gate of A or B.
    Send {
        via_destination: bool,
    },
    /// A gate answers UNAVAILABLE, because the hold lasts.
    GateRefuses,
    /// The gate of A passes the write to the etcd of A.
    PassToSourceEtcd,
    /// The etcd of A applies the write and answers.
    AnswerAtSource,
    ClientGivesUp,
    ForwardToDestination,
    ForwardToSource,
    AnswerAtDestination,
    LeaseEndsAtSource,
    LeaseEndsAtDestination,
    FollowerReceives,
    FollowerWrites,
    /// The follower begins again with a copy of all data.
    CopyAgain,
    UploadChain,
    MarkBesideData,
    MarkInBucket,
    Cut(CutStep),
    SendRecord,
    RecordLands,
    GiveUp,
    Cancel,
    BeginAgain,
    SourceOpens,
    SourceLearnsOfRecord,
    SourceIsLost,
    SourceDeletesData,
    DestinationReadsRecord,
    DestinationHears,
    DestinationOpens,
    DestinationOwnsBucket,
    DestinationUpdatesDns,
    DestinationAsksWitnesses,
    SourceRestarts,
    SourceLosesVolume {
        loses_revision: bool,
    },
    DestinationRestarts,
    DestinationLosesVolume,
    SourceDies,
    DestinationDies,
    LinkFails(SeedLink),
    LinkHeals(SeedLink),
    /// The garden grants the next epoch to a third seed.
    Grant,
    NextUpdatesDns,
    NextClaimsBucket,
    NextSeesAllWitnesses,
    NextOpens,
    SourceAsksDestination,
    SourceHearsDestination,
    /// A second passes. A clock may lose or gain one second.
    Tick {
        loses: bool,
        gains: bool,
    },
}

const LINKS: [SeedLink; 3] = [
    SeedLink::Seeds,
    SeedLink::SourceToGarden,
    SeedLink::DestinationToGarden,
];

impl CutAction {
    /// Whether a healthy process does this sooner or later. All failures and wishes of users are not helpful.
    pub(super) fn is_helpful(self) -> bool {
        !matches!(
            self,
            Self::Send { .. }
                | Self::ClientGivesUp
                | Self::LeaseEndsAtSource
                | Self::LeaseEndsAtDestination
                | Self::Cancel
                | Self::SourceRestarts
                | Self::SourceLosesVolume { .. }
                | Self::DestinationRestarts
                | Self::DestinationLosesVolume
                | Self::SourceDies
                | Self::DestinationDies
                | Self::LinkFails(_)
                | Self::Tick { .. }
        )
    }
}

impl CutState {
    pub(super) fn possible(&self, scenario: &CutScenario) -> Vec<CutAction> {
        let mut actions = Vec::new();
        let mut add = |is_possible: bool, action: CutAction| {
            if is_possible {
                actions.push(action);
            }
        };
        self.add_client(scenario, &mut add);
        self.add_follower(scenario, &mut add);
        self.add_source(scenario, &mut add);
        self.add_garden(scenario, &mut add);
        self.add_destination(scenario, &mut add);
        self.add_failures(&mut add);
        self.add_next_owner(scenario, &mut add);
        actions
    }

    fn add_client(&self, scenario: &CutScenario, add: &mut impl FnMut(bool, CutAction)) {
        let Some(write) = self.write else {
            let may_send = self.budget.writes > 0;
            let to_source = self.source.is_alive && (self.source.serves || self.source.knows_record);
            let to_destination = self.destination.is_alive && (scenario.via_destination || self.was_opened);
            for (via_destination, is_reached) in [(false, to_source), (true, to_destination)] {
                add(may_send && is_reached, CutAction::Send { via_destination });
            }
            return;
        };
        let is_at = |place| write.place == place;
        let seed_is_dead = !self.source.is_alive || !self.destination.is_alive;
        add(
            seed_is_dead && !is_at(RequestPlace::SourceEtcd),
            CutAction::GateRefuses,
        );
        let at_source = self.route_at_source(scenario);
        let at_destination = self.route_at_destination();
        add(
            is_at(RequestPlace::SourceGate) && at_source == GateRoute::Etcd,
            CutAction::PassToSourceEtcd,
        );
        add(
            is_at(RequestPlace::SourceEtcd) && self.source.is_alive,
            CutAction::AnswerAtSource,
        );
        add(
            is_at(RequestPlace::SourceEtcd) && scenario.gives_up_writes && !write.is_given_up,
            CutAction::ClientGivesUp,
        );
        let forwards = self.seeds_are_linked() && matches!(at_source, GateRoute::Peer { .. });
        add(
            is_at(RequestPlace::SourceGate) && forwards && self.forwarded(scenario, 2).is_some(),
            CutAction::ForwardToDestination,
        );
        let returns = self.seeds_are_linked() && matches!(at_destination, GateRoute::Peer { .. });
        add(
            is_at(RequestPlace::DestinationGate) && returns && self.forwarded(scenario, 1).is_some(),
            CutAction::ForwardToSource,
        );
        add(
            is_at(RequestPlace::DestinationGate) && at_destination == GateRoute::Etcd,
            CutAction::AnswerAtDestination,
        );
    }

    fn add_follower(&self, scenario: &CutScenario, add: &mut impl FnMut(bool, CutAction)) {
        let (source, destination) = (&self.source, &self.destination);
        let reaches_etcd = self.seeds_are_linked() && source.has_data && !source.is_volume_new;
        let event = source.log.get(destination.received.len());
        let receives = destination.follows && destination.pending.is_none() && reaches_etcd;
        add(
            receives && event.is_some_and(|event| event != SKIPPED),
            CutAction::FollowerReceives,
        );
        add(
            destination.is_alive && destination.pending.is_some(),
            CutAction::FollowerWrites,
        );
        let proof = self.follow_proof(scenario);
        let may = may_follow(
            &self.garden,
            &epoch_of_destination(),
            &proof,
            destination.has_opened,
        ) && (self.recorded.is_none() || scenario.is_on(CutRule::FollowsAgain));
        let is_wanted =
            !destination.follows || !destination.received.is_prefix_of(&source.log) || self.has_own_events();
        add(may && is_wanted && reaches_etcd, CutAction::CopyAgain);
        let is_new = self.chain != Some((destination.log, destination.proved));
        let is_whole = destination.pending.is_none() && (destination.follows || destination.proved.is_some());
        let can_lose = scenario.budget.destination_volumes > 0;
        add(
            can_lose && destination.is_alive && is_new && is_whole,
            CutAction::UploadChain,
        );
    }

    /// The own etcd has events that the follower did not write.
    fn has_own_events(&self) -> bool {
        let destination = &self.destination;
        let sent = destination
            .pending
            .map_or(destination.log, |event| destination.log.with(event));
        sent != destination.received
    }

    fn add_source(&self, scenario: &CutScenario, add: &mut impl FnMut(bool, CutAction)) {
        let source = &self.source;
        if !source.is_alive {
            return;
        }
        let attempt = self.garden.attempt;
        let is_serving = source.serves && source.progress.last.is_none();
        let may_be_cut = self.is_passing() && attempt <= scenario.attempts;
        let sees_attempt = is_serving && may_be_cut && self.source_reaches_garden();
        let mark = source.mark.map(|mark| mark.attempt());
        add(
            sees_attempt && source.mark.is_none_or(|mark| mark.report().is_none()) && mark < Some(attempt),
            CutAction::MarkBesideData,
        );
        let needs_mark = scenario.is_on(CutRule::AttemptInBucket) || self.marked_attempt.is_none();
        add(
            sees_attempt && needs_mark && self.marked_attempt < Some(attempt),
            CutAction::MarkInBucket,
        );
        if let Some(step) = self.cut_step(scenario) {
            add(true, CutAction::Cut(step));
        }
        add(
            self.record.is_none() && self.source_reaches_garden() && self.new_record(scenario).is_some(),
            CutAction::SendRecord,
        );
        let is_shut = !source.serves || source.progress.last.is_some();
        add(
            is_shut && source.has_data && !source.knows_record && self.may_open_again(scenario),
            CutAction::SourceOpens,
        );
        let by_peer = self.seeds_are_linked() && self.destination.knows_record;
        let is_passed = self.garden.ownership.now.epoch > 1 && self.recorded.is_some();
        add(
            !source.knows_record && is_passed && (by_peer || self.source_reaches_garden()),
            CutAction::SourceLearnsOfRecord,
        );
        add(!source.is_lost && self.zone > 1, CutAction::SourceIsLost);
        let uploaded = self.chain.and_then(|(_, proved)| proved);
        let is_uploaded = uploaded.map(|proved| proved.end) == self.recorded_end();
        let keeps = scenario.is_on(CutRule::DataKeptUntilUploaded) && !is_uploaded;
        let is_done = self.recorded.is_some() && self.destination.has_opened && !keeps;
        add(
            scenario.budget.destination_volumes > 0 && source.has_data && is_done,
            CutAction::SourceDeletesData,
        );
        add(
            self.budget.leases > 0 && source.has_data && !source.is_volume_new,
            CutAction::LeaseEndsAtSource,
        );
    }

    fn add_garden(&self, scenario: &CutScenario, add: &mut impl FnMut(bool, CutAction)) {
        add(self.record.is_some(), CutAction::RecordLands);
        let writes = self.source_reaches_garden();
        let proved = self.destination.proved.map(|proved| proved.attempt);
        let is_shut =
            !self.source.serves || self.source.progress.last.is_some() || proved == Some(self.garden.attempt);
        add(
            writes && self.is_passing() && is_shut && self.garden.attempt <= scenario.attempts,
            CutAction::GiveUp,
        );
        add(
            writes && self.is_leaving() && self.budget.cancellations > 0,
            CutAction::Cancel,
        );
        let is_cancelled = self.is_owned_by_source() && !self.is_leaving();
        add(
            writes && is_cancelled && self.source.serves && self.garden.attempt < scenario.attempts,
            CutAction::BeginAgain,
        );
    }

    fn add_destination(&self, scenario: &CutScenario, add: &mut impl FnMut(bool, CutAction)) {
        let destination = &self.destination;
        if !destination.is_alive || destination.is_lost {
            return;
        }
        let is_short = destination.permit < scenario.validity && (scenario.timed || destination.permit == 0);
        let is_new = !destination.knows_record || is_short;
        add(
            destination.answer.is_none()
                && is_new
                && self.destination_reaches_garden()
                && self.read_record(scenario).is_some(),
            CutAction::DestinationReadsRecord,
        );
        add(destination.answer.is_some(), CutAction::DestinationHears);
        add(
            !destination.has_opened && destination.has_permit() && self.may_open_destination(scenario),
            CutAction::DestinationOpens,
        );
        add(
            scenario.timed
                && destination.has_opened
                && OwnershipObject::own(self.own_bucket.as_ref(), 2).is_some(),
            CutAction::DestinationOwnsBucket,
        );
        add(
            destination.knows_record && self.zone < 2,
            CutAction::DestinationUpdatesDns,
        );
        add(
            scenario.timed && destination.answer.is_none() && is_short && self.witnesses().is_some(),
            CutAction::DestinationAsksWitnesses,
        );
        add(
            self.budget.own_leases > 0 && !destination.log.has(LEASE),
            CutAction::LeaseEndsAtDestination,
        );
    }

    fn add_failures(&self, add: &mut impl FnMut(bool, CutAction)) {
        let budget = &self.budget;
        let (source, destination) = (self.source.is_alive, self.destination.is_alive);
        add(source && budget.source_restarts > 0, CutAction::SourceRestarts);
        let loses = source && budget.source_volumes > 0 && self.source.has_data;
        let has_events = self.source.log != History::default();
        add(
            loses,
            CutAction::SourceLosesVolume {
                loses_revision: false,
            },
        );
        add(
            loses && has_events,
            CutAction::SourceLosesVolume { loses_revision: true },
        );
        add(
            destination && budget.destination_restarts > 0,
            CutAction::DestinationRestarts,
        );
        add(
            destination && budget.destination_volumes > 0,
            CutAction::DestinationLosesVolume,
        );
        add(source && budget.deaths > 0, CutAction::SourceDies);
        add(destination && budget.deaths > 0, CutAction::DestinationDies);
        for link in LINKS {
            let is_linked = self.is_linked(link);
            add(is_linked && budget.failing_links > 0, CutAction::LinkFails(link));
            add(!is_linked, CutAction::LinkHeals(link));
        }
    }

    fn add_next_owner(&self, scenario: &CutScenario, add: &mut impl FnMut(bool, CutAction)) {
        let owner_is_dead = match self.garden.ownership.now.seed {
            MoveSeed::A => !self.source.is_alive,
            MoveSeed::B => !self.destination.is_alive,
            MoveSeed::C => false,
        };
        let is_taken = scenario.timed && self.recorded.is_some();
        let Some(next) = self.next else {
            add(owner_is_dead || is_taken, CutAction::Grant);
            self.add_clocks(scenario, add);
            return;
        };
        add(scenario.timed && self.zone < 3, CutAction::NextUpdatesDns);
        add(
            scenario.timed && OwnershipObject::claim(self.own_bucket.as_ref(), 3).is_some(),
            CutAction::NextClaimsBucket,
        );
        let is_claimed = self.own_bucket.is_some_and(|object| object.epoch == 3);
        add(
            scenario.timed && next.fence.is_none() && self.zone == 3 && is_claimed,
            CutAction::NextSeesAllWitnesses,
        );
        add(
            !next.has_opened && self.fence_has_passed(scenario),
            CutAction::NextOpens,
        );
        self.add_clocks(scenario, add);
    }

    fn add_clocks(&self, scenario: &CutScenario, add: &mut impl FnMut(bool, CutAction)) {
        let source = &self.source;
        let asks =
            (scenario.forwards || !scenario.timed) && source.knows_record && source.relay_answer.is_none();
        let left = if self.destination.acknowledges() {
            self.destination.permit
        } else {
            0
        };
        add(
            asks && self.seeds_are_linked() && source.relay < left,
            CutAction::SourceAsksDestination,
        );
        if !scenario.timed {
            return;
        }
        add(source.relay_answer.is_some(), CutAction::SourceHearsDestination);
        for loses in [false, true] {
            for gains in [false, true] {
                let fence = self.next.and_then(|next| next.fence);
                let may_gain = self.budget.gains && fence.is_some_and(|fence| fence >= 10);
                add(
                    loses <= self.budget.loses && gains <= may_gain,
                    CutAction::Tick { loses, gains },
                );
            }
        }
    }
}
