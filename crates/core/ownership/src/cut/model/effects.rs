//! The state after an action.

use super::super::record::SealedAttempt;
use super::super::source::{CutProgress, CutStep, SourceMark};
use super::actions::CutAction;
use super::history::{History, LEASE, OWN_LEASE, SKIPPED};
use super::rules::{CutRule, CutScenario};
use super::sides::{ClientWrite, MoveSeed, NOW, NextOwner, RequestPlace, SeedLink, seconds};
use super::state::{CutState, FOREIGN, Garden};
use crate::claim_state::ClaimState;
use crate::conditional::Conditional;
use crate::judgement::Answer;
use crate::marks::OwnershipObject;
use crate::phase::{Approval, Refused, Step, Writer};

impl CutState {
    pub(super) fn after(&self, scenario: &CutScenario, action: CutAction) -> Self {
        let mut next = self.clone();
        match action {
            CutAction::Cut(step) => next.cut(scenario, step),
            CutAction::SendRecord => next.record = self.new_record(scenario),
            CutAction::RecordLands => next.land(scenario),
            CutAction::GiveUp => next.write_garden(&self.garden.give_up(&MoveSeed::A)),
            CutAction::Cancel => next.cancel(scenario),
            CutAction::BeginAgain => next.begin_again(),
            CutAction::SourceOpens => next.open_source(scenario),
            CutAction::MarkBesideData => {
                let attempt = self.garden.attempt;
                next.source.mark = Some(SourceMark::Passing { attempt });
            }
            CutAction::MarkInBucket => next.marked_attempt = Some(self.garden.attempt),
            CutAction::SourceLearnsOfRecord => next.source.knows_record = true,
            CutAction::SourceIsLost => next.source.is_lost = true,
            CutAction::SourceDeletesData => next.source.has_data = false,
            _ => next.take_client_action(scenario, action),
        }
        next
    }

    fn take_client_action(&mut self, scenario: &CutScenario, action: CutAction) {
        match action {
            CutAction::Send { via_destination } => self.send(scenario, via_destination),
            CutAction::GateRefuses => self.write = None,
            CutAction::PassToSourceEtcd => self.move_write(RequestPlace::SourceEtcd, None),
            CutAction::AnswerAtSource => self.answer_at_source(),
            CutAction::ClientGivesUp => {
                if let Some(write) = &mut self.write {
                    write.is_given_up = true;
                }
            }
            CutAction::ForwardToDestination => {
                let carried = self.forwarded(scenario, 2);
                self.move_write(RequestPlace::DestinationGate, carried);
            }
            CutAction::ForwardToSource => {
                let carried = self.forwarded(scenario, 1);
                self.move_write(RequestPlace::SourceGate, carried);
            }
            CutAction::AnswerAtDestination => {
                if let Some(write) = self.write.take() {
                    self.destination.log.push(write.id);
                    self.observe(self.destination.log);
                }
            }
            CutAction::LeaseEndsAtSource => {
                self.budget.leases -= 1;
                self.source.log.push(LEASE);
                self.observe_streams();
            }
            CutAction::LeaseEndsAtDestination => {
                self.budget.own_leases -= 1;
                self.destination.log.push(OWN_LEASE);
                if self.destination.has_opened {
                    self.observe(self.destination.log);
                }
            }
            _ => self.take_destination_action(scenario, action),
        }
    }

    fn take_destination_action(&mut self, scenario: &CutScenario, action: CutAction) {
        match action {
            CutAction::FollowerReceives => {
                let received = self.destination.received;
                let event = self.source.log.get(received.len());
                self.destination.pending = event;
                self.destination.received = event.map_or(received, |event| received.with(event));
            }
            CutAction::FollowerWrites => self.write_followed(),
            CutAction::CopyAgain => self.copy_again(),
            CutAction::UploadChain => {
                self.chain = Some((self.destination.log, self.destination.proved));
            }
            CutAction::DestinationReadsRecord => {
                let answer = self.read_record(scenario);
                let is_owned = answer == Some(true);
                if is_owned && !self.destination.knows_record {
                    self.destination.knows_record = true;
                    if scenario.is_on(CutRule::FollowerCloses) {
                        self.destination.follows = false;
                        self.destination.pending = None;
                    }
                }
                self.ask(scenario, is_owned);
            }
            CutAction::DestinationAsksWitnesses => {
                let is_owned = self.witnesses() == Some(true);
                self.ask(scenario, is_owned);
            }
            CutAction::DestinationHears => self.hear(scenario),
            CutAction::DestinationOpens => self.open_destination(),
            CutAction::DestinationOwnsBucket => {
                self.write_bucket(OwnershipObject::own(self.own_bucket.as_ref(), 2));
            }
            CutAction::DestinationUpdatesDns => self.zone = 2,
            _ => self.take_next_owners_action(scenario, action),
        }
    }

