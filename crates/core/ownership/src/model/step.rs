//! The state after an action.

use super::action::{Action, written};
use super::ask;
use super::scenario::{Off, Scenario, Seed};
use super::state::{AnswerKind, NOW, Process, Right, Site, State, is_in, ticks};
use crate::conditional::Conditional;
use crate::gates::{SealStep, keeps_data, may_open};
use crate::marks::{OwnershipObject, Record};
use crate::phase::{Ownership, Phase, SeedEpoch};

impl State {
    pub(super) fn after(&self, scenario: &Scenario, action: Action) -> Self {
        let mut next = self.clone();
        let is_tick = matches!(action, Action::Tick { .. });
        next.take(scenario, action);
        for epoch in self
            .epochs()
            .filter(|epoch| is_in(scenario.actuators | scenario.gardenlets, *epoch))
        {
            let (before, after) = (self.may_act(scenario, epoch), next.may_act(scenario, epoch));
            let site = next.site_mut(epoch);
            if before && !after {
                // A request left in the last moment.
                site.flight = scenario.requests();
                site.is_flight_excepted = self.is_excepted(scenario, epoch);
            } else if is_tick {
                site.flight = site.flight.saturating_sub(1);
                site.is_flight_excepted &= site.flight > 0;
            }
        }
        next
    }

    fn take(&mut self, scenario: &Scenario, action: Action) {
        match action {
            Action::Tick {
                source_loses_one,
                destination_gains_one,
            } => {
                self.tick(scenario, source_loses_one, destination_gains_one);
            }
            Action::Ask {
                epoch, who, heard, ..
            } => {
                let process = self.process_mut(epoch, who);
                process.answer = Some((heard.said, 0));
                process.machine.ask();
                if heard.shows_own_epoch {
                    process.seen = process.seen.or(Some(0));
                }
            }
            Action::Hear { epoch, who } => self.process_mut(epoch, who).hear(scenario),
            Action::Pause { epoch, who } => self.process_mut(epoch, who).awake = false,
            Action::Wake { epoch, who } => self.process_mut(epoch, who).awake = true,
            Action::HostPauses { epoch, who } => self.process_mut(epoch, who).machine.is_paused = true,
            Action::HostResumes { epoch, who } => self.process_mut(epoch, who).machine.is_paused = false,
            Action::Crash { epoch, who } => *self.process_mut(epoch, who) = Process::default(),
            Action::Seal { epoch, step } => self.seal(epoch, step),
            Action::ActuatorsStop { epoch } => self.site_mut(epoch).stopped = true,
            Action::Garden { by, step } => {
                if let Ok(write) = self.garden.step(&by, step) {
                    self.write(write.becomes);
                }
            }
            Action::Forge { step } => self.forge(step),
            Action::Note { epoch } => self.site_mut(epoch).noted = true,
            Action::Follow { epoch } => self.follow(epoch),
            Action::GardenLate { by, step } => self.late = self.garden.step(&by, step).ok(),
            Action::GardenArrives => {
                let write = self.late.take();
                if let Some(becomes) = write.and_then(|write| written(scenario, write, &self.garden)) {
                    self.write(becomes);
                }
            }
            Action::Dns { write, .. } => self.update_dns(scenario, write),
            Action::DnsLate { write, .. } => self.update = Some(write),
            Action::DnsArrives => {
                if let Some(write) = self.update.take() {
                    self.update_dns(scenario, write);
                }
            }
            Action::Slip { epoch_too } => {
                self.slipped = true;
                let tests = self.zone[0].clone();
                let epoch = tests.epoch.filter(|_| !epoch_too);
                let becomes = Record {
                    identity: None,
                    epoch,
                };
                self.update_dns(scenario, Conditional { tests, becomes });
            }
            Action::ZoneTransfer => self.zone[1] = self.zone[0].clone(),
            Action::Put { bucket, write } => self.write_bucket(bucket, write),
            Action::Look { epoch } => self.site_mut(epoch).fence = Some(0),
            Action::DestinationCrashes { epoch } => self.site_mut(epoch).fence = None,
            Action::EarlierPodsGo { epoch } => {
                let seed = self.site(epoch).seed;
                for earlier in (1..epoch)
                    .filter(|earlier| self.site(*earlier).seed == seed)
                    .collect::<Vec<_>>()
                {
                    let site = self.site_mut(earlier);
                    (site.sidecar, site.actuator, site.gardenlet) = Default::default();
                    site.gone = true;
                }
            }
            Action::Serve { epoch } => self.serve(scenario, epoch),
            Action::DataAreLost { epoch } => self.restore_again(scenario, epoch),
            Action::CleanUp { bucket } => self.buckets[bucket as usize] = None,
            Action::Delete => self.deleted = true,
        }
    }

