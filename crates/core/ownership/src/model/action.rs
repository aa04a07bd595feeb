//! The actions that are possible in a state.

use super::ask::{self, Heard, Via};
use super::scenario::{Off, Scenario, Seed};
use super::state::{NOW, Right, State, Who, is_in, ticks};
use crate::conditional::Conditional;
use crate::gates::{Evidence, SealProgress, SealStep, may_act, may_open};
use crate::marks::{Mark, OwnershipObject, Record};
use crate::phase::{Approval, Chain, Ownership, Phase, SeedEpoch, Step, Writer};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// A second passes. A clock may lose or gain one second.
    Tick {
        source_loses_one: bool,
        destination_gains_one: bool,
    },
    /// A process sends a question, and the question is judged; the answer is under way.
    Ask {
        epoch: i64,
        who: Who,
        via: Via,
        heard: Heard,
    },
    Hear {
        epoch: i64,
        who: Who,
    },
    Pause {
        epoch: i64,
        who: Who,
    },
    Wake {
        epoch: i64,
        who: Who,
    },
    /// The hypervisor pauses the machine.
    HostPauses {
        epoch: i64,
        who: Who,
    },
    HostResumes {
        epoch: i64,
        who: Who,
    },
    Crash {
        epoch: i64,
        who: Who,
    },
    Seal {
        epoch: i64,
        step: SealStep,
    },
    /// The actuators of a leaving owner have stopped.
    ActuatorsStop {
        epoch: i64,
    },
    Garden {
        by: Writer<Seed>,
        step: Step<Seed>,
    },
    /// A stolen certificate of the claimant records a phase in the garden.
    Forge {
        step: Step<Seed>,
    },
    /// The claimant notes the choice of the data in the seed.
    Note {
        epoch: i64,
    },
    /// The gardenlet of the claimant goes on with a forged phase.
    Follow {
        epoch: i64,
    },
    /// A write to the garden, delayed for any time.
    GardenLate {
        by: Writer<Seed>,
        step: Step<Seed>,
    },
    GardenArrives,
    Dns {
        epoch: i64,
        write: Conditional<Record<Seed>>,
    },
    DnsLate {
        epoch: i64,
        write: Conditional<Record<Seed>>,
    },
    DnsArrives,
    /// A stranger deletes the owner's name, and also the epoch's name if `epoch_too`.
    Slip {
        epoch_too: bool,
    },
    ZoneTransfer,
    Put {
        bucket: Seed,
        write: Conditional<Option<OwnershipObject>>,
    },
    /// The destination checks whether all witnesses show the destination.
    Look {
        epoch: i64,
    },
    DestinationCrashes {
        epoch: i64,
    },
    EarlierPodsGo {
        epoch: i64,
    },
    /// o(e).
    Serve {
        epoch: i64,
    },
    DataAreLost {
        epoch: i64,
    },
    CleanUp {
        bucket: Seed,
    },
    Delete,
}

impl State {
    pub(super) fn possible(&self, scenario: &Scenario) -> Vec<Action> {
        let mut actions = Vec::new();
        self.processes(scenario, &mut actions);
        self.sidecars(scenario, &mut actions);
        self.garden(scenario, &mut actions);
        for epoch in self.epochs() {
            self.destination(scenario, epoch, &mut actions);
        }
        self.others(scenario, &mut actions);
        for source_loses_one in [false, true] {
            for destination_gains_one in [false, true] {
                let gains = self.drift.1
                    && self
                        .site(*self.epochs().end())
                        .fence
                        .is_some_and(|fence| fence >= 10);
                if source_loses_one <= self.drift.0 && destination_gains_one <= gains {
                    actions.push(Action::Tick {
                        source_loses_one,
                        destination_gains_one,
                    });
                }
            }
        }
        actions
    }