    fn take_next_owners_action(&mut self, scenario: &CutScenario, action: CutAction) {
        match action {
            CutAction::Grant => {
                let approval = Approval {
                    from: self.garden.ownership.now.clone(),
                    to: MoveSeed::C,
                };
                self.write_garden(&self.garden.grant(approval));
                self.next = Some(NextOwner::default());
            }
            CutAction::NextUpdatesDns => self.zone = 3,
            CutAction::NextClaimsBucket => {
                self.write_bucket(OwnershipObject::claim(self.own_bucket.as_ref(), 3));
            }
            CutAction::NextSeesAllWitnesses => {
                if let Some(next) = &mut self.next {
                    next.fence = Some(0);
                }
            }
            CutAction::NextOpens => {
                if let Some(next) = &mut self.next {
                    next.has_opened = true;
                }
            }
            CutAction::SourceAsksDestination => {
                let left = self.destination.permit;
                if scenario.timed {
                    self.source.relay_answer = Some((left, 0));
                } else {
                    self.source.relay = left;
                }
            }
            CutAction::SourceHearsDestination => {
                if let Some((left, age)) = self.source.relay_answer.take() {
                    self.source.relay = self.source.relay.max(left.saturating_sub(age));
                }
            }
            CutAction::Tick { loses, gains } => self.tick(scenario, loses, gains),
            _ => self.fail(scenario, action),
        }
    }

    fn fail(&mut self, scenario: &CutScenario, action: CutAction) {
        match action {
            CutAction::SourceRestarts => {
                self.budget.source_restarts -= 1;
                self.restart_source(scenario);
            }
            CutAction::SourceLosesVolume { loses_revision } => {
                self.lose_source_volume(scenario, loses_revision);
            }
            CutAction::DestinationRestarts => {
                self.budget.destination_restarts -= 1;
                self.restart_destination(scenario);
            }
            CutAction::DestinationLosesVolume => self.lose_destination_volume(scenario),
            CutAction::SourceDies => {
                self.budget.deaths -= 1;
                self.restart_source(scenario);
                self.source.is_alive = false;
            }
            CutAction::DestinationDies => {
                self.budget.deaths -= 1;
                self.restart_destination(scenario);
                self.destination.is_alive = false;
            }
            CutAction::LinkFails(link) => {
                self.budget.failing_links -= 1;
                self.set_link(link, true);
            }
            CutAction::LinkHeals(link) => self.set_link(link, false),
            other => panic!("{other:?} has no effect"),
        }
    }

    fn set_link(&mut self, link: SeedLink, has_failed: bool) {
        self.failed_links[link as usize] = has_failed;
    }

    fn write_garden(&mut self, write: &Result<Conditional<Garden>, Refused>) {
        self.garden = write.clone().unwrap().becomes;
    }

    fn write_bucket(&mut self, write: Option<Conditional<Option<OwnershipObject>>>) {
        if let Some(becomes) = write.and_then(|write| write.applied_to(&self.own_bucket)) {
            self.own_bucket = becomes;
        }
    }

    fn cut(&mut self, scenario: &CutScenario, step: CutStep) {
        self.source.progress.last = Some(step);
        match step {
            CutStep::HoldSource => self.source.progress.attempt = self.garden.attempt,
            CutStep::AwaitWrites => {}
            CutStep::EndStreams => self.source.streams = !scenario.is_on(CutRule::StreamsEnd),
            CutStep::ReadEnd => self.source.progress.end = Some(self.source.log.revision()),
            CutStep::ProveFollower => {
                let end = self.proof(scenario).unwrap();
                self.source.proof = Some(end);
                self.destination.proved = Some(self.source.progress.sealed(end));
                self.destination.follows = !scenario.is_on(CutRule::FollowerCloses);
            }
            CutStep::Mark => {
                let mark = self.passed_mark(scenario).unwrap();
                self.source.report = mark.report();
                self.source.mark = Some(mark);
            }
        }
    }

