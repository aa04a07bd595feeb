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
        // Only users of the shoot can fix a webhook, so that the operator of a seed can override the check.
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
#[path = "source_tests.rs"]
mod tests;
