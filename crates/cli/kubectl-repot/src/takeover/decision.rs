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
    if placement::approval(shoot).is_some() {
        // The source lives, and the request has lifted a hold of the planned move.
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shoot(wanted: &str, annotations: &str, status: &str) -> Shoot {
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: demo, annotations: {annotations}}}\nspec: {{region: r, provider: {{type: t}}, seedName: {wanted}}}\n\
             status: {status}\n"
        ))
        .unwrap()
    }

    fn report(source_is_off: bool) -> TakeoverReport {
        TakeoverReport {
            namespace: "garden-dev".to_owned(),
            shoot: "demo".to_owned(),
            from: "a".to_owned(),
            to: "b".to_owned(),
            epoch: 1,
            source: String::new(),
            loss: Vec::new(),
            fence_holds: true,
            fence_seconds: 24,
            unfenced_processes: Vec::new(),
            obstacles: Vec::new(),
            source_is_off,
        }
    }

    #[test]
    fn a_request_names_destination_and_annotation_in_one_write() {
        for (is_off, value) in [(false, "true"), (true, "source-is-off")] {
            let patch = ask(&shoot("a", "{}", "{seedName: a}"), &report(is_off)).unwrap();
            assert_eq!(
                patch,
                Edit::Patch(json!({
                    "metadata": {"annotations": {SHOOT_FORCE_RESTORE: value}}, "spec": {"seedName": "b"},
                }))
            );
        }
    }

    #[test]
    fn an_approval_counts_only_for_the_state_that_was_shown() {
        for status in ["{seedName: c}", "{seedName: a, ownership: {epoch: 2}}"] {
            let why = ask(&shoot("b", "{}", status), &report(false)).unwrap_err();
            assert!(why.to_string().contains("has no effect"), "{why}");
        }
        let open = shoot(
            "c",
            "{shoot.gardener.cloud/force-restore: 'true'}",
            "{seedName: a}",
        );
        let why = ask(&open, &report(false)).unwrap_err();
        assert!(why.to_string().contains("is open"), "{why}");
    }

    #[test]
    fn the_verdict_of_the_garden_is_read_from_the_shoot() {
        let approval = "{uid: u, from: a, to: b, epoch: 1, acceptedLoss: SinceLastSnapshot, expiry: 2026-01-01T00:00:00Z, \
                        by: Operator, reason: r}";
        let approved = format!("{{seedName: a, ownership: {{epoch: 1, approval: {approval}}}}}");
        let read = |shoot: &Shoot| verdict(Some(shoot), &report(false)).unwrap();
        let asked = shoot(
            "b",
            "{shoot.gardener.cloud/force-restore: 'true'}",
            "{seedName: a}",
        );
        assert!(matches!(read(&asked), Step::Waiting(_)));
        assert!(matches!(read(&shoot("b", "{}", &approved)), Step::Waiting(_)));
        assert_eq!(
            read(&shoot("b", "{}", "{seedName: a}")),
            Step::Done(Verdict::Refused)
        );
        assert_eq!(
            read(&shoot("b", "{}", "{seedName: b}")),
            Step::Done(Verdict::Granted)
        );
        assert!(verdict(Some(&shoot("c", "{}", "{seedName: c}")), &report(false)).is_err());
    }
}