    fn processes(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        for epoch in self.epochs().filter(|epoch| !self.site(*epoch).gone) {
            let site = self.site(epoch);
            for (who, process, mask) in [
                (Who::Sidecar, site.sidecar, scenario.sidecars),
                (Who::Actuator, site.actuator, scenario.actuators),
                (Who::Gardenlet, site.gardenlet, scenario.gardenlets),
            ] {
                // A process that has stopped for good asks no more.
                let is_over = who == Who::Sidecar && site.marker;
                let acts = if who == Who::Sidecar {
                    site.opened.is_some()
                } else {
                    site.acts
                };
                if !is_in(mask, epoch) || !acts {
                    continue;
                }
                if process.is_paused() {
                    actions.push(Action::HostResumes { epoch, who });
                    continue;
                }
                if !process.awake {
                    actions.push(Action::Wake { epoch, who });
                    continue;
                }
                if !scenario.host_pauses {
                    actions.push(Action::Pause { epoch, who });
                } else if process.right.is_valid() || process.answer.is_some() {
                    actions.push(Action::HostPauses { epoch, who });
                }
                if is_over {
                    continue;
                }
                if process.right != Right::None || process.answer.is_some() {
                    actions.push(Action::Crash { epoch, who });
                }
                if process.answer.is_some() {
                    actions.push(Action::Hear { epoch, who });
                }
                if process.right != Right::Lost {
                    let answers = ask::answers(self, scenario, epoch, who).into_iter();
                    actions.extend(answers.map(|(via, heard)| Action::Ask {
                        epoch,
                        who,
                        via,
                        heard,
                    }));
                }
            }
        }
    }

    fn sidecars(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        for epoch in self.epochs() {
            let site = self.site(epoch);
            let knows = site.marker || site.sidecar.right == Right::Lost;
            if is_in(scenario.sidecars, epoch)
                && site.sidecar.runs()
                && knows
                && site.opened.is_some()
                && !site.gone
            {
                let sealed = SealProgress {
                    marker: site.marker,
                    object: OwnershipObject::seal(self.bucket(site.seed), epoch).is_none(),
                    final_snapshot: site.final_snapshot,
                };
                actions.extend(sealed.next_step().map(|step| Action::Seal { epoch, step }));
                if !scenario.is_on(Off::DurableSeal) && !site.final_snapshot && !site.marker {
                    actions.push(Action::Seal {
                        epoch,
                        step: SealStep::FinalSnapshot,
                    });
                }
            }
            // A sidecar that is not modelled in detail seals at any time after the permitted moment.
            let ends = epoch < self.garden.now.epoch || self.garden.phase == Phase::Sealing;
            let is_rough = !is_in(scenario.sidecars, epoch) && scenario.others_seal;
            if is_rough && ends && site.opened.is_some() && !site.final_snapshot {
                actions.push(Action::Seal {
                    epoch,
                    step: SealStep::FinalSnapshot,
                });
            }
            let may_stop = epoch == self.garden.now.epoch
                && matches!(self.garden.phase, Phase::Leaving | Phase::Sealing);
            if may_stop && is_in(scenario.actuators, epoch) && site.actuator.runs() && !site.stopped {
                actions.push(Action::ActuatorsStop { epoch });
            }
        }
    }

