//! An exhaustive model of the evidence that a destination has of its source. Objects of the source's bucket
//! vanish or break at any time, also between the hand-over and the copy (docs/understand/ownership-model.md).
//!
//! The decisions are those of the processes: `Candidate::newest`, `check_reaches` and `Report::judge` of the
//! copy, and `Ownership::step`, `Evidence::after_copy` and `may_open` of the crate `ownership`. Written by
//! hand are the loop of `Copy::best_chain`, without its stores, and the source. The owner check is not in
//! this model: a source acknowledges no write after the seal, the hand-over or the fence. A copy is a single
//! step. Two cases are not in this model: a hand-over without a record of the end, and a copy that is
//! repeated after its choice was recorded.
//! Bounds: three revisions, two lost objects or notes, a single loss that an operator accepts.

#![allow(clippy::unwrap_used, clippy::panic, clippy::struct_excessive_bools)]

use std::time::Instant;

use mutation::Mutation;
use ownership::{Approval, Chain as Choice, Evidence, Ownership, Phase, SeedEpoch, Step, Writer, may_open};
use stateright::{Checker, HasDiscoveries, Model, Property};

use super::evidence::{self, Candidate, SourceEnd, StatedEnd};
use super::{Report, reaches};
use crate::chain::tests::{delta, full, last};
use crate::error::{Class, Error};
use crate::seal_note::SealNote;
use crate::snapshot_name::Snapshot;

/// The epoch of the source.
const ORIGIN: i64 = 1;

/// The last revision that clients write.
const WRITES: i64 = 3;

/// Objects and notes that are lost at most.
const LOSSES: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Seed {
    A,
    B,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Write,
    StoreDelta,
    StoreFull,
    Seal,
    Note,
    StoreFinal,
    Garden(Writer<Seed>, Step<Seed>),
    FencePasses,
    Vanish(Snapshot),
    /// The object has the same name and a different content.
    Break(Snapshot),
    NoteVanishes,
    RecordOfFinalVanishes,
    AcceptLoss(i64),
    Copy,
    Open(Choice),
}

/// The part of a report on which the etcd condition relies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Copied {
    last_revision: i64,
    complete: bool,
    lost: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    garden: Ownership<Seed>,
    /// The last revision that was acknowledged to a client.
    acknowledged: i64,
    /// The last revision that the source has stored, for all that the source knows.
    stored: i64,
    is_sealed: bool,
    /// The bucket of the source: objects, `sealed.json` and `finished.json`.
    listing: Vec<Snapshot>,
    broken: Vec<Snapshot>,
    note: Option<i64>,
    finished: Option<Snapshot>,
    /// The source has taken its final snapshot, and has recorded the proof.
    is_finished: bool,
    losses: u8,
    /// The end of the epoch as the hand-over recorded it.
    end: Option<(i64, Snapshot)>,
    accepted: i64,
    fence_passed: bool,
    copied: Option<Copied>,
    was_refused: bool,
    opened: Option<Choice>,
}

struct World {
    mutation: Option<Mutation>,
    /// The etcd condition relies on the report of the copy.
    relies_on_copy: bool,
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::first()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let _active = self.mutation.map(Mutation::activate);
        if state.opened.is_none() {
            state.source(actions);
            state.losses(actions);
            state.destination(self.relies_on_copy, actions);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let _active = self.mutation.map(Mutation::activate);
        let mut next = state.clone();
        next.take(action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SILENT_LOSS, |_, state: &State| state.loses_nothing_silently()),
            Property::always(CONSENT, |_, state: &State| state.has_consent()),
            Property::sometimes(EVENTS[0], |_, state: &State| {
                state.opens(true, Choice::Final) && !state.listing.iter().any(|object| object.is_final)
            }),
            Property::sometimes(EVENTS[1], |_, state: &State| {
                state.opens(true, Choice::Final) && !state.broken.is_empty()
            }),
            Property::sometimes(EVENTS[2], |_, state: &State| state.was_refused),
            Property::sometimes(EVENTS[3], |_, state: &State| state.opens(true, Choice::Last)),
            Property::sometimes(EVENTS[4], |_, state: &State| {
                state.opens(false, Choice::Final) && state.losses > 0
            }),
            Property::sometimes(EVENTS[5], |_, state: &State| {
                state.opens(false, Choice::Last) && state.note.is_some()
            }),
        ]
    }
}

