//! The order of takeovers of all shoots of a dead seed: pure.

use std::{cmp::Reverse, collections::BTreeSet};

use api::gardencore::{Shoot, shoot::ShootPurpose};
use kube::ResourceExt;

/// First a shoot of little importance as a trial, as the trial shows obstacles that all shoots share. Then
/// the most important shoots. `shoot_in` gives the Shoot of an item.
pub(super) fn order<T>(mut items: Vec<T>, shoot_in: impl Fn(&T) -> &Shoot) -> Vec<T> {
    items.sort_by_key(|item| {
        let shoot = shoot_in(item);
        let importance = importance(shoot.spec.purpose);
        (Reverse(importance), shoot.namespace(), shoot.name_any())
    });
    if let Some(trial) = items.pop() {
        items.insert(0, trial);
    }
    items
}

/// The number of projects with a failed trial before the rest of the shoots is given up. A tenant can
/// make the trial of the own project fail, and must not stop the takeover of the remaining shoots.
pub(crate) const FAILED_PROJECTS: usize = 2;

/// The index of the next trial: the first item of the order, then the least important shoots of further
/// projects. `failed`: the namespaces of former trials. `slow`: the namespaces of trials that take long.
/// `None` where the rest is given up, or where no further project is left.
pub(super) fn next_trial<T>(
    ordered: &[T],
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
        .filter(|_| failed.len() < FAILED_PROJECTS)
}

/// The index of the next shoot after the trials, or of a drain. Shoots of a failing project come last. While
/// shoots of a second project wait, a project holds at most half of the lanes. Of equal projects, slow
/// projects come last. `failing`: namespaces of shoots with a takeover that has failed or stalls. `slow`:
/// namespaces of shoots with an operation that takes long. `lanes`: the namespace of each shoot that holds a
/// lane.
pub(crate) fn next_of_rest<T>(
    waiting: &[T],
    failing: &BTreeSet<String>,
    slow: &BTreeSet<String>,
    lanes: &[String],
    parallel: usize,
    shoot_in: impl Fn(&T) -> &Shoot,
) -> Option<usize> {
    let share = (parallel / 2).max(1);
    let rank = |item: &T| {
        let namespace = shoot_in(item).namespace().unwrap_or_default();
        let held = lanes.iter().filter(|lane| **lane == namespace).count();
        (
            failing.contains(&namespace),
            held >= share,
            slow.contains(&namespace),
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Shoots `NAMESPACE NAME`.
    fn shoots_named<const N: usize>(names: [&str; N]) -> [Shoot; N] {
        names.map(|shoot| {
            let (namespace, name) = shoot.split_once(' ').unwrap();
            let yaml = format!(
                "metadata: {{name: {name}, namespace: {namespace}}}\nspec: {{region: r, provider: {{type: t}}}}\n"
            );
            serde_yaml_ng::from_str(&yaml).unwrap()
        })
    }

    #[test]
    fn a_failing_project_comes_last_and_no_project_has_all_lanes() {
        let shoots = shoots_named(["x a", "x b", "y c", "x d"]);
        let next = |failing: &[&str], lanes: &[&str], parallel: usize, count: usize| {
            let failing = failing.iter().map(|&name| name.to_owned()).collect();
            let lanes: Vec<String> = lanes.iter().map(|&name| name.to_owned()).collect();
            let none = BTreeSet::new();
            next_of_rest(&shoots[..count], &failing, &none, &lanes, parallel, |shoot| shoot)
        };
        assert_eq!(next(&[], &[], 1, 4), Some(0));
        assert_eq!(next(&[], &["x"], 4, 4), Some(0));
        // Half of the lanes.
        assert_eq!(next(&[], &["x", "x"], 4, 4), Some(2));
        // No shoot of a second project waits.
        assert_eq!(next(&[], &["x", "x"], 4, 2), Some(0));
        // A failing project has lanes once no further project waits.
        assert_eq!(next(&["x"], &[], 4, 4), Some(2));
        assert_eq!(next(&["x"], &["y", "y"], 4, 4), Some(2));
        assert_eq!(next(&["x"], &[], 4, 2), Some(0));
        assert_eq!(next(&[], &[], 4, 0), None);
    }

    #[test]
    fn a_second_project_has_a_trial_and_then_the_rest_is_given_up() {
        let shoots = shoots_named(["x a", "x b", "y c", "z d"]);
        let next = |failed: &[&str], count: usize| {
            let failed = failed.iter().map(|&name| name.to_owned()).collect();
            next_trial(&shoots[..count], &failed, &BTreeSet::new(), |shoot| shoot)
        };
        assert_eq!(next(&[], 4), Some(0));
        assert_eq!(next(&[], 0), None);
        assert_eq!(next(&["x"], 4), Some(3));
        assert_eq!(next(&["x"], 3), Some(2));
        assert_eq!(next(&["x"], 2), None);
        assert_eq!(next(&["x", "z"], 4), None);
    }

    #[test]
    fn a_slow_trial_is_followed_by_further_projects_and_counts_as_no_failure() {
        let shoots = shoots_named(["x a", "x b", "y c", "z d"]);
        let set =
            |names: &[&str]| -> BTreeSet<String> { names.iter().map(|&name| name.to_owned()).collect() };
        let next =
            |failed: &[&str], slow: &[&str]| next_trial(&shoots, &set(failed), &set(slow), |shoot| shoot);
        assert_eq!(next(&[], &["x"]), Some(3));
        assert_eq!(next(&[], &["x", "z"]), Some(2));
        assert_eq!(next(&["z"], &["x"]), Some(2));
        assert_eq!(next(&["z", "y"], &["x"]), None);
        assert_eq!(next(&[], &["x", "y", "z"]), None);
    }

    #[test]
    fn a_slow_project_comes_last_among_equal_projects() {
        let shoots = shoots_named(["x a", "y b"]);
        let set =
            |names: &[&str]| -> BTreeSet<String> { names.iter().map(|&name| name.to_owned()).collect() };
        let next = |failing: &[&str], slow: &[&str], lanes: &[&str]| {
            let lanes: Vec<String> = lanes.iter().map(|&name| name.to_owned()).collect();
            next_of_rest(&shoots, &set(failing), &set(slow), &lanes, 4, |shoot| shoot)
        };
        assert_eq!(next(&[], &[], &[]), Some(0));
        assert_eq!(next(&[], &["x"], &[]), Some(1));
        // A failing project comes after a slow project.
        assert_eq!(next(&["y"], &["x"], &[]), Some(0));
        // The second project holds half of the lanes.
        assert_eq!(next(&[], &["x"], &["y", "y"]), Some(0));
    }

    #[test]
    fn an_unimportant_shoot_is_the_trial_and_important_shoots_follow() {
        let shoots = [
            "a development",
            "b production",
            "c testing",
            "d infrastructure",
            "e production",
        ];
        let shoots = shoots.map(|shoot| -> Shoot {
            let (name, purpose) = shoot.split_once(' ').unwrap();
            let yaml = format!(
                "metadata: {{name: {name}}}\nspec: {{region: r, provider: {{type: t}}, purpose: {purpose}}}\n"
            );
            serde_yaml_ng::from_str(&yaml).unwrap()
        });
        let ordered = order(Vec::from(shoots), |shoot| shoot);
        let names: Vec<String> = ordered.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, ["c", "d", "b", "e", "a"]);
    }
}