    /// Steps in the garden.
    fn garden(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        if self.deleted {
            return;
        }
        let now = &self.garden.now;
        let site = self.site(now.epoch);
        let owner = Writer::Seed(now.seed);
        let mut steps: Vec<(Writer<Seed>, Step<Seed>)> = Vec::new();
        let may_grant = now.epoch < scenario.last;
        if scenario.planned {
            steps.extend([Step::Leave, Step::CancelLeave, Step::Seal].map(|step| (owner.clone(), step)));
            let acts = self.may_act(scenario, now.epoch);
            let still = is_in(scenario.actuators, now.epoch) && (!site.stopped || site.flight > 0 || acts);
            let drained = !still || !scenario.is_on(Off::DrainedIsJudged);
            for to in self.seats(scenario).filter(|to| may_grant && **to != now.seed) {
                let step = Step::HandOver {
                    to: *to,
                    final_seen: site.final_snapshot,
                    drained,
                };
                steps.push((owner.clone(), step));
            }
        }
        if scenario.forced && may_grant {
            let is_refused =
                |to: Seed| scenario.refuses_other_lists && !scenario.list(now.seed).eq(scenario.list(to));
            for to in self.seats(scenario).filter(|to| !is_refused(**to)) {
                let approval = Approval {
                    from: now.clone(),
                    to: *to,
                };
                steps.push((Writer::Garden, Step::Grant(approval)));
            }
        }
        steps.extend(self.forged(scenario).map(|step| (owner.clone(), step)));
        let is_doubted = self.is_doubted(scenario, &self.garden);
        if is_doubted {
            steps.push((owner.clone(), Step::DoubtHandOver));
        }
        let relied_on = self.relied_on(scenario, now.epoch, &self.garden);
        let evidence = self.evidence(scenario, now.epoch);
        for copied in [Chain::Final, Chain::Last].into_iter().filter(|_| !is_doubted) {
            let is_there = if copied == Chain::Final {
                evidence.final_seen
            } else {
                evidence.fence_passed
            };
            let seen = Evidence {
                copied: is_there.then_some(copied),
                ..evidence
            };
            if relied_on.chain.is_none() && may_open(&relied_on, now, seen) == Ok(copied) {
                self.choose(scenario, copied, &mut steps, actions);
            }
        }
        let one_gate = !scenario.is_on(Off::TwoGates) && evidence.final_seen;
        if may_act(&relied_on, now, evidence.fence_passed || one_gate) {
            steps.push((owner, Step::Hold));
        }
        if scenario.strangers {
            self.strangers(scenario, &mut steps);
        }
        self.forged_phases(scenario, actions);
        for (by, step) in steps {
            if self.garden.step(&by, step.clone()).is_err() {
                continue;
            }
            if scenario.late_writes && self.late.is_none() {
                actions.push(Action::GardenLate {
                    by: by.clone(),
                    step: step.clone(),
                });
            }
            actions.push(Action::Garden { by, step });
        }
    }