const SILENT_LOSS: &str = "an acknowledged write is lost, and nothing reports the loss";
const CONSENT: &str = "after a hand-over the shoot loses more than a person has accepted";
const EVENTS: [&str; 6] = [
    "a hand-over opens without its final snapshot, and loses nothing",
    "a hand-over opens beside a broken object, and loses nothing",
    "a copy is refused",
    "a person accepts a loss",
    "a takeover loses an object, and no write",
    "a takeover reports a loss",
];

impl State {
    fn first() -> Self {
        Self {
            garden: Ownership::first(Seed::A),
            acknowledged: 1,
            stored: 1,
            is_sealed: false,
            listing: vec![Snapshot {
                epoch: ORIGIN,
                ..full(1, 1)
            }],
            broken: Vec::new(),
            note: None,
            finished: None,
            is_finished: false,
            losses: 0,
            end: None,
            accepted: 0,
            fence_passed: false,
            copied: None,
            was_refused: false,
            opened: None,
        }
    }

    fn is_takeover(&self) -> bool {
        self.end.is_none()
    }

    fn source(&self, actions: &mut Vec<Action>) {
        let claims = self.garden.now.seed == Seed::B;
        let is_over = claims && (!self.is_takeover() || self.fence_passed);
        if !self.is_sealed && !is_over && self.acknowledged < WRITES {
            actions.push(Action::Write);
        }
        if self.stored < self.acknowledged {
            actions.push(Action::StoreDelta);
        }
        if !self.is_sealed && self.stored < self.acknowledged {
            actions.push(Action::StoreFull);
        }
        if !self.is_sealed && (claims || self.garden.phase == Phase::Sealing) {
            actions.push(Action::Seal);
        }
        if self.is_sealed && self.note.is_none() && !self.is_finished {
            actions.push(Action::Note);
        }
        if self.is_sealed && self.note.is_some() && !self.is_finished {
            actions.push(Action::StoreFinal);
        }
        let owner = Writer::Seed(Seed::A);
        let approval = Approval {
            from: self.garden.now.clone(),
            to: Seed::B,
        };
        let hand_over = Step::HandOver {
            to: Seed::B,
            final_seen: self.is_finished,
            drained: true,
        };
        if !claims {
            for (by, step) in [
                (owner.clone(), Step::Leave),
                (owner.clone(), Step::Seal),
                (owner, hand_over),
                (Writer::Garden, Step::Grant(approval)),
            ] {
                if self.garden.step(&by, step.clone()).is_ok() {
                    actions.push(Action::Garden(by, step));
                }
            }
        }
    }

    fn losses(&self, actions: &mut Vec<Action>) {
        if self.losses == LOSSES {
            return;
        }
        for object in &self.listing {
            actions.push(Action::Vanish(object.clone()));
            if !self.broken.contains(object) {
                actions.push(Action::Break(object.clone()));
            }
        }
        actions.extend(self.note.map(|_| Action::NoteVanishes));
        actions.extend(self.finished.as_ref().map(|_| Action::RecordOfFinalVanishes));
    }

    fn destination(&self, relies_on_copy: bool, actions: &mut Vec<Action>) {
        if self.garden.now.seed != Seed::B {
            return;
        }
        if self.is_takeover() && !self.fence_passed {
            actions.push(Action::FencePasses);
        }
        if !self.is_takeover() && self.accepted == 0 {
            actions.extend((1..WRITES).map(Action::AcceptLoss));
        }
        if self.copied.is_none() && (self.is_complete() || self.fence_passed || !self.is_takeover()) {
            actions.push(Action::Copy);
        }
        actions.extend(self.opens_with(relies_on_copy).map(Action::Open));
    }