    fn land(&mut self, scenario: &CutScenario) {
        if let Some(garden) = self.landed(scenario) {
            self.garden = garden.clone();
            self.recorded = Some(garden);
        }
        self.record = None;
    }

    fn cancel(&mut self, scenario: &CutScenario) {
        self.budget.cancellations -= 1;
        self.write_garden(&self.garden.cancel(&MoveSeed::A));
        if !scenario.is_on(CutRule::AttemptOutlivesCancellation) {
            self.garden.attempt = 0;
        }
    }

    fn begin_again(&mut self) {
        let leaving = self
            .garden
            .ownership
            .step(&Writer::Seed(MoveSeed::A), Step::Leave);
        self.garden.ownership = leaving.unwrap().becomes;
        self.write_garden(&self.garden.begin_passing(&MoveSeed::A, MoveSeed::B));
    }

    fn open_source(&mut self, scenario: &CutScenario) {
        if self.source_reaches_garden() && self.is_owned_by_source() {
            let attempt = self.garden.attempt;
            let is_marked = self.source.mark.is_some() || self.source.is_volume_new;
            let mark = self.is_passing().then_some(SourceMark::Passing { attempt });
            self.source.mark = mark.filter(|_| is_marked);
        }
        if self.source.is_volume_new {
            // The loss of the volume is reported, so clients do not count on the lost revision.
            self.observed = self.observed.common(&self.source.log);
            if self.source.has_lost_revision && scenario.is_on(CutRule::SkippedRevisions) {
                self.source.log.push(SKIPPED);
            }
            self.source.is_volume_new = false;
            self.source.has_lost_revision = false;
        }
        self.source.progress = CutProgress::default();
        self.source.proof = None;
        self.source.serves = true;
        self.source.streams = true;
        self.observe_streams();
    }

    /// Clients observe all revisions of the source while streams are open.
    fn observe_streams(&mut self) {
        if self.source.streams {
            self.observe(self.source.log);
        }
    }

    fn send(&mut self, scenario: &CutScenario, via_destination: bool) {
        let id = scenario.budget.writes + 1 - self.budget.writes;
        self.budget.writes -= 1;
        self.write = Some(ClientWrite {
            id,
            place: if via_destination {
                RequestPlace::DestinationGate
            } else {
                RequestPlace::SourceGate
            },
            carried: None,
            hops: 0,
            is_given_up: false,
        });
    }

    fn move_write(&mut self, place: RequestPlace, carried: Option<i64>) {
        if let Some(write) = &mut self.write {
            write.hops += u8::from(carried.is_some());
            write.carried = carried.or(write.carried);
            write.place = place;
        }
    }

    fn answer_at_source(&mut self) {
        if let Some(write) = self.write.take() {
            self.source.log.push(write.id);
            if write.is_given_up {
                self.observe_streams();
            } else {
                self.observe(self.source.log);
            }
        }
    }

    fn write_followed(&mut self) {
        let destination = &mut self.destination;
        if let Some(event) = destination.pending.take() {
            if destination.has_opened {
                self.broken = Some(FOREIGN);
            }
            // The key is gone already, so the deletion makes no revision.
            if event != LEASE || !destination.log.has(OWN_LEASE) {
                destination.log.push(event);
            }
        }
    }

    fn copy_again(&mut self) {
        let end = self.recorded_end();
        let log = self
            .recorded_len()
            .map_or(self.source.log, |len| self.source.log.prefix(len));
        let destination = &mut self.destination;
        destination.log = log;
        destination.received = log;
        destination.pending = None;
        destination.follows = end.is_none();
        let proved = end.filter(|end| *end == log.end());
        destination.proved = proved.map(|end| SealedAttempt { attempt: 0, end });
    }

    fn open_destination(&mut self) {
        if self.destination.skips_revisions {
            self.destination.skips_revisions = false;
            self.destination.log.push(SKIPPED);
        }
        self.destination.has_opened = true;
        self.was_opened = true;
        self.observe(self.destination.log);
    }

