//! The world of the model: the API server's records, the managers, and requests under way. One tick is one second.
//!
//! Versions and ages are kept relative ("is it the current record", "how many ticks ago"), so that there are finitely many
//! states. For each decision they are turned into a real [`Observation`] and back.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::decision::Decision;
use crate::observation::{Observation, Seen};
use crate::{Record, Timing};

const TICK: Duration = Duration::from_secs(1);
/// The shortest timing in which all parts differ; retry period: one tick.
const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(3),
    renew_deadline: Duration::from_secs(2),
    retry_period: TICK,
};
/// Ages beyond the lease duration make no difference.
const OLD: u8 = 4;
/// Lease duration and retry period, in ticks.
const LONGEST_WITHOUT: u8 = 4;
/// Wall clock of one that reads what was written "now" on a machine whose clock is an hour behind.
pub(super) const READER_WALL: Timestamp = Timestamp::constant(3600, 0);

/// Now. Real instants are needed on both sides of it.
static NOW: LazyLock<Instant> = LazyLock::new(|| Instant::now() + 100 * TICK);

/// What is proved, or with one rule broken.
pub(super) struct Rules {
    pub locks: usize,
    /// How often something may go wrong.
    pub faults: u8,
    /// Whose clock is the faster one.
    pub faster: usize,
    /// It gains so many ticks ...
    pub gains: u8,
    /// ... in so many.
    pub gains_every: u8,
    pub compare_and_swap: bool,
    pub decide: fn(&Observation, &str, &Timing, Instant) -> Decision,
    pub valid_until: fn(&Timing, Instant) -> Instant,
}

/// Who a record names. A manager that starts anew has another name; what remains of it is a ghost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Nobody,
    Manager(usize),
    Ghost,
}

impl Name {
    fn record(self, other_version: bool) -> Record {
        let name = match self {
            Self::Nobody => None,
            Self::Manager(0) => Some("m0"),
            Self::Manager(_) => Some("m1"),
            Self::Ghost => Some("ghost"),
        };
        let version = SignedDuration::from_secs(i64::from(other_version));
        Record {
            holder: name.map(ToOwned::to_owned),
            lease_seconds: Some(TIMING.lease_seconds()),
            acquired: None,
            renewed: Some(Timestamp::UNIX_EPOCH - version),
            transitions: 0,
        }
    }
}

/// A record that a manager saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Sight {
    name: Name,
    /// Ticks of the manager's clock since it first saw it.
    age: u8,
    /// It is still what the API server has.
    current: bool,
}

/// A write under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Write {
    name: Name,
    /// Based on what the API server has now; once carried out: still what it has now.
    current: bool,
    /// Ticks of the sender's clock since it was sent.
    age: u8,
    done: bool,
}

/// What a manager knows of one lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Part {
    sight: Option<Sight>,
    /// Ticks for which the lock is still held; zero: lost by time, and not noticed yet.
    held: Option<u8>,
    write: Option<Write>,
    /// It did its step of this retry period.
    rested: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Life {
    Runs,
    Paused,
    Dead,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Manager {
    life: Life,
    parts: [Part; 2],
}

const FRESH: Manager = Manager {
    life: Life::Runs,
    parts: [Part {
        sight: None,
        held: None,
        write: None,
        rested: false,
    }; 2],
};

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// What the API server has; `None`: no Lease.
    server: [Option<Name>; 2],
    managers: [Manager; 2],
    /// A write for each lock whose sender gave up, still on its way.
    late: [Option<Write>; 2],
    /// Ticks for which nothing went wrong, somebody could hold the lock, and nobody did.
    without: [u8; 2],
    phase: u8,
    faults: u8,
}

/// What can happen next. Numbers: manager, lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Tick,
    /// The manager looks and decides, or renews.
    Step(usize, usize),
    /// The API server carries its write out and the answer arrives.
    Answer(usize, usize),
    /// The manager notices that a lock was lost, and ends.
    Exit(usize),
    Start(usize),
    // Faults from here on.
    /// A tick although somebody has something to do.
    Stall,
    /// The write is carried out; the answer is slow.
    Process(usize, usize),
    /// The sender gives up waiting; the write may still be carried out, or its answer is lost.
    GiveUp(usize, usize),
    CarryOutLate(usize),
    Pause(usize),
    GoOn(usize),
    Die(usize),
    /// A clean end: the locks are given back.
    Release(usize),
}

