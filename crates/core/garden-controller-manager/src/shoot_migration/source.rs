//! Reports of the source seed about obstacles that would stop a planned move half-way. Pure.
//!
//! The garden sees neither the seed nor the shoot, so that the source's gardenlet reports in time, as
//! constraints of the Shoot. A takeover ignores these reports, as the shoot would be lost without the
//! takeover.

use api::{
    constants::condition::{
        HIBERNATION_POSSIBLE, SHOOT_STATE_COMPLETE, SHOOT_STATE_UP_TO_DATE, WEBHOOKS_ON_LEASES,
    },
    gardencore::Shoot,
    meta::{Condition, ConditionStatus},
};
use placement::{Journey, journey};

use super::{
    force,
    preflight::{Verdict, wanted_move},
};

/// Constraints of the source, each with the reason of the refusal, in the order in which users fix them.
const OBSTACLES: [(&str, &str); 3] = [
    (SHOOT_STATE_COMPLETE, "SourceStateLeftOut"),
    (SHOOT_STATE_UP_TO_DATE, "SourceStateNotUpToDate"),
    (HIBERNATION_POSSIBLE, WEBHOOKS_ON_LEASES),
];

/// The verdict on a move that would begin now, where the source reports an obstacle. A move that has begun
/// continues: the flow reports the errors of each step.
pub(super) fn with_reports(shoot: &Shoot, mut verdict: Verdict) -> Verdict {
    let Some((source, _)) = wanted_move(shoot) else {
        return verdict;
    };
    if !verdict.ready || journey(shoot) != Journey::Settled {
        return verdict;
    }
    let reports = OBSTACLES
        .iter()
        .filter_map(|(type_, reason)| Some((reported(shoot, type_)?, *reason)));
    let is_webhook = stops_leader_election(shoot);
    let is_forced = force::overrides(shoot);
    let found = reports
        .into_iter()
        .find(|(report, _)| report.type_ != HIBERNATION_POSSIBLE || is_webhook && !is_forced);
    if let Some((report, reason)) = found {
        let (type_, message) = (&report.type_, with_stop(&report.message));
        // Only users of the shoot can fix a webhook, so that the operator of a seed can override the hold.
        let forced = if reason == WEBHOOKS_ON_LEASES {
            format!(", or {}", force::remedy())
        } else {
            String::new()
        };
        return Verdict {
            ready: false,
            reason,
            message: format!(
                "Seed {source} reports {type_}=False: {message} The move begins once this is fixed, or set spec.seedName back to {source}{forced}."
            ),
        };
    }
    // Such a webhook only delays the start until the tunnel is up. Only users of the shoot can fix the
    // webhook, so that a refusal would keep an operator from emptying a seed.
    if let Some(report) = reported(shoot, HIBERNATION_POSSIBLE).filter(|_| !placement::is_asleep(shoot)) {
        verdict.message = format!("{} {}", verdict.message, with_stop(&report.message));
        if is_webhook {
            return force::pass(verdict, WEBHOOKS_ON_LEASES);
        }
    }
    verdict
}

/// Whether the source reports a webhook that would stop leader election during a move. A webhook in a shoot
/// that sleeps is not called during the move: no API server starts.
pub(super) fn stops_leader_election(shoot: &Shoot) -> bool {
    reported(shoot, HIBERNATION_POSSIBLE).is_some_and(|report| report.reason == WEBHOOKS_ON_LEASES)
        && !placement::is_asleep(shoot)
}

/// The constraint of this type, if it is `False`.
fn reported<'a>(shoot: &'a Shoot, type_: &str) -> Option<&'a Condition> {
    let found = shoot.status.as_ref()?.constraint(type_);
    found.filter(|found| found.status == ConditionStatus::False)
}

