//! A state of the model.

use std::time::Duration;

use super::machine::Machine;
use super::scenario::{Off, Scenario, Seed};
use crate::claim_state::ClaimState;
use crate::conditional::Conditional;
use crate::gates::{SealProgress, forwards};
use crate::marks::{Mark, OwnershipObject, Record};
use crate::phase::Ownership;
use crate::record_verdict::OwnershipLoss;

/// The present, by every clock. States keep remaining and elapsed times, so that the number of states is
/// finite.
pub(super) const NOW: Duration = Duration::from_secs(1000);

pub(super) fn ticks(number: u8) -> Duration {
    Duration::from_secs(number.into())
}

/// A process that asks and acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Who {
    Sidecar,
    Actuator,
    Gardenlet,
}

/// The part of an answer that matters. Unknown changes no state, just as a lost answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AnswerKind {
    Owned { at_most: Option<u8> },
    Lost,
}

/// `ClaimState`, with the remaining time instead of a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Right {
    #[default]
    None,
    Left(u8),
    Lost,
}

impl Right {
    pub(super) fn claim_state(self) -> ClaimState<Duration> {
        match self {
            Self::None => ClaimState::Unconfirmed,
            Self::Left(left) => ClaimState::Owner {
                until: NOW + ticks(left),
            },
            Self::Lost => ClaimState::Lost(OwnershipLoss::Sealed),
        }
    }

    pub(super) fn from_state(claim_state: &ClaimState<Duration>) -> Self {
        match claim_state {
            ClaimState::Unconfirmed => Self::None,
            ClaimState::Owner { until } => {
                Self::Left(u8::try_from(until.saturating_sub(NOW).as_secs()).unwrap())
            }
            ClaimState::Lost(_) => Self::Lost,
        }
    }

    pub(super) fn is_valid(self) -> bool {
        !self.left().is_zero()
    }

    pub(super) fn left(self) -> Duration {
        match self {
            Self::Left(left) => ticks(left),
            Self::None | Self::Lost => Duration::ZERO,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) awake: bool,
    pub(super) right: Right,
    /// An answer under way, and the age of the question.
    pub(super) answer: Option<(AnswerKind, u8)>,
    /// Time since the process first saw its own epoch in the record. Kept where names can be out of step.
    pub(super) seen: Option<u8>,
    pub(super) machine: Machine,
}

impl Default for Process {
    fn default() -> Self {
        Self {
            awake: true,
            right: Right::None,
            answer: None,
            seen: None,
            machine: Machine::default(),
        }
    }
}

/// A single epoch at a single seed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Site {
    pub(super) seed: Seed,
    pub(super) sidecar: Process,
    pub(super) actuator: Process,
    pub(super) gardenlet: Process,
    /// On the disk.
    pub(super) marker: bool,
    pub(super) final_snapshot: bool,
    /// The actuators have reported in their objects that all work has stopped.
    pub(super) stopped: bool,
    /// Time for which a request may still be under way.
    pub(super) flight: u8,
    /// That request left right after a long pause, before the host clock was read.
    pub(super) is_flight_excepted: bool,
    /// The seed that opened etcd in this epoch: o(e).
    pub(super) opened: Option<Seed>,
    /// The cloud condition was passed.
    pub(super) acts: bool,
    /// Ticks since all witnesses were seen, by the destination's own clock.
    pub(super) fence: Option<u8>,
    /// The state last read of this epoch in the garden. The process may be asleep while other writers write.
    pub(super) read: Ownership<Seed>,
    /// The gardenlet has noted in the seed that the data are chosen.
    pub(super) noted: bool,
    /// The pods of this site are gone.
    pub(super) gone: bool,
    /// The epoch of the content of the data directory.
    pub(super) data: Option<i64>,
    /// Ticks for which all witnesses have truly shown this epoch.
    pub(super) truth: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) garden: Ownership<Seed>,
    pub(super) deleted: bool,
    pub(super) late: Option<Conditional<Ownership<Seed>>>,
    /// The zone's servers; the first server accepts updates.
    pub(super) zone: [Record<Seed>; 2],
    /// The records that replicas behind the first server's address still serve, and the remaining time after
    /// a destination has checked.
    pub(super) hidden: Vec<(Record<Seed>, u8)>,
    pub(super) update: Option<Conditional<Record<Seed>>>,
    /// A stranger has deleted the record once.
    pub(super) slipped: bool,
    /// `ownership.json` of each seed.
    pub(super) buckets: [Option<OwnershipObject>; 3],
    pub(super) sites: Vec<Site>,
    /// Whether the source's clocks may still lose a second, and the destination's clocks gain a second.
    pub(super) drift: (bool, bool),
    /// An invariant broken by a step rather than by a state.
    pub(super) broken: Option<&'static str>,
}

