//! Dry runs without an answer.

use super::*;

fn without_answer(shoot: &str) -> ShootOutcome {
    ShootOutcome {
        namespace: "garden-dev".to_owned(),
        shoot: shoot.to_owned(),
        seed: Some("b".to_owned()),
        result: MoveResult::LeftOut,
        message: format!("{shoot}: the garden has not answered yet"),
    }
}

#[test]
fn a_drain_fails_only_if_no_shoot_got_an_answer() {
    let both = ["one", "two"].map(without_answer);
    let failure = check_answers(&both, false)
        .err()
        .map(|failure| failure.to_string());
    assert_eq!(
        failure.as_deref(),
        Some("no dry run of 2 was answered; one: the garden has not answered yet")
    );
    assert_eq!(check_answers(&both, true), Ok(()));
    assert_eq!(check_answers(&[], false), Ok(()));
}

#[test]
fn a_garden_that_answers_nothing_does_not_hold_the_command_up() {
    let answers = Answers::default();
    assert_eq!(answers.bound(), ANSWERED_WITHIN);
    answers.unanswered.set(DRY_RUNS);
    assert_eq!(answers.bound(), FURTHER_ANSWERED_WITHIN);
    // Shoots of a hostile project that come first.
    answers.is_any_answered.set(true);
    assert_eq!(answers.bound(), ANSWERED_WITHIN);
}