fn with_stop(message: &str) -> String {
    format!("{}.", message.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(constraints: &[(&str, &str, &str)], more: &Value) -> Shoot {
        let time = "2026-01-01T00:00:00Z";
        let constraints: Vec<Value> = constraints
            .iter()
            .map(|(type_, status, reason)| {
                json!({"type": type_, "status": status, "reason": reason, "message": "It is so",
                    "lastTransitionTime": time, "lastUpdateTime": time})
            })
            .collect();
        let mut status = json!({"seedName": "a", "constraints": constraints, "lastOperation": {"type": "Reconcile",
            "state": "Succeeded", "progress": 100, "description": "", "lastUpdateTime": time}});
        for (key, value) in more.as_object().into_iter().flatten() {
            status[key] = value.clone();
        }
        serde_json::from_value(
            json!({"metadata": {"name": "web"}, "status": status, "spec": {"seedName": "b",
            "region": "r", "provider": {"type": "local"}, "kubernetes": {}}}),
        )
        .unwrap()
    }

    fn judged(shoot: &Shoot) -> Verdict {
        let ready = Verdict {
            ready: true,
            reason: "DestinationSeedReady",
            message: String::new(),
        };
        with_reports(shoot, ready)
    }

    #[test]
    fn what_would_stop_a_move_half_way_refuses_it() {
        for (type_, reported, reason) in [
            (SHOOT_STATE_COMPLETE, "StateLeftOut", "SourceStateLeftOut"),
            (
                SHOOT_STATE_UP_TO_DATE,
                "ShootStateNotSynced",
                "SourceStateNotUpToDate",
            ),
            (HIBERNATION_POSSIBLE, WEBHOOKS_ON_LEASES, WEBHOOKS_ON_LEASES),
        ] {
            let verdict = judged(&shoot(&[(type_, "False", reported)], &json!({})));
            assert_eq!((verdict.ready, verdict.reason), (false, reason));
            let message = format!("Seed a reports {type_}=False: It is so. The move begins");
            assert!(verdict.message.starts_with(&message), "{}", verdict.message);
            assert!(!verdict.codes().is_empty());
            for status in ["True", "Progressing", "Unknown"] {
                assert!(judged(&shoot(&[(type_, status, reported)], &json!({}))).ready);
            }
        }
    }

    #[test]
    fn a_webhook_stops_no_shoot_that_sleeps() {
        let webhook = [(HIBERNATION_POSSIBLE, "False", WEBHOOKS_ON_LEASES)];
        let verdict = judged(&shoot(&webhook, &json!({"hibernated": true})));
        assert!(verdict.ready && !verdict.message.contains("It is so"));
    }

    #[test]
    fn force_overrides_a_webhook_but_no_state_that_was_left_out() {
        let webhook = (HIBERNATION_POSSIBLE, "False", WEBHOOKS_ON_LEASES);
        let held = judged(&shoot(&[webhook], &json!({})));
        assert!(held.message.contains("force-restore=true"), "{}", held.message);
        let force = |mut shoot: Shoot| {
            let asked = json!({"shoot.gardener.cloud/force-restore": "true"});
            shoot.metadata.annotations = serde_json::from_value(asked).unwrap();
            shoot
        };
        let verdict = judged(&force(shoot(&[webhook], &json!({}))));
        assert!(
            verdict.ready && verdict.message.contains("It is so."),
            "{verdict:?}"
        );
        let left_out = (SHOOT_STATE_COMPLETE, "False", "StateLeftOut");
        let verdict = judged(&force(shoot(&[left_out, webhook], &json!({}))));
        assert_eq!(verdict.reason, "SourceStateLeftOut");
        assert!(!verdict.message.contains("force-restore"), "{}", verdict.message);
    }

    #[test]
    fn a_webhook_that_only_delays_the_start_is_a_warning() {
        let webhook = [(HIBERNATION_POSSIBLE, "False", "ProblematicWebhooks")];
        let verdict = judged(&shoot(&webhook, &json!({})));
        assert!(
            verdict.ready && verdict.message.ends_with("It is so."),
            "{}",
            verdict.message
        );
    }

    #[test]
    fn a_move_that_has_begun_is_judged_no_more() {
        let left_out = [(SHOOT_STATE_COMPLETE, "False", "StateLeftOut")];
        let migrating = json!({
            "lastOperation": {"type": "Migrate", "state": "Processing", "progress": 1, "description": "",
                "lastUpdateTime": "2026-01-01T00:00:00Z"},
            "migration": {"source": "a", "destination": "b", "generation": 1, "spec": {}},
        });
        assert!(judged(&shoot(&left_out, &migrating)).ready);
    }

    #[test]
    fn an_obstacle_of_the_destination_is_reported_first() {
        let no = Verdict {
            ready: false,
            reason: "DestinationSeedNotReady",
            message: "m".into(),
        };
        let left_out = [(SHOOT_STATE_COMPLETE, "False", "StateLeftOut")];
        assert_eq!(with_reports(&shoot(&left_out, &json!({})), no.clone()), no);
    }
}