impl World {
    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            server: [None; 2],
            managers: [FRESH, FRESH],
            late: [None; 2],
            without: [0; 2],
            phase: 0,
            faults: rules.faults,
        }
    }

    /// What must hold and does not.
    pub(super) fn breach(&self, rules: &Rules) -> Option<String> {
        (0..rules.locks).find_map(|lock| {
            let holds = |m: &Manager| m.parts[lock].held.is_some_and(|left| left > 0);
            if self.managers.iter().all(holds) {
                return Some(format!("lock {lock} is held by both"));
            }
            let long = self.without[lock] > LONGEST_WITHOUT;
            long.then(|| format!("lock {lock} is without a holder for too long"))
        })
    }

    pub(super) fn hands_over_to(&self, next: &Self) -> bool {
        (0..2).any(|lock| match (self.server[lock], next.server[lock]) {
            (Some(before), Some(Name::Manager(m))) => before != Name::Manager(m),
            _ => false,
        })
    }

    pub(super) fn actions(&self, rules: &Rules) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut busy = false;
        for (m, manager) in self.managers.iter().enumerate() {
            let runs = manager.life == Life::Runs;
            if runs && manager.parts.iter().any(|part| part.held == Some(0)) {
                actions.push(Action::Exit(m));
                busy = true;
                continue;
            }
            for (l, part) in manager.parts.iter().enumerate().take(rules.locks) {
                let may = l == 0 || manager.parts[0].held.is_some();
                if runs && part.write.is_some() {
                    actions.push(Action::Answer(m, l));
                    busy = true;
                } else if runs && may && !part.rested {
                    actions.push(Action::Step(m, l));
                    busy = true;
                }
                if self.faults > 0 && part.write.is_some_and(|write| !write.done) {
                    actions.push(Action::Process(m, l));
                }
                if self.faults > 0 && part.write.is_some() && runs {
                    actions.push(Action::GiveUp(m, l));
                }
            }
            match manager.life {
                Life::Dead => actions.push(Action::Start(m)),
                Life::Paused => actions.push(Action::GoOn(m)),
                Life::Runs if self.faults > 0 => {
                    actions.extend([Action::Pause(m), Action::Die(m), Action::Release(m)]);
                }
                Life::Runs => {}
            }
        }
        if !busy {
            actions.push(Action::Tick);
        } else if self.faults > 0 {
            actions.push(Action::Stall);
        }
        let late = (0..rules.locks).filter(|l| self.late[*l].is_some());
        actions.extend(late.map(Action::CarryOutLate));
        actions
    }

    pub(super) fn after(&self, action: Action, rules: &Rules) -> Self {
        let mut next = self.clone();
        match action {
            Action::Tick | Action::Stall => next.tick(rules),
            Action::Step(m, l) => next.step(m, l, rules),
            Action::Answer(m, l) => next.answer(m, l, rules),
            Action::Process(m, l) => next.process(m, l, rules),
            Action::GiveUp(m, l) => next.give_up(m, l),
            Action::CarryOutLate(l) => {
                if let Some(write) = next.late[l].take() {
                    next.carry_out(l, write, rules);
                }
            }
            Action::Pause(m) => next.managers[m].life = Life::Paused,
            Action::GoOn(m) => next.managers[m].life = Life::Runs,
            Action::Exit(m) | Action::Die(m) => next.die(m),
            Action::Start(m) => next.managers[m] = FRESH,
            Action::Release(m) => next.release(m, rules),
        }
        let free = matches!(action, Action::Tick | Action::Step(..) | Action::Answer(..));
        if !free {
            next.without = [0; 2];
        }
        let costs = !free
            && !matches!(
                action,
                Action::Exit(_) | Action::Start(_) | Action::GoOn(_) | Action::CarryOutLate(_)
            );
        next.faults -= u8::from(costs);
        next
    }

    fn tick(&mut self, rules: &Rules) {
        self.phase = (self.phase + 1) % rules.gains_every;
        let gained = if self.phase == 0 { rules.gains } else { 0 };
        for (m, manager) in self.managers.iter_mut().enumerate() {
            let passed = 1 + if m == rules.faster { gained } else { 0 };
            for part in &mut manager.parts {
                part.rested = false;
                part.held = part.held.map(|left| left.saturating_sub(passed));
                if let Some(sight) = &mut part.sight {
                    sight.age = (sight.age + passed).min(OLD);
                }
                if let Some(write) = &mut part.write {
                    write.age = (write.age + passed).min(OLD);
                }
            }
        }
        for lock in 0..rules.locks {
            let held = self
                .managers
                .iter()
                .any(|m| m.parts[lock].held.is_some_and(|left| left > 0));
            let may =
                |m: &Manager| m.life == Life::Runs && (lock == 0 || m.parts[0].held.is_some_and(|h| h > 0));
            let waits = !held && self.managers.iter().any(may);
            self.without[lock] = if waits { self.without[lock] + 1 } else { 0 };
        }
    }

    /// Looks (holders do that only after a refusal, see `answer`), decides and sends.
    fn step(&mut self, m: usize, l: usize, rules: &Rules) {
        let part = &mut self.managers[m].parts[l];
        part.rested = true;
        let decision = if part.held.is_some() {
            Decision::Renew
        } else {
            self.look(m, l, rules)
        };
        if matches!(decision, Decision::Wait(_)) {
            return;
        }
        let part = &mut self.managers[m].parts[l];
        part.write = Some(Write {
            name: Name::Manager(m),
            current: part.sight.is_none_or(|sight| sight.current),
            age: 0,
            done: false,
        });
    }

    /// Reads, and decides by the real functions.
    fn look(&mut self, m: usize, l: usize, rules: &Rules) -> Decision {
        let found = self.server[l].map_or(Seen::Absent, |name| Seen::Present(name.record(false)));
        let part = &mut self.managers[m].parts[l];
        let observation = match part.sight {
            Some(sight) => {
                let before = Seen::Present(sight.name.record(!sight.current));
                let mut seen = Observation::first(before, *NOW - u32::from(sight.age) * TICK);
                seen.update(found, *NOW);
                seen
            }
            None => Observation::first(found, *NOW),
        };
        let age = (*NOW - observation.since()).as_secs();
        part.sight = self.server[l].map(|name| Sight {
            name,
            age: u8::try_from(age).unwrap_or(OLD),
            current: true,
        });
        (rules.decide)(&observation, ["m0", "m1"][m], &TIMING, *NOW)
    }

    /// The API server takes or refuses a write. Taken, it makes all else out of date.
    fn carry_out(&mut self, l: usize, write: Write, rules: &Rules) -> bool {
        if rules.compare_and_swap && !write.current {
            return false;
        }
        self.server[l] = Some(write.name);
        for manager in &mut self.managers {
            let part = &mut manager.parts[l];
            part.sight = part.sight.map(|sight| Sight {
                current: false,
                ..sight
            });
            part.write = part.write.map(|write| Write {
                current: false,
                ..write
            });
        }
        self.late[l] = self.late[l].map(|write| Write {
            current: false,
            ..write
        });
        true
    }

    fn process(&mut self, m: usize, l: usize, rules: &Rules) {
        let Some(write) = self.managers[m].parts[l].write.take() else {
            return;
        };
        let taken = self.carry_out(l, write, rules);
        self.managers[m].parts[l].write = Some(Write {
            current: taken,
            done: taken,
            ..write
        });
    }

    fn answer(&mut self, m: usize, l: usize, rules: &Rules) {
        if self.managers[m].parts[l].write.is_some_and(|write| !write.done) {
            self.process(m, l, rules);
        }
        let part = &mut self.managers[m].parts[l];
        let Some(write) = part.write.take() else { return };
        if write.done {
            let until = (rules.valid_until)(&TIMING, *NOW - u32::from(write.age) * TICK);
            let left = until.saturating_duration_since(*NOW).as_secs();
            part.held = Some(u8::try_from(left).unwrap_or(OLD));
            part.sight = Some(Sight {
                name: write.name,
                age: 0,
                current: write.current,
            });
            return;
        }
        // Refused: look again. A holder that finds another name has lost; everybody else goes on in this period.
        part.rested = false;
        let holder = part.held.is_some();
        let decision = self.look(m, l, rules);
        if holder && !matches!(decision, Decision::Renew | Decision::Create) {
            self.managers[m].parts[l].held = Some(0);
        }
    }

    fn give_up(&mut self, m: usize, l: usize) {
        if let Some(write) = self.managers[m].parts[l].write.take().filter(|write| !write.done) {
            self.late[l] = Some(Write { age: 0, ..write });
        }
    }

    /// Its name and its requests remain.
    fn die(&mut self, m: usize) {
        for l in 0..2 {
            self.give_up(m, l);
        }
        let ghost = |name: &mut Name| {
            if *name == Name::Manager(m) {
                *name = Name::Ghost;
            }
        };
        self.managers[m] = Manager {
            life: Life::Dead,
            ..FRESH
        };
        self.server.iter_mut().flatten().for_each(ghost);
        self.late
            .iter_mut()
            .flatten()
            .for_each(|write| ghost(&mut write.name));
        for part in self.managers.iter_mut().flat_map(|manager| &mut manager.parts) {
            if let Some(sight) = &mut part.sight {
                ghost(&mut sight.name);
            }
        }
    }

    /// Nothing is held any more before the locks are given back, the migration lock first.
    fn release(&mut self, m: usize, rules: &Rules) {
        for l in (0..rules.locks).rev() {
            self.give_up(m, l);
            if self.server[l] == Some(Name::Manager(m)) {
                let write = Write {
                    name: Name::Nobody,
                    current: true,
                    age: 0,
                    done: false,
                };
                self.carry_out(l, write, rules);
            }
        }
        self.die(m);
    }
}