    /// The condition that ends the wait of a takeover before the fence, as in `Copy::wait`.
    fn is_complete(&self) -> bool {
        let last = crate::chain::final_snapshot_of(ORIGIN, &self.listing);
        last.is_some_and(|last| self.stated().names(last))
            || self
                .note
                .is_some_and(|sealed| reaches(&self.listing, sealed, ORIGIN))
    }

    fn source_end(&self) -> Option<SourceEnd> {
        let (revision, snapshot) = self.end.clone()?;
        Some(SourceEnd {
            revision,
            snapshot: Some(snapshot.to_string()),
            sha256: None,
            accepted_loss: self.accepted,
        })
    }

    fn stated(&self) -> StatedEnd {
        if let Some(end) = self.source_end() {
            return StatedEnd::recorded(ORIGIN, &end);
        }
        let mut stated = StatedEnd::recorded(
            ORIGIN,
            &SourceEnd {
                snapshot: self.finished.as_ref().map(ToString::to_string),
                ..SourceEnd::default()
            },
        );
        stated.note = self.note.map(|revision| SealNote {
            epoch: ORIGIN,
            revision,
            beat: 0,
        });
        stated
    }

    /// `Copy::best_chain`, with objects that are read and hashed at once.
    fn copy(&self) -> Option<Copied> {
        let (stated, end) = (self.stated(), self.source_end());
        let mut rejected = Vec::new();
        loop {
            let candidate = Candidate::newest(ORIGIN, &self.listing, &rejected).ok()??;
            let chain = candidate.chain;
            if let Some(end) = &end {
                let reached = (chain.last_revision(), candidate.hole.as_ref());
                evidence::check_reaches(end, (ORIGIN, "p"), reached, &rejected).ok()?;
            }
            if let Some(bad) = chain.objects().find(|object| self.broken.contains(object)) {
                rejected.push((bad.clone(), Error::new(Class::SnapshotCorrupt, "broken")));
                continue;
            }
            let mut report = Report {
                last_revision: chain.last_revision(),
                ..Report::default()
            };
            let is_end = candidate.is_final && (!self.is_takeover() || stated.names(&chain.full));
            report.judge(stated.revision(), ORIGIN, self.accepted, is_end);
            return Some(Copied {
                last_revision: report.last_revision,
                complete: report.complete,
                lost: report.lost_revisions,
            });
        }
    }