impl State {
    pub(super) fn first(scenario: &Scenario) -> Self {
        let first = Record {
            identity: Some(Seed::A),
            epoch: Some(1),
        };
        let nothing = Record {
            identity: None,
            epoch: None,
        };
        let mut buckets = [None; 3];
        buckets[Seed::A as usize] = Some(OwnershipObject {
            epoch: 1,
            mark: Mark::Owned,
        });
        Self {
            garden: Ownership::first(Seed::A),
            deleted: false,
            late: None,
            zone: [first.clone(), first.clone()],
            hidden: Vec::new(),
            slipped: false,
            // The first owner's own update, sent twice; the process of the second copy fell asleep before
            // sending.
            update: scenario.late_updates.then_some(Conditional {
                tests: nothing,
                becomes: first,
            }),
            buckets,
            sites: vec![Site {
                opened: Some(Seed::A),
                acts: true,
                data: Some(1),
                ..Site::new(Ownership::first(Seed::A))
            }],
            drift: (scenario.drift, scenario.drift),
            broken: None,
        }
    }

    pub(super) fn bucket(&self, seed: Seed) -> Option<&OwnershipObject> {
        self.buckets[seed as usize].as_ref()
    }

    pub(super) fn site(&self, epoch: i64) -> &Site {
        &self.sites[index(epoch)]
    }

    pub(super) fn site_mut(&mut self, epoch: i64) -> &mut Site {
        &mut self.sites[index(epoch)]
    }

    pub(super) fn process_mut(&mut self, epoch: i64, who: Who) -> &mut Process {
        let site = self.site_mut(epoch);
        match who {
            Who::Sidecar => &mut site.sidecar,
            Who::Actuator => &mut site.actuator,
            Who::Gardenlet => &mut site.gardenlet,
        }
    }

    pub(super) fn epochs(&self) -> std::ops::RangeInclusive<i64> {
        1..=i64::try_from(self.sites.len()).unwrap()
    }

    /// Whether a write could be acknowledged now in this epoch, by a site modelled in detail.
    pub(super) fn may_acknowledge(&self, scenario: &Scenario, epoch: i64) -> bool {
        let site = self.site(epoch);
        if !is_in(scenario.sidecars, epoch) || site.opened.is_none() || site.gone {
            return false;
        }
        let sealed = SealProgress {
            marker: site.marker,
            ..SealProgress::default()
        };
        if site.sidecar.runs() {
            forwards(sealed, site.sidecar.right.is_valid())
        } else {
            // Without the gate in the path, etcd serves on until the seal stops etcd.
            !scenario.is_on(Off::GateInPath) && !site.marker
        }
    }

    /// Whether no promise covers the requests that leave now, because a guest has just woken.
    pub(super) fn is_excepted(&self, scenario: &Scenario, epoch: i64) -> bool {
        let site = self.site(epoch);
        let processes = [
            (scenario.actuators, &site.actuator),
            (scenario.gardenlets, &site.gardenlet),
        ];
        processes
            .iter()
            .any(|(mask, process)| is_in(*mask, epoch) && process.has_just_woken())
    }

    /// Whether a request to a cloud could leave now.
    pub(super) fn may_act(&self, scenario: &Scenario, epoch: i64) -> bool {
        let site = self.site(epoch);
        let may =
            |mask: u8, process: &Process| is_in(mask, epoch) && process.runs() && process.right.is_valid();
        site.acts
            && !site.gone
            && (may(scenario.actuators, &site.actuator) && !site.stopped
                || may(scenario.gardenlets, &site.gardenlet))
    }
}

impl Site {
    pub(super) fn new(read: Ownership<Seed>) -> Self {
        Self {
            seed: read.now.seed,
            sidecar: Process::default(),
            actuator: Process::default(),
            gardenlet: Process::default(),
            marker: false,
            final_snapshot: false,
            stopped: false,
            flight: 0,
            is_flight_excepted: false,
            opened: None,
            acts: false,
            fence: None,
            read,
            noted: false,
            gone: false,
            data: None,
            truth: 0,
        }
    }
}

pub(super) fn is_in(mask: u8, epoch: i64) -> bool {
    mask >> epoch & 1 == 1
}

fn index(epoch: i64) -> usize {
    usize::try_from(epoch - 1).unwrap()
}