    fn tick(&mut self, scenario: &Scenario, source_loses_one: bool, destination_gains_one: bool) {
        let (most, validity) = (scenario.fence(), scenario.validity());
        let needed = scenario.needed();
        self.drift.0 &= !source_loses_one;
        self.drift.1 &= !destination_gains_one;
        for epoch in self.epochs() {
            let truth = ask::all_show(self, scenario, epoch);
            let site = self.site_mut(epoch);
            // Only an epoch that waits for the witnesses counts these ticks.
            let waits = site.opened.is_none() && epoch > 1;
            site.truth = if truth && waits {
                (site.truth + 1).min(needed)
            } else {
                0
            };
            if let Some(passed) = &mut site.fence {
                *passed = (*passed + 1 + u8::from(destination_gains_one)).min(most);
            }
            if source_loses_one && epoch == 1 {
                continue;
            }
            for process in [&mut site.sidecar, &mut site.actuator, &mut site.gardenlet] {
                process.tick(scenario, validity);
            }
        }
        // P counts from when a process of the last epoch has seen the new record.
        if self.sites.last().is_some_and(|site| {
            let processes = [&site.sidecar, &site.actuator, &site.gardenlet];
            let is_seen = processes.iter().any(|process| process.seen.is_some());
            site.fence.is_some() || (site.acts || is_seen) && site.read.now.epoch > 1
        }) {
            for (_, left) in &mut self.hidden {
                *left -= 1;
            }
            self.hidden.retain(|(_, left)| *left > 0);
        }
    }

    fn seal(&mut self, epoch: i64, step: SealStep) {
        match step {
            SealStep::Marker => {
                let site = self.site_mut(epoch);
                site.marker = true;
                // A sealed sidecar ignores its last answer.
                site.sidecar = Process {
                    right: Right::Lost,
                    answer: None,
                    ..site.sidecar
                };
            }
            SealStep::Object => {
                let seed = self.site(epoch).seed;
                if let Some(write) = OwnershipObject::seal(self.bucket(seed), epoch) {
                    self.write_bucket(seed, write);
                }
            }
            SealStep::FinalSnapshot => self.site_mut(epoch).final_snapshot = true,
        }
    }

    /// The garden has accepted a write.
    fn write(&mut self, becomes: Ownership<Seed>) {
        let SeedEpoch { seed, epoch } = becomes.now;
        if epoch > *self.epochs().end() {
            let found = self.sites.iter().rev().find(|site| site.seed == seed);
            let data = found.and_then(|site| site.data);
            self.sites.push(Site {
                data,
                ..Site::new(becomes.clone())
            });
        }
        let site = self.site_mut(epoch);
        if site.seed != seed {
            // Only without the test: another seed has claimed the same epoch.
            *site = Site {
                opened: site.opened,
                acts: site.acts,
                ..Site::new(becomes.clone())
            };
        }
        site.read = becomes.clone();
        if becomes.phase == Phase::Held {
            site.acts = true;
            site.stopped = false;
            site.fence = None;
        }
        self.garden = becomes;
    }

    fn update_dns(&mut self, scenario: &Scenario, write: Conditional<Record<Seed>>) {
        let becomes = if scenario.is_on(Off::ConditionalUpdate) {
            write.applied_to(&self.zone[0])
        } else {
            Some(write.becomes)
        };
        let Some(becomes) = becomes else { return };
        let propagation = u8::try_from(scenario.settings.propagation.as_secs()).unwrap();
        if propagation > 0 && becomes != self.zone[0] {
            // `propagation + 1`: a replica may serve the record also in the last moment of P. A record that
            // is hidden already gets the new time.
            self.hidden.retain(|(record, _)| *record != self.zone[0]);
            let before = &self.zone[0];
            let mut behind = vec![before.clone()];
            if scenario.out_of_step && before.identity != becomes.identity && before.epoch != becomes.epoch {
                behind.extend([
                    Record {
                        identity: before.identity,
                        epoch: becomes.epoch,
                    },
                    Record {
                        identity: becomes.identity,
                        epoch: before.epoch,
                    },
                ]);
            }
            self.hidden
                .extend(behind.into_iter().map(|record| (record, propagation + 1)));
        }
        self.zone[0] = becomes;
    }

