//! The request for a takeover, and the verdict of the garden: pure decisions.

use api::{
    constants::{FORCE_RESTORE_SOURCE_IS_OFF, SHOOT_FORCE_RESTORE},
    gardencore::{Shoot, ShootStatus},
};
use kube::ResourceExt;
use serde_json::json;

use super::report::TakeoverReport;
use crate::{edit::Edit, failure::Failure, follow::Step};

/// The edit that asks for the takeover of the report, in a single write: destination and annotation.
///
/// # Errors
/// A refusal where the Shoot is not in the state of the report any more, or where a different request is
/// open.
pub(super) fn ask(shoot: &Shoot, report: &TakeoverReport) -> Result<Edit, Failure> {
    let name = shoot.name_any();
    let status = shoot.status.clone().unwrap_or_default();
    if acting_seed(&status) != report.from || status.epoch() != report.epoch {
        return Err(Failure::refused(format!(
            "shoot {name} is on seed {} in ownership epoch {} now, so that the approval for seed {} in epoch {} has no effect; repeat the \
             command",
            acting_seed(&status),
            status.epoch(),
            report.from,
            report.epoch
        )));
    }
    if report.from == report.to {
        return Err(Failure::refused(format!(
            "shoot {name} is on seed {} already",
            report.to
        )));
    }
    let value = if report.source_is_off {
        FORCE_RESTORE_SOURCE_IS_OFF
    } else {
        "true"
    };
    match shoot.annotations().get(SHOOT_FORCE_RESTORE) {
        Some(open) if open == value && shoot.spec.seed_name.as_deref() == Some(report.to.as_str()) => Ok(
            Edit::Unchanged(format!("The takeover of shoot {name} is requested already.")),
        ),
        Some(open) => Err(Failure::refused(format!(
            "a request for a takeover of shoot {name} is open ({SHOOT_FORCE_RESTORE}={open}, to seed {}): wait until the garden has \
             decided",
            shoot.spec.seed_name.as_deref().unwrap_or_default()
        ))),
        None => Ok(Edit::Patch(json!({
            "metadata": {"annotations": {SHOOT_FORCE_RESTORE: value}},
            "spec": {"seedName": report.to},
        }))),
    }
}

/// The verdict of the garden about the request.
///
/// # Errors
/// The Shoot is gone, or a different seed has the shoot.
pub(super) fn verdict(shoot: Option<&Shoot>, report: &TakeoverReport) -> Result<Step<Verdict>, Failure> {
    let Some(shoot) = shoot else {
        return Err(Failure::failed(format!(
            "Shoot {} does not exist any more",
            report.shoot
        )));
    };
    let name = shoot.name_any();
    let status = shoot.status.clone().unwrap_or_default();
    let acting = acting_seed(&status);
    if acting == report.to {
        return Ok(Step::Done(Verdict::Granted));
    }
    if acting != report.from {
        return Err(Failure::refused(format!(
            "seed {acting} has shoot {name} now, so that the takeover by seed {} ends",
            report.to
        )));
    }
    if shoot.annotations().contains_key(SHOOT_FORCE_RESTORE) {
        return Ok(Step::Waiting(format!(
            "{name}: the garden decides about the takeover"
        )));
    }
    let approval = status
        .ownership
        .as_ref()
        .and_then(|ownership| ownership.approval.as_ref());
    let is_approved = approval.is_some_and(|approval| {
        approval.from == report.from && approval.to == report.to && approval.epoch == report.epoch
    });
    if is_approved {
        return Ok(Step::Waiting(format!(
            "{name}: the takeover is approved and begins"
        )));
    }
    // Without the statement that the source is off, the garden can answer by a planned move: the source
    // lives, and the request has lifted a hold of the move.
    if !report.source_is_off && placement::approval(shoot).is_some() {
        return Ok(Step::Done(Verdict::PlannedMove));
    }
    Ok(Step::Done(Verdict::Refused))
}

/// The verdict of the garden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The new seed has the shoot.
    Granted,
    /// The old seed lives and hands the shoot over.
    PlannedMove,
    /// The garden has removed the request without an approval.
    Refused,
}

fn acting_seed(status: &ShootStatus) -> &str {
    status.seed_name.as_deref().unwrap_or_default()
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
