//! The order of takeovers of all shoots of a dead seed, and of the moves of a drain: pure.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    hash::Hash,
};

use api::gardencore::{Shoot, shoot::ShootPurpose};
use kube::ResourceExt;

/// The fewest projects that may have a failed trial. A tenant can make the trial of the own project fail, and
/// must not stop the takeover of the remaining shoots.
const FEWEST_FAILED_TRIALS: usize = 2;
/// The most projects that may have a failed trial. A fault that all shoots share fails no more shoots.
const MOST_FAILED_TRIALS: usize = 10;
/// A single shoot of this number may fail as a trial.
const SHOOTS_PER_FAILED_TRIAL: usize = 3;

/// The states of the projects, for the choice of the next shoot. Each set has namespaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProjectStates<'a> {
    /// Projects with an operation that has failed or stalls.
    pub(crate) failing: &'a BTreeSet<String>,
    /// Projects with an operation that takes long.
    pub(crate) slow: &'a BTreeSet<String>,
    /// Projects with a shoot that has arrived.
    pub(crate) proven: &'a BTreeSet<String>,
    /// The namespace of each shoot that holds a lane.
    pub(crate) held: &'a [String],
}

/// First a shoot of little importance as a trial, as the trial shows obstacles that all shoots share. Then
/// the most important shoots, by turns of the projects within an importance.
pub(super) fn order<T>(items: Vec<T>, shoot_in: impl Fn(&T) -> &Shoot) -> Vec<T> {
    let rank = |shoot: &Shoot| Reverse(importance(shoot.spec.purpose));
    let mut ordered = order_by_turns(items, rank, shoot_in);
    if let Some(trial) = ordered.pop() {
        ordered.insert(0, trial);
    }
    ordered
}

/// Sorts the items by a rank. Within a rank the projects take turns: otherwise the shoots of a project with
/// an early name come first. `shoot_in` gives the Shoot of an item.
pub(crate) fn order_by_turns<T, R: Copy + Ord + Hash>(
    mut items: Vec<T>,
    rank_of: impl Fn(&Shoot) -> R,
    shoot_in: impl Fn(&T) -> &Shoot,
) -> Vec<T> {
    items.sort_by_key(|item| {
        let shoot = shoot_in(item);
        (shoot.namespace(), shoot.name_any())
    });
    let mut turns = HashMap::<(R, Option<String>), usize>::new();
    let ranked = items.into_iter().map(|item| {
        let shoot = shoot_in(&item);
        let rank = rank_of(shoot);
        let turn = turns.entry((rank, shoot.namespace())).or_default();
        *turn += 1;
        ((rank, *turn), item)
    });
    let mut ranked: Vec<((R, usize), T)> = ranked.collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, item)| item).collect()
}

/// The number of projects with a failed trial before the rest of the shoots is given up: a third of the
/// shoots, within the two bounds. A tenant with two projects stops the takeover of a small seed alone.
pub(super) fn failed_trials_limit(shoots: usize) -> usize {
    (shoots / SHOOTS_PER_FAILED_TRIAL).clamp(FEWEST_FAILED_TRIALS, MOST_FAILED_TRIALS)
}

/// The index of the next trial: the first item of the order, then the least important shoots of further
/// projects. `limit`: see [`failed_trials_limit`]. `failed`: the namespaces of former trials. `slow`: the
/// namespaces of trials that take long. `None` where the rest is given up, or where no further project is
/// left.
pub(super) fn next_trial<T>(
    ordered: &[T],
    limit: usize,
    failed: &BTreeSet<String>,
    slow: &BTreeSet<String>,
    shoot_in: impl Fn(&T) -> &Shoot,
) -> Option<usize> {
    if failed.is_empty() && slow.is_empty() {
        return (!ordered.is_empty()).then_some(0);
    }
    let is_of_further_project = |item: &T| {
        let namespace = shoot_in(item).namespace().unwrap_or_default();
        !failed.contains(&namespace) && !slow.contains(&namespace)
    };
    // A slow trial shows no fault that all shoots share.
    ordered
        .iter()
        .rposition(is_of_further_project)
        .filter(|_| failed.len() < limit)
}

/// The index of the next shoot after the trials, or of a drain. Shoots of a failing project come last. While
/// shoots of a second project wait, a project holds at most half of the lanes, and a single lane until a
/// shoot of the project has arrived. Of projects below the half, slow projects come last.
pub(crate) fn next_of_rest<T>(
    waiting: &[T],
    projects: ProjectStates<'_>,
    parallel: usize,
    shoot_in: impl Fn(&T) -> &Shoot,
) -> Option<usize> {
    let share = (parallel / 2).max(1);
    let rank = |item: &T| {
        let namespace = shoot_in(item).namespace().unwrap_or_default();
        let held = projects.held.iter().filter(|lane| **lane == namespace).count();
        (
            projects.failing.contains(&namespace),
            held >= share,
            projects.slow.contains(&namespace),
            held > 0 && !projects.proven.contains(&namespace),
        )
    };
    // The first of equal items.
    let ranks = waiting.iter().map(rank).enumerate();
    ranks.min_by_key(|(_, rank)| *rank).map(|(index, _)| index)
}

/// The higher number, the more important.
pub(crate) fn importance(purpose: Option<ShootPurpose>) -> u8 {
    match purpose {
        Some(ShootPurpose::Infrastructure) => 4,
        Some(ShootPurpose::Production) => 3,
        None => 2,
        Some(ShootPurpose::Development) => 1,
        Some(ShootPurpose::Testing | ShootPurpose::Evaluation) => 0,
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
