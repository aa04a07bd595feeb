//! The preparation, explored exhaustively and breadth-first, so that each finding has the shortest path.
//!
//! A garden with seeds A, B and C, which may be restored from a backup once. In seed B, three processes run
//! side by side, each with reads of any age: the preparation, the removal, and the flow of an owner. The
//! decisions are the functions of this module and of `mod.rs`. Only their environment is written here.
//!
//! Not modelled: the expiry (a withdrawal by the clock of the seed), the deletion of the Shoot (a withdrawal
//! for the removal), and a user who marks a namespace.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    collections::{BTreeSet, HashSet},
    fmt::Write as _,
    rc::Rc,
};

use super::{NamespaceMark, PreparationGrant, PreparationStep, may_remove_prepared, next_preparation_step};
use crate::phase::SeedEpoch;

/// Epochs of the garden. Three hand-overs lead from A to B and back.
const LAST_EPOCH: i64 = 3;
/// Writes of the namespace.
const MOST_VERSIONS: u8 = 6;

const REMOVED: &str = "a control plane was removed";
const STAYS: &str = "a preparation without a grant stays";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ModelSeed {
    A,
    B,
    C,
}

/// A rule that a test switches off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PreparationRule {
    /// No existing namespace gets the mark.
    MarkAtCreation,
    /// The owner removes the mark before all other steps.
    UnmarkFirst,
    /// The removal tests the version of the namespace.
    VersionTested,
    /// A grant counts in its epoch alone.
    GrantOfEpoch,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PreparationGarden {
    now: SeedEpoch<ModelSeed>,
    grant: Option<PreparationGrant<ModelSeed>>,
    /// Seed B is in the list of former seeds.
    is_former: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ModelNamespace {
    version: u8,
    mark: Option<i64>,
    has_control_plane: bool,
}

/// The removal reads the namespace, then the garden, and then removes the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RemovalStep {
    Idle,
    HasRead { version: u8, mark: i64 },
    HasDecided { version: u8 },
}

/// The flow of an owner in seed B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum OwnerStep {
    Idle,
    Begun,
    ReadMark { version: u8 },
    Ready,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PreparationState {
    garden: PreparationGarden,
    backup: PreparationGarden,
    may_restore: bool,
    namespace: Option<ModelNamespace>,
    versions: u8,
    /// The epoch of the grant that the preparation has read.
    prepares: Option<i64>,
    removal: RemovalStep,
    owner: OwnerStep,
    has_removed_control_plane: bool,
}

