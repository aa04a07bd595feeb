//! The sentences about trials.

#![allow(clippy::unwrap_used)]

use super::*;

/// Otherwise the user waits for a trial that never begins.
#[test]
fn a_trial_without_success_names_a_next_trial_only_where_a_further_project_waits() {
    let shoots = ["x", "y"].map(|namespace| -> Shoot {
        let yaml = format!(
            "metadata: {{name: demo, namespace: {namespace}}}\nspec: {{region: r, provider: {{type: t}}}}\n"
        );
        serde_yaml_ng::from_str(&yaml).unwrap()
    });
    let set = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|&name| name.to_owned()).collect() };
    let step = |count: usize, limit: usize, failing: &[&str], slow: &[&str]| {
        step_of_trials(&shoots[..count], limit, &set(failing), &set(slow), |shoot| shoot)
    };
    let of_different_project = "a shoot of a different project is the next trial";
    for (step, after_delay, after_end) in [
        (
            step(2, 2, &[], &["x"]),
            of_different_project,
            of_different_project,
        ),
        (
            step(2, 2, &["x"], &[]),
            of_different_project,
            of_different_project,
        ),
        // No shoot of a further project waits.
        (
            step(1, 2, &[], &["x"]),
            "the rest waits for the trials",
            "no further trial",
        ),
        (
            step(1, 2, &["x"], &[]),
            "the rest waits for the trials",
            "no further trial",
        ),
        // Two projects have failed.
        (
            step(2, 2, &["x", "z"], &[]),
            "the rest waits for the trials",
            "no further trial",
        ),
        (
            step(2, 3, &["x", "z"], &[]),
            of_different_project,
            of_different_project,
        ),
        (NextStep::Rest, "the next shoots do not wait", "come last"),
    ] {
        for delay in [Delay::Stalls, Delay::IsSlow] {
            let sentence = describe_delay(delay, step);
            assert!(sentence.contains(after_delay), "{sentence}");
        }
        let sentence = describe_failure(step);
        assert!(sentence.contains(after_end), "{sentence}");
    }
}
