#![allow(clippy::unwrap_used)]
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// `replicas/staying/available`, and `-terminating`.
fn parse_counts(text: &str) -> MachineCounts {
    let (text, terminating) = text.split_once('-').unwrap_or((text, "0"));
    let numbers: Vec<usize> = text.split('/').map(|n| n.parse().unwrap()).collect();
    MachineCounts {
        replicas: numbers[0],
        staying: numbers[1],
        available: numbers[2],
        terminating: terminating.parse().unwrap(),
    }
}

fn wanted(replicas: usize, surge: usize, unavailable: usize) -> RolloutSpec {
    RolloutSpec {
        replicas,
        surge,
        unavailable,
        strategy: RolloutStrategy::Rolling,
    }
}

fn format_step(wanted: &RolloutSpec, old: &str, new: &str) -> String {
    let old: Vec<_> = old.split_whitespace().map(parse_counts).collect();
    let new = (!new.is_empty()).then(|| parse_counts(new));
    let (old, new) = next_replicas(wanted, &old, new.as_ref());
    let old: Vec<_> = old.iter().map(ToString::to_string).collect();
    format!(
        "{} > {}",
        old.join(" "),
        new.map_or("-".into(), |n| n.to_string())
    )
}

#[rstest]
#[case::first_of_all(wanted(3, 1, 0), "", "0/0/0", " > 3")]
#[case::the_surge_comes_first(wanted(3, 1, 0), "3/3/3", "0/0/0", "3 > 1")]
#[case::nothing_goes_before_it_is_ready(wanted(3, 1, 0), "3/3/3", "1/1/0", "3 > 1")]
#[case::then_one_goes(wanted(3, 1, 0), "3/3/3", "1/1/1", "2 > 1")]
#[case::one_that_goes_takes_its_place_still(wanted(3, 1, 0), "2/2/2-1", "1/1/1", "2 > 1")]
#[case::one_that_is_not_deleted_yet_too(wanted(3, 1, 0), "2/3/3", "1/1/1", "2 > 1")]
#[case::when_it_is_gone_the_next_comes(wanted(3, 1, 0), "2/2/2", "1/1/1", "2 > 2")]
#[case::the_last(wanted(3, 1, 0), "1/1/1", "3/3/3", "0 > 3")]
#[case::without_surge_one_goes_first(wanted(3, 0, 1), "3/3/3", "0/0/0", "2 > 0")]
#[case::and_its_place_is_not_taken_before_it_is_gone(wanted(3, 0, 1), "2/2/2-1", "0/0/0", "2 > 0")]
#[case::then_one_comes(wanted(3, 0, 1), "2/2/2", "0/0/0", "2 > 1")]
#[case::no_other_goes_before_it_is_ready(wanted(3, 0, 1), "2/2/2", "1/1/0", "2 > 1")]
#[case::both_bounds(wanted(4, 2, 1), "4/4/4", "0/0/0", "4 > 2")]
#[case::what_is_of_no_use_goes_first(wanted(3, 1, 1), "3/3/1", "1/1/1", "1 > 1")]
#[case::but_only_within_bounds(wanted(3, 1, 0), "3/3/1", "1/1/0", "3 > 1")]
#[case::of_the_oldest_set(wanted(3, 1, 0), "1/1/1 2/2/2", "1/1/1", "0 2 > 1")]
#[case::fewer_are_wanted_meanwhile(wanted(1, 1, 0), "2/2/2", "1/1/1", "0 > 1")]
#[case::fewer_than_new_ones(wanted(1, 1, 0), "1/1/1", "2/2/2", "1 > 1")]
#[case::more_are_wanted_meanwhile(wanted(5, 1, 0), "2/2/2", "1/1/1", "2 > 4")]
#[case::none_is_wanted(wanted(0, 1, 0), "2/2/2", "0/0/0", "0 > 0")]
#[case::done(wanted(3, 1, 0), "0/0/0", "3/3/3", "0 > 3")]
#[case::the_new_set_is_not_there_yet(wanted(3, 1, 0), "3/3/3", "", "3 > -")]
fn a_rolling_update_goes_step_by_step(
    #[case] wanted: RolloutSpec,
    #[case] old: &str,
    #[case] new: &str,
    #[case] expected: &str,
) {
    assert_eq!(format_step(&wanted, old, new), expected);
}