    /// The etcd condition, as the gardenlet evaluates the gate.
    fn opens_with(&self, relies_on_copy: bool) -> Option<Choice> {
        let me = SeedEpoch {
            seed: Seed::B,
            epoch: 2,
        };
        let brought = self.copied.as_ref().map(|copied| {
            if copied.complete {
                Choice::Final
            } else {
                Choice::Last
            }
        });
        let brought = if relies_on_copy {
            brought
        } else {
            Some(Choice::Final)
        };
        let is_accepted = self
            .copied
            .as_ref()
            .is_some_and(|copied| !copied.complete && copied.lost.is_some());
        let seen = Evidence {
            earlier_pods_gone: true,
            ..Evidence::after_copy(&self.garden, brought, is_accepted, self.fence_passed)
        };
        may_open(&self.garden, &me, seen).ok()
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Write => self.acknowledged += 1,
            Action::StoreDelta => {
                self.store(delta(self.stored + 1, self.acknowledged, 10 * self.acknowledged));
            }
            Action::StoreFull => self.store(full(self.acknowledged, 10 * self.acknowledged + 1)),
            Action::Seal => self.is_sealed = true,
            Action::Note => self.note = Some(self.acknowledged),
            Action::StoreFinal => {
                let snapshot = self.final_snapshot();
                self.finished = Some(snapshot.clone());
                self.is_finished = true;
                self.store(snapshot);
            }
            Action::Garden(by, step) => {
                let is_hand_over = matches!(step, Step::HandOver { .. });
                self.garden = self.garden.step(&by, step).unwrap().becomes;
                let end = (self.acknowledged, self.final_snapshot());
                self.end = is_hand_over.then_some(end);
            }
            Action::FencePasses => self.fence_passed = true,
            Action::Vanish(object) => {
                self.losses += 1;
                self.listing.retain(|stored| *stored != object);
                self.broken.retain(|stored| *stored != object);
            }
            Action::Break(object) => {
                self.losses += 1;
                self.broken.push(object);
                self.broken.sort_by_key(|object| object.created);
            }
            Action::NoteVanishes => {
                self.losses += 1;
                self.note = None;
            }
            Action::RecordOfFinalVanishes => {
                self.losses += 1;
                self.finished = None;
            }
            Action::AcceptLoss(number) => self.accepted = number,
            Action::Copy => {
                self.copied = self.copy();
                self.was_refused |= self.copied.is_none();
            }
            Action::Open(choice) => {
                let open = self.garden.step(&Writer::Seed(Seed::B), Step::Open(choice));
                self.garden = open.unwrap().becomes;
                self.opened = Some(choice);
            }
        }
    }

    fn final_snapshot(&self) -> Snapshot {
        last(self.acknowledged, 10 * self.acknowledged + 2)
    }

    fn store(&mut self, mut object: Snapshot) {
        self.stored = self.acknowledged;
        object.epoch = ORIGIN;
        self.listing.push(object);
        self.listing.sort_by_key(|object| object.created);
    }

    fn opens(&self, handed_over: bool, choice: Choice) -> bool {
        self.end.is_some() == handed_over && self.opened == Some(choice)
    }

    /// The acknowledged writes that the opened etcd does not have.
    fn lost(&self) -> i64 {
        let reached = self.copied.as_ref().map_or(0, |copied| copied.last_revision);
        self.acknowledged - reached
    }

    /// Chain `Last` is reported as a possible loss. A number of lost revisions is the true number.
    fn loses_nothing_silently(&self) -> bool {
        match self.opened {
            None => true,
            Some(Choice::Final) => self.lost() <= 0,
            Some(Choice::Last) => {
                let reported = self.copied.as_ref().and_then(|copied| copied.lost);
                reported.is_none_or(|reported| reported == self.lost())
            }
        }
    }

    fn has_consent(&self) -> bool {
        self.opened.is_none() || self.is_takeover() || self.lost() <= self.accepted
    }
}

fn check(world: World) -> impl Checker<World> {
    world
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join()
}

#[test]
fn no_acknowledged_write_is_lost_silently() {
    let started = Instant::now();
    let checker = check(World {
        mutation: None,
        relies_on_copy: true,
    });
    println!(
        "evidence: {} states, {} steps; {:?}",
        checker.unique_state_count(),
        checker.state_count(),
        started.elapsed()
    );
    let mut found = checker.discoveries();
    for event in EVENTS {
        assert!(found.remove(event).is_some(), "never: {event}");
    }
    if let Some((what, path)) = found.into_iter().next() {
        panic!("{what}\n{:#?}", path.into_actions());
    }
}

/// The mutation is the mutation of the copy itself.
#[test]
fn a_copy_that_takes_any_chain_for_complete_loses_writes_silently() {
    breaks(World {
        mutation: Some(Mutation::SealedRevisionIgnored),
        relies_on_copy: true,
    });
}

#[test]
fn a_gate_that_relies_on_no_copy_loses_writes_silently() {
    breaks(World {
        mutation: None,
        relies_on_copy: false,
    });
}

fn breaks(world: World) {
    let mut found = check(world).discoveries();
    let path = found.remove(SILENT_LOSS).unwrap();
    println!("{:#?}", path.into_actions());
}