    fn write_bucket(&mut self, bucket: Seed, write: Conditional<Option<OwnershipObject>>) {
        if let Some(becomes) = write.applied_to(&self.buckets[bucket as usize]) {
            self.buckets[bucket as usize] = becomes;
        }
    }

    fn serve(&mut self, scenario: &Scenario, epoch: i64) {
        self.broken = self.wrong_with(scenario, epoch);
        let site = self.site_mut(epoch);
        site.opened = Some(site.seed);
        site.data = Some(epoch);
        site.truth = 0;
    }

    /// I2, judged by the true state instead of by the destination's observations.
    fn wrong_with(&self, scenario: &Scenario, epoch: i64) -> Option<&'static str> {
        let site = self.site(epoch);
        let source = site.read.source.as_ref()?.epoch;
        let last_opened = (1..epoch)
            .rev()
            .find(|earlier| self.site(*earlier).opened.is_some());
        let has_passed = site.truth >= scenario.needed();
        if site.opened.is_some_and(|opened| opened != site.seed) {
            return Some("I1: two seeds have opened one epoch");
        }
        if last_opened > Some(source) {
            return Some("I2: it takes over from an epoch that is not the last one opened");
        }
        if !has_passed && !self.site(source).final_snapshot {
            return Some("I2: it opens without a final snapshot, before the fence");
        }
        let keeps = |data: i64| keeps_data(epoch, Some(source), data) || !scenario.is_on(Off::ForeignData);
        let used = site.data.filter(|data| keeps(*data)).unwrap_or(source);
        (used != source).then_some("data: it opens with data of another epoch")
    }

    fn restore_again(&mut self, scenario: &Scenario, epoch: i64) {
        let site = self.site(epoch);
        let me = SeedEpoch {
            seed: site.seed,
            epoch,
        };
        let mut read = site.read.clone();
        let chosen = read.chain;
        let mut seen = self.evidence(scenario, epoch);
        if !scenario.is_on(Off::ChainOnce) {
            read.chain = None;
            seen.copied = Some(if seen.final_seen {
                crate::phase::Chain::Final
            } else {
                crate::phase::Chain::Last
            });
        }
        if may_open(&read, &me, seen).ok() != chosen {
            self.broken = Some("data: a later choice replaces what was written in this epoch");
        }
    }
}

impl Process {
    fn hear(&mut self, scenario: &Scenario) {
        let Some((said, age)) = self.answer.take() else {
            return;
        };
        let asked = NOW.saturating_sub(ticks(age));
        let left = self.right.left();
        let claim_state =
            self.right
                .claim_state()
                .apply_answer(NOW, asked, &ask::answer(said), &scenario.terms());
        self.right = Right::from_state(&claim_state);
        self.machine.hear(self.right.left() > left);
    }

    /// By the crate's own judgement of expiry.
    fn tick(&mut self, scenario: &Scenario, validity: u8) {
        if self.is_paused() {
            return self.stand_still(scenario);
        }
        self.pass_a_second(scenario, validity);
        if scenario.host_pauses {
            self.read_host_clock(scenario);
        }
    }

    fn pass_a_second(&mut self, scenario: &Scenario, validity: u8) {
        let propagation = u8::try_from(scenario.settings.propagation.as_secs()).unwrap();
        self.seen = self.seen.map(|seen| (seen + 1).min(propagation + 1));
        if !self.awake && !scenario.is_on(Off::ClockCountsAll) {
            return;
        }
        let after = NOW + ticks(1);
        self.right = match self.right.claim_state().at(after) {
            crate::claim_state::ClaimState::Owner { until } => {
                Right::Left(u8::try_from((until.saturating_sub(after)).as_secs()).unwrap())
            }
            other => Right::from_state(&other),
        };
        if !scenario.is_on(Off::ValidityFromSending) {
            return;
        }
        if let Some((said, age)) = &mut self.answer {
            *age += 1;
            let good_for = match said {
                AnswerKind::Owned { at_most } => at_most.unwrap_or(validity).min(validity),
                // A loss is final, so the age of the answer does not matter.
                AnswerKind::Lost => {
                    *age = 0;
                    1
                }
            };
            if *age >= good_for {
                self.answer = None;
            }
        }
    }
}
