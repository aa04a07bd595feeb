#![allow(clippy::unwrap_used)]
use rstest::rstest;
use serde_json::json;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn configuration() -> MachineConfiguration {
    MachineConfiguration {
        creation: 20 * MINUTE,
        health: Some(10 * MINUTE),
        drain: MINUTE,
        conditions: vec!["KernelDeadlock".into()],
        is_zone_budget_spent: false,
    }
}

fn node(conditions: &[(&str, &str)]) -> Node {
    let conditions: Vec<_> = conditions
        .iter()
        .map(|(type_, status)| json!({"type": type_, "status": status, "message": "so"}))
        .collect();
    serde_json::from_value(json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}})).unwrap()
}

/// In short: `+` a phase, `!` expired, `?` waits, `=` stays.
fn format_verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Stays => "=".into(),
        Verdict::Waits(_) => "?".into(),
        Verdict::BecomesPhase(phase, _) => format!("+{}", phase.as_str()),
        Verdict::Expired(_) => "!".into(),
    }
}

#[rstest]
#[case::joined(Some(Phase::Pending), 1, Some(&[("Ready", "True")][..]), "+Running")]
#[case::no_node_yet(Some(Phase::Pending), 19, None, "?")]
#[case::never_joined(Some(Phase::Pending), 20, None, "!")]
#[case::joined_but_not_ready(Some(Phase::Pending), 20, Some(&[("Ready", "False")][..]), "!")]
#[case::refused_and_there_after_all(Some(Phase::CrashLoopBackOff), 1, Some(&[("Ready", "True")][..]), "+Running")]
#[case::well(Some(Phase::Running), 500, Some(&[("Ready", "True"), ("KernelDeadlock", "False")][..]), "=")]
#[case::a_condition_nobody_named(Some(Phase::Running), 1, Some(&[("Ready", "True"), ("Odd", "True")][..]), "=")]
#[case::a_named_condition(Some(Phase::Running), 1, Some(&[("Ready", "True"), ("KernelDeadlock", "True")][..]), "+Unknown")]
#[case::a_named_condition_unknown(Some(Phase::Running), 1, Some(&[("Ready", "True"), ("KernelDeadlock", "Unknown")][..]), "+Unknown")]
#[case::silent_kubelet(Some(Phase::Running), 1, Some(&[("Ready", "Unknown")][..]), "+Unknown")]
#[case::nothing_told(Some(Phase::Running), 1, Some(&[][..]), "+Unknown")]
#[case::node_went_away(Some(Phase::Running), 1, None, "+Unknown")]
#[case::unhealthy_for_a_while(Some(Phase::Unknown), 9, Some(&[("Ready", "False")][..]), "?")]
#[case::unhealthy_for_too_long(Some(Phase::Unknown), 10, Some(&[("Ready", "False")][..]), "!")]
#[case::well_again_at_the_last_moment(Some(Phase::Unknown), 11, Some(&[("Ready", "True")][..]), "+Running")]
#[case::failed_stays_so(Some(Phase::Failed), 11, Some(&[("Ready", "True")][..]), "=")]
#[case::restored(None, 1000, Some(&[("Ready", "True")][..]), "+Running")]
#[case::restored_and_silent_meanwhile(None, 1000, Some(&[("Ready", "Unknown")][..]), "+Unknown")]
#[case::restored_without_its_node(None, 1000, None, "+Pending")]
fn a_machine_is_as_its_node_is(
    #[case] phase: Option<Phase>,
    #[case] minutes: u32,
    #[case] conditions: Option<&[(&str, &str)]>,
    #[case] expected: &str,
) {
    let node = conditions.map(node);
    let known = HealthInputs {
        phase,
        phase_age: minutes * MINUTE,
        node: node.as_ref(),
    };
    assert_eq!(format_verdict(&judge_health(&known, &configuration())), expected);
}

#[test]
fn a_node_on_which_pods_cannot_run_yet_has_not_come_yet_but_is_no_reason_to_doubt_a_running_one() {
    let mut node = node(&[("Ready", "True")]);
    node.spec = serde_json::from_value(
        json!({"taints": [{"key": crate::constants::COMPONENTS_NOT_READY, "effect": "NoSchedule"}]}),
    )
    .unwrap();
    for (phase, minutes, expected) in [
        (Some(Phase::Pending), 1, "?"),
        (Some(Phase::Pending), 20, "!"),
        (Some(Phase::Running), 20, "="),
        (None, 20, "+Running"),
    ] {
        let known = HealthInputs {
            phase,
            phase_age: minutes * MINUTE,
            node: Some(&node),
        };
        assert_eq!(
            format_verdict(&judge_health(&known, &configuration())),
            expected,
            "{phase:?}"
        );
    }
}

#[test]
fn without_a_bound_it_may_be_unhealthy_for_ever() {
    let configuration = MachineConfiguration {
        health: None,
        ..configuration()
    };
    let known = HealthInputs {
        phase: Some(Phase::Unknown),
        phase_age: 9999 * MINUTE,
        node: None,
    };
    assert_eq!(format_verdict(&judge_health(&known, &configuration)), "?");
}
