//! The order of the shoots, and dry runs without an answer.

#![allow(clippy::unwrap_used)]

use kube::ResourceExt;

use super::*;

/// Security: otherwise the shoots of a project with an early name come first.
#[test]
fn projects_take_turns_within_an_importance() {
    let shoots = [
        "a 1 testing",
        "a 2 testing",
        "b 3 testing",
        "a 4 production",
        "b 5 evaluation",
    ];
    let shoots = shoots.map(|shoot| -> Shoot {
        let words: Vec<&str> = shoot.split(' ').collect();
        let yaml = format!(
            "metadata: {{namespace: {}, name: '{}'}}\nspec: {{region: r, provider: {{type: t}}, purpose: {}}}\n",
            words[0], words[1], words[2]
        );
        serde_yaml_ng::from_str(&yaml).unwrap()
    });
    let ordered = order(Vec::from(shoots));
    let names: Vec<String> = ordered.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["1", "3", "2", "5", "4"]);
}

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
