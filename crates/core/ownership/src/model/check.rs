//! The invariants, and the search.

use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::action::Action;
use super::scenario::{Off, Scenario};
use super::state::{Process, Right, Site, State, is_in};
use super::tell;
use crate::phase::{Chain, Phase};

struct World(Scenario);

type Event = (&'static str, fn(&State) -> bool);

/// The events that must be seen on the way (`Scenario::sees`): a scenario without the event does not test the
/// event.
const EVENTS: [Event; 10] = [
    ("fence", |state| state.has_opened(Chain::Last)),
    ("final", |state| state.has_opened(Chain::Final)),
    ("acts", |state| state.sites.iter().skip(1).any(|site| site.acts)),
    ("drained", |state| {
        state.sites.iter().any(|site| site.acts && site.read.drained)
    }),
    ("third", |state| {
        state.sites.get(2).is_some_and(|site| site.opened.is_some())
    }),
    ("deleted", |state| {
        state.deleted && state.zone[0].epoch.is_none() && state.buckets.iter().all(Option::is_none)
    }),
    ("renewed", |state| {
        let mut pairs = state.sites.windows(2);
        state.slipped && pairs.any(|pair| pair[0].seed == pair[1].seed && pair[1].opened.is_some())
    }),
    // The bucket and the first server show a later epoch, and the second server alone extends the source.
    ("stale", |state| {
        let [first, second] = &state.zone;
        let source = &state.sites[0];
        let is_claimed = state.bucket(source.seed).is_some_and(|object| object.epoch > 1);
        is_claimed && first.epoch > Some(1) && second.epoch == Some(1) && source.sidecar.right.is_valid()
    }),
    ("short pause", |state| {
        let processes = |site: &Site| [site.sidecar, site.gardenlet];
        let mut all = state.sites.iter().flat_map(processes);
        all.any(|process| process.has_outlasted_a_pause())
    }),
    // The source may act beside a later epoch until the host clock is read.
    ("long pause", |state| {
        let [source, next, ..] = &state.sites[..] else {
            return false;
        };
        let wakes = |process: &Process| process.right.is_valid() && process.has_just_woken();
        next.opened.is_some() && wakes(&source.sidecar) || next.acts && wakes(&source.gardenlet)
    }),
];

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(&self.0)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // A broken state is not explored further.
        if state.broken.is_none() {
            actions.extend(state.possible(&self.0));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(state.after(&self.0, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties: Vec<Property<Self>> = vec![
            Property::always(I1, |world: &World, state: &State| state.i1(&world.0)),
            Property::always(I2, |_, state: &State| state.broken.is_none()),
            Property::always(I3, |world: &World, state: &State| state.i3(&world.0)),
            Property::always(AFTER_FINAL, |world: &World, state: &State| {
                state.after_final(&world.0)
            }),
        ];
        if matches!(
            self.0.off,
            None | Some(Off::DeletionNeedsWitness | Off::FreshEpoch)
        ) {
            properties.push(Property::always(FALSE_LOSS, |_, state: &State| {
                state.no_false_loss()
            }));
        }
        if !self.0.sees.is_empty() {
            properties.extend([
                Property::sometimes(EVENTS[0].0, |_, state: &State| EVENTS[0].1(state)),
                Property::sometimes(EVENTS[1].0, |_, state: &State| EVENTS[1].1(state)),
                Property::sometimes(EVENTS[2].0, |_, state: &State| EVENTS[2].1(state)),
                Property::sometimes(EVENTS[3].0, |_, state: &State| EVENTS[3].1(state)),
                Property::sometimes(EVENTS[4].0, |_, state: &State| EVENTS[4].1(state)),
                Property::sometimes(EVENTS[5].0, |_, state: &State| EVENTS[5].1(state)),
                Property::sometimes(EVENTS[6].0, |_, state: &State| EVENTS[6].1(state)),
                Property::sometimes(EVENTS[7].0, |_, state: &State| EVENTS[7].1(state)),
                Property::sometimes(EVENTS[8].0, |_, state: &State| EVENTS[8].1(state)),
                Property::sometimes(EVENTS[9].0, |_, state: &State| EVENTS[9].1(state)),
            ]);
        }
        properties
    }
}

const I1: &str = "I1: a write is acknowledged in an epoch after a later one was opened";
const I2: &str = "I2, data: etcd is opened with the right data, and not before its time";
const I3: &str = "I3: a request to a cloud leaves or lands beside those of a later epoch";
const AFTER_FINAL: &str = "data: a write is acknowledged after the final snapshot of its epoch";
const FALSE_LOSS: &str = "false loss: a shoot is lost that nobody has taken";

impl State {
    fn has_opened(&self, chain: Chain) -> bool {
        self.sites
            .iter()
            .skip(1)
            .any(|site| site.opened.is_some() && site.read.chain == Some(chain))
    }

    fn i1(&self, scenario: &Scenario) -> bool {
        let mut opened = false;
        self.epochs().rev().all(|epoch| {
            // No process inside a guest can prevent writes right after a long pause
            // (docs/understand/ownership.md, "Clocks").
            let is_excepted = self.site(epoch).sidecar.has_just_woken();
            let holds = !(opened && self.may_acknowledge(scenario, epoch)) || is_excepted;
            opened |= self.site(epoch).opened.is_some();
            holds
        })
    }

    fn i3(&self, scenario: &Scenario) -> bool {
        let mut acts = false;
        self.epochs().rev().all(|epoch| {
            let site = self.site(epoch);
            let mine = self.may_act(scenario, epoch);
            // As in I1, for the requests of a process.
            let leaves = mine && !self.is_excepted(scenario, epoch);
            let lands = site.flight > 0 && !site.is_flight_excepted;
            let holds = !(acts && (leaves || lands));
            let is_detailed = is_in(scenario.actuators | scenario.gardenlets, epoch);
            acts |= mine || !is_detailed && site.acts;
            holds
        })
    }

    fn after_final(&self, scenario: &Scenario) -> bool {
        self.epochs()
            .all(|epoch| !(self.site(epoch).final_snapshot && self.may_acknowledge(scenario, epoch)))
    }

    fn no_false_loss(&self) -> bool {
        let now = &self.garden;
        self.epochs().all(|epoch| {
            let site = self.site(epoch);
            let processes = [&site.sidecar, &site.actuator, &site.gardenlet];
            let lost = site.marker || processes.iter().any(|process| process.right == Right::Lost);
            !lost || now.now.epoch > epoch || now.phase == Phase::Sealing || self.deleted
        })
    }
}

/// Much longer than any of the scenarios takes, also on a busy machine. An unfinished exploration proves no
/// invariant.
const LONGEST: Duration = Duration::from_secs(300);

fn check(scenario: &Scenario) -> impl Checker<World> {
    World(scenario.clone())
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .timeout(LONGEST)
        .spawn_bfs()
        .join()
}

/// Explores all states, and expects no broken invariant. `events` must be seen on the way: a scenario without
/// the event does not test the event.
pub(super) fn explore(scenario: &Scenario) {
    let started = Instant::now();
    let checker = check(scenario);
    println!(
        "{}: {} states, {} steps, at most {} from the first; {:?}",
        scenario.name,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        started.elapsed()
    );
    let (seen, broken): (Vec<_>, Vec<_>) = checker
        .discoveries()
        .into_iter()
        .partition(|(what, _)| EVENTS.iter().any(|(event, _)| event == what));
    if let Some((what, path)) = broken.into_iter().next() {
        let why = path.last_state().broken.unwrap_or(what);
        panic!("{}: {why}\n{}", scenario.name, tell::way(&path.into_actions()));
    }
    assert!(
        started.elapsed() < LONGEST,
        "{}: not explored to its end",
        scenario.name
    );
    for event in scenario.sees {
        assert!(
            seen.iter().any(|(what, _)| what == event),
            "{}: never {event}",
            scenario.name
        );
    }
}

/// Switches a rule off, finds the broken invariant, and prints the shortest path.
pub(super) fn without(off: Off, scenario: Scenario, breaks: &[&str]) {
    let scenario = Scenario {
        off: Some(off),
        sees: &[],
        ..scenario
    };
    let checker = check(&scenario);
    let states = checker.unique_state_count();
    let found = checker.discoveries().into_iter().next();
    let (what, path) =
        found.unwrap_or_else(|| panic!("{off:?}: nothing breaks in {states} states of {}", scenario.name));
    let why = path.last_state().broken.unwrap_or(what);
    println!(
        "without {off:?} ({}, {states} states): {why}\n{}",
        scenario.name,
        tell::way(&path.into_actions())
    );
    assert!(breaks.iter().any(|breaks| why.starts_with(breaks)), "{why}");
}
