//! The order of shoots, with failing, slow and hostile projects.

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

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The next shoot after the trials. `failing`, `slow` and `proven`: namespaces of each state.
fn next_after_trials(
    shoots: &[Shoot],
    [failing, slow, proven]: [&[&str]; 3],
    held: &[&str],
    parallel: usize,
) -> Option<usize> {
    let held: Vec<String> = held.iter().map(|&name| name.to_owned()).collect();
    let (failing, slow, proven) = (set(failing), set(slow), set(proven));
    let projects = ProjectStates {
        failing: &failing,
        slow: &slow,
        proven: &proven,
        held: &held,
    };
    next_of_rest(shoots, projects, parallel, |shoot| shoot)
}

#[test]
fn a_failing_project_comes_last_and_no_project_has_all_lanes() {
    let shoots = shoots_named(["x a", "x b", "y c", "x d"]);
    let next = |failing: &[&str], held: &[&str], parallel: usize, count: usize| {
        next_after_trials(&shoots[..count], [failing, &[], &["x", "y"]], held, parallel)
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

/// Security: otherwise two hostile projects hold all lanes for the time of a lane.
#[test]
fn a_project_without_an_arrival_holds_a_single_lane_while_a_second_project_waits() {
    let shoots = shoots_named(["evil a", "evil b", "foul c", "good d", "good e"]);
    let next = |slow: &[&str], proven: &[&str], held: &[&str], count: usize| {
        next_after_trials(&shoots[..count], [&[], slow, proven], held, 10)
    };
    assert_eq!(next(&[], &["good"], &[], 5), Some(0));
    assert_eq!(next(&[], &["good"], &["evil"], 5), Some(2));
    assert_eq!(
        next(&[], &["good"], &["evil", "foul", "good", "good"], 5),
        Some(3)
    );
    // All projects hold a lane, and none has an arrival.
    assert_eq!(next(&[], &[], &["evil", "foul", "good"], 5), Some(0));
    // No second project waits.
    assert_eq!(next(&[], &["good"], &["evil"], 2), Some(0));
    // A slow project comes after a project with a lane and without an arrival.
    assert_eq!(next(&["evil", "foul"], &[], &["good"], 5), Some(3));
}

/// Security: otherwise a member with two projects stops the takeover of a seed.
#[test]
fn a_third_of_the_shoots_may_fail_as_trials_within_two_bounds() {
    for (shoots, limit) in [(0, 2), (1, 2), (8, 2), (9, 3), (29, 9), (30, 10), (1000, 10)] {
        assert_eq!(failed_trials_limit(shoots), limit, "{shoots}");
    }
}

#[test]
fn further_projects_have_trials_up_to_the_limit_and_then_the_rest_is_given_up() {
    let shoots = shoots_named(["x a", "x b", "y c", "z d"]);
    let next = |failed: &[&str], limit: usize, count: usize| {
        next_trial(&shoots[..count], limit, &set(failed), &BTreeSet::new(), |shoot| {
            shoot
        })
    };
    assert_eq!(next(&[], 2, 4), Some(0));
    assert_eq!(next(&[], 2, 0), None);
    assert_eq!(next(&["x"], 2, 4), Some(3));
    assert_eq!(next(&["x"], 2, 3), Some(2));
    assert_eq!(next(&["x"], 2, 2), None);
    assert_eq!(next(&["x", "z"], 2, 4), None);
    assert_eq!(next(&["x", "z"], 3, 4), Some(2));
    assert_eq!(next(&["x", "y", "z"], 3, 4), None);
}

#[test]
fn a_slow_trial_is_followed_by_further_projects_and_counts_as_no_failure() {
    let shoots = shoots_named(["x a", "x b", "y c", "z d"]);
    let next =
        |failed: &[&str], slow: &[&str]| next_trial(&shoots, 2, &set(failed), &set(slow), |shoot| shoot);
    assert_eq!(next(&[], &["x"]), Some(3));
    assert_eq!(next(&[], &["x", "z"]), Some(2));
    assert_eq!(next(&["z"], &["x"]), Some(2));
    assert_eq!(next(&["z", "y"], &["x"]), None);
    assert_eq!(next(&[], &["x", "y", "z"]), None);
}

#[test]
fn a_slow_project_comes_last_among_equal_projects() {
    let shoots = shoots_named(["x a", "y b"]);
    let next = |failing: &[&str], slow: &[&str], held: &[&str]| {
        next_after_trials(&shoots, [failing, slow, &["x", "y"]], held, 4)
    };
    assert_eq!(next(&[], &[], &[]), Some(0));
    assert_eq!(next(&[], &["x"], &[]), Some(1));
    // A failing project comes after a slow project.
    assert_eq!(next(&["y"], &["x"], &[]), Some(0));
    // The second project holds half of the lanes.
    assert_eq!(next(&[], &["x"], &["y", "y"]), Some(0));
}

/// Names of Shoots `NAMESPACE NAME PURPOSE` in the order of a takeover.
fn ordered_names<const N: usize>(shoots: [&str; N]) -> Vec<String> {
    let shoots = shoots.map(|shoot| -> Shoot {
        let words: Vec<&str> = shoot.split(' ').collect();
        let yaml = format!(
            "metadata: {{namespace: {}, name: {}}}\nspec: {{region: r, provider: {{type: t}}, purpose: {}}}\n",
            words[0], words[1], words[2]
        );
        serde_yaml_ng::from_str(&yaml).unwrap()
    });
    let ordered = order(Vec::from(shoots), |shoot| shoot);
    ordered.iter().map(ResourceExt::name_any).collect()
}

#[test]
fn an_unimportant_shoot_is_the_trial_and_important_shoots_follow() {
    let names = ordered_names([
        "x a development",
        "x b production",
        "x c testing",
        "x d infrastructure",
        "x e production",
    ]);
    assert_eq!(names, ["c", "d", "b", "e", "a"]);
}

/// Security: otherwise the shoots of a project with an early name come first.
#[test]
fn projects_take_turns_within_an_importance_of_a_takeover() {
    let names = ordered_names([
        "evil a production",
        "evil b production",
        "evil c production",
        "good d production",
        "good e production",
        "good f testing",
    ]);
    assert_eq!(names, ["f", "a", "d", "b", "e", "c"]);
}