type NextStates = Vec<(&'static str, PreparationState)>;
/// A state with the number of the state before, and the event in between.
type Reached = (Rc<PreparationState>, Option<(usize, &'static str)>);

impl PreparationState {
    fn first() -> Self {
        let garden = PreparationGarden {
            now: SeedEpoch {
                seed: ModelSeed::A,
                epoch: 1,
            },
            grant: None,
            is_former: false,
        };
        Self {
            backup: garden.clone(),
            garden,
            may_restore: true,
            namespace: None,
            versions: 0,
            prepares: None,
            removal: RemovalStep::Idle,
            owner: OwnerStep::Idle,
            has_removed_control_plane: false,
        }
    }

    fn is_host(&self) -> bool {
        self.garden.now.seed == ModelSeed::B
    }

    fn is_resident(&self) -> bool {
        self.is_host() || self.garden.is_former
    }

    /// The epoch of the valid grant of seed B.
    fn granted(&self, off: Option<PreparationRule>) -> Option<i64> {
        let grant = self.garden.grant.as_ref()?;
        let mut now = self.garden.now.clone();
        if off == Some(PreparationRule::GrantOfEpoch) {
            now.epoch = grant.source.epoch;
        }
        let is_valid = grant.is_valid(&now) && grant.destination == ModelSeed::B;
        is_valid.then_some(grant.source.epoch)
    }

    fn next(&self, off: Option<PreparationRule>) -> NextStates {
        let mut all = self.after_garden();
        all.extend(self.after_preparation(off));
        all.extend(self.after_removal(off));
        all.extend(self.after_owner(off));
        all
    }

    fn with_garden(&self, change: impl FnOnce(&mut PreparationGarden)) -> Self {
        let mut after = self.clone();
        change(&mut after.garden);
        after
    }

    fn after_garden(&self) -> NextStates {
        let mut all = Vec::new();
        if self.garden.grant.is_some() {
            all.push(("withdraw", self.with_garden(|garden| garden.grant = None)));
        } else if !self.is_resident() {
            let grant = PreparationGrant {
                source: self.garden.now.clone(),
                destination: ModelSeed::B,
            };
            all.push(("grant", self.with_garden(|garden| garden.grant = Some(grant))));
        }
        for (event, seed) in [
            ("A gets the shoot", ModelSeed::A),
            ("B gets the shoot", ModelSeed::B),
            ("C gets the shoot", ModelSeed::C),
        ] {
            let is_refused = seed == self.garden.now.seed || seed == ModelSeed::B && self.garden.is_former;
            if is_refused || self.garden.now.epoch >= LAST_EPOCH {
                continue;
            }
            let after = self.with_garden(|garden| {
                garden.is_former |= garden.now.seed == ModelSeed::B;
                garden.now = SeedEpoch {
                    seed,
                    epoch: garden.now.epoch + 1,
                };
            });
            all.push((event, after));
        }
        if self.may_restore && self.backup != self.garden {
            let backup = Self {
                backup: self.garden.clone(),
                ..self.clone()
            };
            all.push(("the garden is backed up", backup));
            let restored = Self {
                garden: self.backup.clone(),
                may_restore: false,
                ..self.clone()
            };
            all.push(("the garden is restored", restored));
        }
        all
    }

    /// Writes the namespace, unless the bound of writes is reached.
    fn write(&self, mark: Option<i64>, change: impl FnOnce(&mut Self)) -> Option<Self> {
        let version = self.versions + 1;
        let mut after = self.clone();
        after.versions = version;
        after.namespace = Some(ModelNamespace {
            version,
            mark,
            has_control_plane: self
                .namespace
                .is_some_and(|namespace| namespace.has_control_plane),
        });
        change(&mut after);
        (version <= MOST_VERSIONS).then_some(after)
    }

    fn mark_of_namespace(&self) -> NamespaceMark {
        match self.namespace {
            None => NamespaceMark::Absent,
            Some(ModelNamespace {
                mark: Some(epoch), ..
            }) => NamespaceMark::PreparedIn(epoch),
            Some(_) => NamespaceMark::Unmarked,
        }
    }

    fn after_preparation(&self, off: Option<PreparationRule>) -> NextStates {
        let mut all = Vec::new();
        let Some(epoch) = self.prepares else {
            let granted = self.granted(off).filter(|_| !self.is_resident());
            if granted.is_some() {
                let prepares = granted;
                all.push((
                    "the grant is read",
                    Self {
                        prepares,
                        ..self.clone()
                    },
                ));
            }
            return all;
        };
        let ended = |after: &mut Self| after.prepares = None;
        let mut step = next_preparation_step(self.mark_of_namespace(), epoch);
        if off == Some(PreparationRule::MarkAtCreation) && step == PreparationStep::Refuse {
            step = PreparationStep::Create;
        }
        match step {
            PreparationStep::Create => {
                let created = self.write(Some(epoch), ended);
                all.extend(created.map(|after| ("the namespace is prepared", after)));
            }
            PreparationStep::Keep | PreparationStep::Wait | PreparationStep::Refuse => {
                let mut after = self.clone();
                ended(&mut after);
                all.push(("the preparation writes no namespace", after));
            }
        }
        all
    }

    fn after_removal(&self, off: Option<PreparationRule>) -> NextStates {
        let with = |removal| Self {
            removal,
            ..self.clone()
        };
        let step = match (self.removal, self.namespace) {
            (
                RemovalStep::Idle,
                Some(ModelNamespace {
                    version,
                    mark: Some(mark),
                    ..
                }),
            ) => ("the mark is read", with(RemovalStep::HasRead { version, mark })),
            (RemovalStep::Idle, _) => return Vec::new(),
            (RemovalStep::HasRead { version, mark }, _)
                if may_remove_prepared(mark, self.is_resident(), self.granted(off)) =>
            {
                (
                    "the removal is decided",
                    with(RemovalStep::HasDecided { version }),
                )
            }
            (RemovalStep::HasRead { .. }, _) => ("the namespace stays", with(RemovalStep::Idle)),
            (RemovalStep::HasDecided { version }, Some(namespace))
                if namespace.version == version || off == Some(PreparationRule::VersionTested) =>
            {
                let mut after = with(RemovalStep::Idle);
                after.namespace = None;
                after.has_removed_control_plane |= namespace.has_control_plane;
                ("the namespace is removed", after)
            }
            (RemovalStep::HasDecided { .. }, _) => ("the removal comes late", with(RemovalStep::Idle)),
        };
        vec![step]
    }

    fn after_owner(&self, off: Option<PreparationRule>) -> NextStates {
        let mut all = Vec::new();
        let with = |owner| Self {
            owner,
            ..self.clone()
        };
        let ready = |after: &mut Self| after.owner = OwnerStep::Ready;
        match (self.owner, self.namespace) {
            (OwnerStep::Idle, _) if self.is_host() => all.push(("the owner begins", with(OwnerStep::Begun))),
            (OwnerStep::Idle, _) => {}
            (OwnerStep::Begun, None) => {
                let created = self.write(None, ready);
                all.extend(created.map(|after| ("the owner creates", after)));
            }
            (OwnerStep::Begun, Some(namespace))
                if namespace.mark.is_some() && off != Some(PreparationRule::UnmarkFirst) =>
            {
                let version = namespace.version;
                all.push(("the owner reads the mark", with(OwnerStep::ReadMark { version })));
            }
            (OwnerStep::Begun, Some(_)) => all.push(("the owner goes on", with(OwnerStep::Ready))),
            (OwnerStep::ReadMark { version }, Some(namespace)) if namespace.version == version => {
                let unmarked = self.write(None, ready);
                all.extend(unmarked.map(|after| ("the owner removes the mark", after)));
            }
            (OwnerStep::ReadMark { .. }, _) | (OwnerStep::Ready, None) => {
                all.push(("the owner repeats", with(OwnerStep::Begun)));
            }
            (OwnerStep::Ready, Some(namespace)) => {
                let mut after = with(OwnerStep::Idle);
                after.namespace = Some(ModelNamespace {
                    has_control_plane: true,
                    ..namespace
                });
                all.push(("the control plane starts", after));
            }
        }
        if self.owner == OwnerStep::Begun && !self.is_host() {
            all.push(("the owner stops", with(OwnerStep::Idle)));
        }
        if self.garden.is_former && !self.is_host() && self.owner == OwnerStep::Idle {
            let mut after = self.with_garden(|garden| garden.is_former = false);
            after.namespace = None;
            all.push(("the former seed cleans up", after));
        }
        all
    }

    /// The broken invariant, if any.
    fn fault(&self, off: Option<PreparationRule>) -> Option<&'static str> {
        if self.has_removed_control_plane {
            return Some(REMOVED);
        }
        let mark = self.namespace.and_then(|namespace| namespace.mark)?;
        // The rule of the module, without a switch.
        let is_granted = self.granted(None) == Some(mark);
        let is_removed = may_remove_prepared(mark, self.is_resident(), self.granted(off));
        (!self.is_resident() && !is_granted && !is_removed).then_some(STAYS)
    }
}

/// All events, or the first fault with the shortest path.
fn explore(off: Option<PreparationRule>) -> Result<BTreeSet<&'static str>, (&'static str, String)> {
    let mut known = HashSet::new();
    let mut states: Vec<Reached> = Vec::new();
    let first = Rc::new(PreparationState::first());
    known.insert(Rc::clone(&first));
    states.push((first, None));
    let (mut events, mut number) = (BTreeSet::new(), 0);
    while number < states.len() {
        let state = Rc::clone(&states[number].0);
        if let Some(reason) = state.fault(off) {
            return Err((reason, path_to(&states, number)));
        }
        for (event, after) in state.next(off) {
            events.insert(event);
            let after = Rc::new(after);
            if known.insert(Rc::clone(&after)) {
                states.push((after, Some((number, event))));
            }
        }
        number += 1;
    }
    println!("{} states", states.len());
    Ok(events)
}

fn path_to(states: &[Reached], number: usize) -> String {
    let (mut events, mut number) = (Vec::new(), number);
    while let Some((parent, event)) = states[number].1 {
        events.push(event);
        number = parent;
    }
    let mut path = String::new();
    for (line, event) in (1..).zip(events.iter().rev()) {
        writeln!(path, "{line:4}. {event}").unwrap();
    }
    path
}

#[test]
fn no_removal_of_a_preparation_removes_a_control_plane() {
    let events = explore(None).unwrap_or_else(|(reason, path)| panic!("{reason}\n{path}"));
    // A model without an event does not test the event.
    for expected in [
        "the garden is restored",
        "the preparation writes no namespace",
        "the namespace is removed",
        "the removal comes late",
        "the owner removes the mark",
        "the control plane starts",
        "the former seed cleans up",
    ] {
        assert!(events.contains(expected), "never: {expected}");
    }
}

/// A model that cannot fail proves no property.
#[test]
fn each_rule_of_a_preparation_is_needed() {
    for (rule, expected) in [
        (PreparationRule::MarkAtCreation, REMOVED),
        (PreparationRule::UnmarkFirst, REMOVED),
        (PreparationRule::VersionTested, REMOVED),
        (PreparationRule::GrantOfEpoch, STAYS),
    ] {
        let Err((reason, path)) = explore(Some(rule)) else {
            panic!("{rule:?}: nothing breaks");
        };
        println!("without {rule:?}: {reason}\n{path}");
        assert_eq!(reason, expected, "{rule:?}");
    }
}