    /// A question of B is sent, and judged at once; without clocks, the answer arrives at once.
    fn ask(&mut self, scenario: &CutScenario, is_owned: bool) {
        if !is_owned {
            self.destination.permit = 0;
            self.destination.is_lost = true;
        } else if scenario.timed {
            self.destination.answer = Some(0);
        } else {
            self.destination.permit = scenario.validity;
        }
    }

    fn hear(&mut self, scenario: &CutScenario) {
        let destination = &mut self.destination;
        let Some(age) = destination.answer.take() else {
            return;
        };
        let until = NOW + seconds(destination.permit);
        let before = ClaimState::Owner { until }.at(NOW);
        let asked = NOW.saturating_sub(seconds(age));
        let answer = Answer::Owned { at_most: None };
        let after = before.apply_answer(NOW, asked, &answer, scenario.terms());
        destination.permit = match after {
            ClaimState::Owner { until } => u8::try_from(until.saturating_sub(NOW).as_secs()).unwrap(),
            ClaimState::Unconfirmed | ClaimState::Lost(_) => 0,
        };
    }

    fn tick(&mut self, scenario: &CutScenario, loses: bool, gains: bool) {
        self.budget.loses &= !loses;
        self.budget.gains &= !gains;
        let most = scenario.fence_terms().fence().unwrap().as_secs();
        if let Some(passed) = self.next.as_mut().and_then(|next| next.fence.as_mut()) {
            *passed = (*passed + 1 + u8::from(gains)).min(u8::try_from(most).unwrap());
        }
        if loses {
            return;
        }
        let (source, destination) = (&mut self.source, &mut self.destination);
        destination.permit = destination.permit.saturating_sub(1);
        source.relay = source.relay.saturating_sub(1);
        let relayed = source.relay_answer.map(|(left, age)| (left, age + 1));
        source.relay_answer = relayed.filter(|(left, age)| age < left);
        if scenario.is_on(CutRule::PermitFromSending) {
            let age = destination.answer.map(|age| age + 1);
            destination.answer = age.filter(|age| *age < scenario.validity);
        }
    }

    fn restart_source(&mut self, scenario: &CutScenario) {
        let source = &mut self.source;
        source.serves = false;
        source.streams = false;
        source.knows_record = false;
        source.progress = CutProgress::default();
        source.proof = None;
        source.relay = 0;
        source.relay_answer = None;
        if !scenario.is_on(CutRule::SyncedMark) {
            let passing = |mark: SourceMark| SourceMark::Passing {
                attempt: mark.attempt(),
            };
            source.mark = source.mark.map(passing);
        }
        self.write = self
            .write
            .filter(|write| write.place == RequestPlace::DestinationGate);
    }

    fn lose_source_volume(&mut self, scenario: &CutScenario, loses_revision: bool) {
        self.budget.source_volumes -= 1;
        self.restart_source(scenario);
        let source = &mut self.source;
        source.mark = None;
        source.is_volume_new = true;
        source.has_lost_revision = loses_revision;
        source.has_data = self.recorded.is_none();
        source.log = source.log.prefix(source.log.len() - u8::from(loses_revision));
    }

    fn restart_destination(&mut self, scenario: &CutScenario) {
        self.destination = self.destination.restarted();
        if !scenario.is_on(CutRule::SyncedProof) {
            self.destination.proved = None;
        }
        self.write = self
            .write
            .filter(|write| write.place != RequestPlace::DestinationGate);
    }

    fn lose_destination_volume(&mut self, scenario: &CutScenario) {
        self.budget.destination_volumes -= 1;
        let has_opened = self.destination.has_opened;
        self.restart_destination(scenario);
        let (log, proved) = self.chain.unwrap_or((History::default(), None));
        let destination = &mut self.destination;
        destination.log = log;
        destination.received = log;
        destination.proved = proved;
        destination.skips_revisions |= has_opened;
        if has_opened {
            // The loss of revisions of the own epoch is reported. Those of the source must not be lost.
            let len = self.recorded_len().unwrap_or_default();
            self.observed = self.observed.prefix(len.max(self.observed.common(&log).len()));
        }
    }
}