    /// B and C are interchangeable until the shoot was granted to either.
    fn seats<'a>(&self, scenario: &'a Scenario) -> impl Iterator<Item = &'a Seed> {
        let knows_b = scenario.late_writes || self.sites.len() > 1;
        scenario
            .seats
            .iter()
            .filter(move |seat| **seat != Seed::C || knows_b)
    }

    /// Steps that seeds try without being the owner. Without the rule these seeds count as permitted writers.
    fn strangers(&self, scenario: &Scenario, steps: &mut Vec<(Writer<Seed>, Step<Seed>)>) {
        let now = &self.garden.now;
        for seed in scenario.seats.iter().filter(|seed| **seed != now.seed) {
            let mut tried = vec![
                Step::Leave,
                Step::CancelLeave,
                Step::Seal,
                Step::Open(Chain::Last),
                Step::Hold,
            ];
            if now.epoch < scenario.last {
                tried.push(Step::HandOver {
                    to: *seed,
                    final_seen: true,
                    drained: true,
                });
                let approval = Approval {
                    from: now.clone(),
                    to: *seed,
                };
                tried.push(Step::Grant(approval));
            }
            for step in tried {
                let by = match step {
                    _ if scenario.is_on(Off::Writers) => Writer::Seed(*seed),
                    Step::Grant(_) => Writer::Garden,
                    _ => Writer::Seed(now.seed),
                };
                steps.push((by, step));
            }
        }
    }

    pub(super) fn evidence(&self, scenario: &Scenario, epoch: i64) -> Evidence {
        let site = self.site(epoch);
        let source = site.read.source.as_ref();
        Evidence {
            earlier_pods_gone: (1..epoch)
                .all(|earlier| self.site(earlier).seed != site.seed || self.site(earlier).gone),
            // A stranger can store a snapshot in the place of the final snapshot.
            final_seen: source.is_some_and(|source| self.site(source.epoch).final_snapshot)
                || scenario.forged && site.read.drained,
            fence_passed: scenario
                .fence_terms()
                .fence_has_passed(site.fence.map(|passed| NOW.saturating_sub(ticks(passed))), NOW),
            copied: site.read.chain,
        }
    }

    /// A claimant of an earlier epoch may be behind: the claimant continues from the last state read in the
    /// garden.
    fn destination(&self, scenario: &Scenario, epoch: i64, actions: &mut Vec<Action>) {
        let site = self.site(epoch);
        let me = SeedEpoch {
            seed: site.seed,
            epoch,
        };
        let Some(source) = &site.read.source else { return };
        if site.gone {
            return;
        }
        let relied_on = self.relied_on(scenario, epoch, &site.read);
        let claims = matches!(relied_on.phase, Phase::Claiming | Phase::Opening)
            && !self.is_doubted(scenario, &site.read);
        if claims && !self.deleted {
            if let Ok(Some(write)) = self.zone[0].claim(site.seed, epoch) {
                if scenario.late_updates && self.update.is_none() {
                    actions.push(Action::DnsLate {
                        epoch,
                        write: write.clone(),
                    });
                }
                actions.push(Action::Dns { epoch, write });
            }
            // DNS before the bucket.
            let is_first = self.zone[0].epoch >= Some(epoch);
            let put = OwnershipObject::claim(self.bucket(source.seed), epoch).filter(|_| is_first);
            actions.extend(put.map(|write| Action::Put {
                bucket: source.seed,
                write,
            }));
        }
        if claims && site.fence.is_none() && ask::is_shown(self, scenario, epoch) {
            actions.push(Action::Look { epoch });
        }
        if claims && site.fence.is_some() {
            actions.push(Action::DestinationCrashes { epoch });
        }
        if !self.evidence(scenario, epoch).earlier_pods_gone {
            actions.push(Action::EarlierPodsGo { epoch });
        }
        let may =
            may_open(&relied_on, &me, self.evidence(scenario, epoch)).is_ok() && relied_on.chain.is_some();
        if may && site.opened != Some(site.seed) {
            let mark = OwnershipObject {
                epoch,
                mark: Mark::Owned,
            };
            if self.bucket(site.seed) == Some(&mark) {
                actions.push(Action::Serve { epoch });
            }
            let put = OwnershipObject::own(self.bucket(site.seed), epoch);
            actions.extend(put.map(|write| Action::Put {
                bucket: site.seed,
                write,
            }));
        } else if may && scenario.data_loss {
            actions.push(Action::DataAreLost { epoch });
        }
    }

    fn others(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        let SeedEpoch { seed, epoch } = self.garden.now;
        if self.late.is_some() {
            actions.push(Action::GardenArrives);
        }
        if self.update.is_some() {
            actions.push(Action::DnsArrives);
        }
        if scenario.servers == 2 && self.zone[0] != self.zone[1] {
            actions.push(Action::ZoneTransfer);
        }
        if scenario.slip && !self.slipped && self.zone[0].identity.is_some() {
            actions.extend([false, true].map(|epoch_too| Action::Slip { epoch_too }));
        }
        if scenario.planned && self.garden.phase == Phase::Sealing {
            let write = self.zone[0].leave(&seed, epoch);
            actions.extend(write.map(|write| Action::Dns { epoch, write }));
        }
        if !scenario.deletion {
            return;
        }
        let owner_acts = self.garden.may_be_deleted_by(&seed) && self.site(epoch).opened.is_some();
        if owner_acts {
            for site in &self.sites {
                if (site.seed != seed || self.deleted) && self.bucket(site.seed).is_some() {
                    actions.push(Action::CleanUp { bucket: site.seed });
                }
            }
        }
        if owner_acts && !self.deleted {
            actions.push(Action::Delete);
        }
        if self.deleted {
            let write = self.zone[0].delete(&seed, epoch);
            actions.extend(write.map(|write| Action::Dns { epoch, write }));
        }
    }
}

/// The state of the garden after a write, with the rules that are on.
pub(super) fn written(
    scenario: &Scenario,
    write: Conditional<Ownership<Seed>>,
    now: &Ownership<Seed>,
) -> Option<Ownership<Seed>> {
    match scenario.off {
        Some(Off::TestedGrant) => Some(write.becomes),
        Some(Off::WholeTest) => (write.tests.now == now.now).then_some(write.becomes),
        _ => write.applied_to(now),
    }
}
