//! The text of a plan, and the expected duration.

use super::*;
use crate::drain::outcome::MoveResult;

fn plan(former_moves: Option<FormerMoves>) -> DrainPlan {
    let to = ["b".to_owned()];
    let request = DrainRequest {
        from: "a",
        to: &to,
        parallel: 2,
        excluded: &[],
        approval: None,
        lane_within: std::time::Duration::ZERO,
        slot_within: std::time::Duration::ZERO,
        within: std::time::Duration::ZERO,
    };
    let planned = |shoot: &str, is_under_way: bool| PlannedMove {
        namespace: "garden-dev".to_owned(),
        shoot: shoot.to_owned(),
        seed: "b".to_owned(),
        is_under_way,
    };
    let moves = vec![
        planned("one", true),
        planned("two", false),
        planned("three", false),
    ];
    let left_out = vec![ShootOutcome {
        namespace: "garden-dev".to_owned(),
        shoot: "four".to_owned(),
        seed: Some("b".to_owned()),
        result: MoveResult::LeftOut,
        message: "DestinationSeedFull: full".to_owned(),
    }];
    DrainPlan::new(request, moves, left_out, former_moves)
}

#[test]
fn a_plan_shows_moves_and_the_expected_duration() {
    let former = FormerMoves {
        median_seconds: 90,
        count: 4,
    };
    assert_eq!(
        plan(Some(former)).render(),
        "Drain of seed a: 3 shoots to move, 1 left out\n\
         garden-dev/one     is on the way to seed b\n\
         garden-dev/two     moves to seed b\n\
         garden-dev/three   moves to seed b\n\
         garden-dev/four    left out: DestinationSeedFull: full\n\
         expected duration: 3m, with 2 at a time and 90s (median of 4 former moves) for each\n"
    );
    let unknown = plan(None);
    assert_eq!(unknown.expected_seconds, None);
    assert!(unknown.render().contains("expected duration: unknown"));
}

#[test]
fn moves_side_by_side_take_one_round() {
    for (moves, parallel, seconds) in [(0, 2, 0), (1, 2, 60), (2, 2, 60), (5, 2, 180), (3, 0, 180)] {
        assert_eq!(
            expected_seconds(moves, parallel, 60),
            seconds,
            "{moves} {parallel}"
        );
    }
}