#[rstest]
#[case::all_old_ones_go("3/3/3", "0/0/0", "0 > 0")]
#[case::and_are_awaited("0/0/0-1", "0/0/0", "0 > 0")]
#[case::then_the_new_ones_come("0/0/0", "0/0/0", "0 > 3")]
#[case::old_ones_that_come_again_are_no_reason_to_delete_new_ones("1/1/1", "3/3/3", "0 > 3")]
fn recreate_has_never_both(#[case] old: &str, #[case] new: &str, #[case] expected: &str) {
    let wanted = RolloutSpec {
        strategy: RolloutStrategy::Recreate,
        ..wanted(3, 1, 1)
    };
    assert_eq!(format_step(&wanted, old, new), expected);
}

#[rstest]
#[case::nothing_is_replaced("3/3/3", "", "3 > -")]
#[case::a_surge_stays("3/3/3", "1/1/1", "3 > 1")]
#[case::more_are_wanted("1/1/1", "", "3 > -")]
#[case::more_of_the_newest("1/1/1", "1/1/1", "1 > 2")]
#[case::fewer_of_the_oldest("4/4/4", "2/2/2", "2 > 2")]
#[case::fewer("5/5/5", "", "3 > -")]
#[case::the_first("", "0/0/0", " > 3")]
#[case::no_set_yet("", "", " > -")]
fn a_pause_keeps_the_number(#[case] old: &str, #[case] new: &str, #[case] expected: &str) {
    let wanted = RolloutSpec {
        strategy: RolloutStrategy::Paused,
        ..wanted(3, 1, 0)
    };
    assert_eq!(format_step(&wanted, old, new), expected);
}

#[rstest]
#[case::default(json!({}), 10, Some((1, 1)))]
#[case::numbers(json!({"maxSurge": 2, "maxUnavailable": 0}), 10, Some((2, 0)))]
#[case::percentages(json!({"maxSurge": "25%", "maxUnavailable": "25%"}), 10, Some((3, 2)))]
#[case::both_zero(json!({"maxSurge": 0, "maxUnavailable": 0}), 10, Some((0, 1)))]
#[case::both_zero_by_rounding(json!({"maxSurge": "0%", "maxUnavailable": "5%"}), 10, Some((0, 1)))]
#[case::negative(json!({"maxSurge": -1}), 10, None)]
#[case::no_percentage(json!({"maxUnavailable": "some"}), 10, None)]
#[case::a_negative_percentage(json!({"maxUnavailable": "-5%"}), 10, None)]
fn bounds_are_numbers(
    #[case] bounds: Value,
    #[case] replicas: usize,
    #[case] expected: Option<(usize, usize)>,
) {
    let bounds = serde_json::from_value(bounds).unwrap();
    assert_eq!(resolve_bounds(&bounds, replicas).ok(), expected);
}

/// Simulates machines that come and go in an order that a generator chooses. In every order, bounds hold at
/// every moment and the update ends.
#[test]
fn bounds_hold_at_every_moment_and_it_ends() {
    for seed in 0..400_u64 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (replicas, surge) = (random.usize(1..7), random.usize(0..4));
        let unavailable = random.usize(usize::from(surge == 0)..3);
        let wanted = wanted(replicas, surge, unavailable);
        let ready = |replicas| MachineCounts {
            replicas,
            staying: replicas,
            available: replicas,
            terminating: 0,
        };
        let mut old = vec![ready(replicas / 2), ready(replicas - replicas / 2)];
        let mut new = MachineCounts::default();
        let mut rounds = 0;
        while new.available < replicas || old.iter().any(|set| set.occupied() > 0) {
            rounds += 1;
            assert!(
                rounds < 5000,
                "seed {seed}: it does not end: {old:?} {new:?} {wanted:?}"
            );
            if random.bool() {
                let (olds, replicas) = next_replicas(&wanted, &old, Some(&new));
                for (set, replicas) in old.iter_mut().zip(olds) {
                    set.replicas = replicas;
                }
                new.replicas = replicas.unwrap();
            }
            for set in old.iter_mut().chain([&mut new]) {
                match random.u8(0..4) {
                    0 if set.staying < set.replicas => set.staying += 1,
                    1 if set.staying > set.replicas => {
                        set.staying -= 1;
                        set.available = set.available.min(set.staying);
                        set.terminating += 1;
                    }
                    2 if set.terminating > 0 => set.terminating -= 1,
                    3 if set.available < set.staying => set.available += 1,
                    _ => {}
                }
            }
            let all = |of: fn(&MachineCounts) -> usize| old.iter().chain([&new]).map(of).sum::<usize>();
            let there = all(|set| set.staying + set.terminating);
            assert!(there <= replicas + surge, "seed {seed}: {there} of {wanted:?}");
            let available = all(|set| set.available);
            assert!(
                available + unavailable >= replicas,
                "seed {seed}: {available} of {wanted:?}"
            );
        }
    }
}
