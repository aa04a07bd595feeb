//! The search: all states, the first fault, and the states from which no healthy process leads to service.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Instant;

use super::actions::CutAction;
use super::rules::{CutRule, CutScenario};
use super::state::{CutState, UNAVAILABLE};

/// A state that breaks an invariant, with the shortest path to the state.
struct CutFault {
    reason: &'static str,
    path: String,
}

struct Exploration<'a> {
    scenario: &'a CutScenario,
    numbers: HashMap<Rc<CutState>, u32>,
    states: Vec<Rc<CutState>>,
    /// The state before, and the action.
    parents: Vec<Option<(u32, CutAction)>>,
    /// For each state, the states that reach the state by a healthy process.
    helped_from: Vec<Vec<u32>>,
}

impl<'a> Exploration<'a> {
    fn new(scenario: &'a CutScenario) -> Self {
        let mut exploration = Self {
            scenario,
            numbers: HashMap::new(),
            states: Vec::new(),
            parents: Vec::new(),
            helped_from: Vec::new(),
        };
        exploration.number(CutState::first(scenario), None);
        exploration
    }

    fn number(&mut self, state: CutState, parent: Option<(u32, CutAction)>) -> u32 {
        if let Some(number) = self.numbers.get(&state) {
            return *number;
        }
        let number = u32::try_from(self.states.len()).unwrap();
        let state = Rc::new(state);
        self.numbers.insert(Rc::clone(&state), number);
        self.states.push(state);
        self.parents.push(parent);
        self.helped_from.push(Vec::new());
        number
    }

    fn run(&mut self) -> Option<CutFault> {
        let mut next = 0;
        while next < self.states.len() {
            let state = Rc::clone(&self.states[next]);
            let number = u32::try_from(next).unwrap();
            if let Some(reason) = state.fault(self.scenario) {
                return Some(self.fault(reason, number));
            }
            for action in state.possible(self.scenario) {
                let after = state.after(self.scenario, action);
                let reached = self.number(after, Some((number, action)));
                if action.is_helpful() && reached != number {
                    self.helped_from[reached as usize].push(number);
                }
            }
            next += 1;
        }
        // In the timed scenarios permits end, and the fence is the subject.
        if self.scenario.timed { None } else { self.stuck() }
    }

    /// The first state from which no healthy process leads to service.
    fn stuck(&self) -> Option<CutFault> {
        let mut leads: Vec<bool> = self
            .states
            .iter()
            .map(|state| state.is_available(self.scenario))
            .collect();
        let numbered = (0_u32..).zip(&leads);
        let mut open: Vec<u32> = numbered
            .filter(|(_, leads)| **leads)
            .map(|(number, _)| number)
            .collect();
        while let Some(number) = open.pop() {
            for before in &self.helped_from[number as usize] {
                if !leads[*before as usize] {
                    leads[*before as usize] = true;
                    open.push(*before);
                }
            }
        }
        let first = leads.iter().position(|leads| !leads)?;
        Some(self.fault(UNAVAILABLE, u32::try_from(first).unwrap()))
    }

    fn fault(&self, reason: &'static str, number: u32) -> CutFault {
        let mut actions = Vec::new();
        let mut number = number;
        while let Some((parent, action)) = self.parents[number as usize] {
            actions.push(action);
            number = parent;
        }
        let mut path = String::new();
        for (line, action) in (1..).zip(actions.iter().rev()) {
            writeln!(path, "{line:4}. {action:?}").unwrap();
        }
        CutFault { reason, path }
    }
}

/// The name of an event, and whether a state shows the event.
pub(super) type ExpectedEvent<'a> = (&'a str, fn(&CutState) -> bool);

/// Explores all states, and expects no fault. `sees` are events that must happen: a scenario without an event
/// does not test the event.
pub(super) fn explore(scenario: &CutScenario, sees: &[ExpectedEvent<'_>]) {
    let started = Instant::now();
    let mut exploration = Exploration::new(scenario);
    let fault = exploration.run();
    println!(
        "{}: {} states, {:?}",
        scenario.name,
        exploration.states.len(),
        started.elapsed()
    );
    if let Some(fault) = fault {
        panic!("{}: {}\n{}", scenario.name, fault.reason, fault.path);
    }
    for (event, happens) in sees {
        assert!(
            exploration.states.iter().any(|state| happens(state)),
            "{}: never {event}",
            scenario.name
        );
    }
}

/// Switches a rule off, finds the fault, and prints the shortest path.
pub(super) fn without_rule(off: CutRule, scenario: CutScenario, reasons: &[&str]) {
    let scenario = CutScenario {
        off: Some(off),
        ..scenario
    };
    let mut exploration = Exploration::new(&scenario);
    let fault = exploration.run();
    let states = exploration.states.len();
    let fault =
        fault.unwrap_or_else(|| panic!("{off:?}: nothing breaks in {states} states of {}", scenario.name));
    println!(
        "without {off:?} ({}, {states} states): {}\n{}",
        scenario.name, fault.reason, fault.path
    );
    assert!(reasons.contains(&fault.reason), "{}", fault.reason);
}
