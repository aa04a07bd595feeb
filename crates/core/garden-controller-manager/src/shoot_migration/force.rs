//! Annotation `shoot.gardener.cloud/force-restore` overrides the checks of a planned move that users of the
//! Shoot could keep for ever: a pending edit, annotation `shoot.gardener.cloud/ignore`, and webhooks on
//! Leases. Pure.
//!
//! The annotation goes before the source begins. Until then the reason of the constraint records the override
//! beside the approval.

use api::{
    constants::{SHOOT_FORCE_RESTORE, condition::READY_FOR_MIGRATION},
    gardencore::Shoot,
};
use kube::ResourceExt;
use placement::approval;

use super::preflight::Verdict;

/// The reason of a move that skips a check by force.
pub(super) const FORCED: &str = "MoveForced";

/// Whether a person asks for the move by force.
pub(super) fn is_asked(shoot: &Shoot) -> bool {
    shoot.annotations().contains_key(SHOOT_FORCE_RESTORE)
}

/// Whether the move is approved for the present specification.
pub(super) fn is_approved(shoot: &Shoot) -> bool {
    approval(shoot).is_some_and(|approval| Some(approval.generation) == shoot.metadata.generation)
}

/// Whether force overrides a check: the annotation requests that, or the approval was recorded by force.
pub(super) fn overrides(shoot: &Shoot) -> bool {
    is_asked(shoot) || is_approved(shoot) && reported_reason(shoot) == Some(FORCED)
}

/// The reason of the constraint `ReadyForMigration`.
pub(super) fn reported_reason(shoot: &Shoot) -> Option<&str> {
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    Some(constraint.reason.as_str())
}

/// The verdict on a move that skips the check with this reason.
pub(super) fn pass(mut verdict: Verdict, check: &str) -> Verdict {
    verdict.reason = FORCED;
    verdict.message = format!("{} {SHOOT_FORCE_RESTORE} overrides {check}.", verdict.message);
    verdict
}

/// The remedy in the message of a check that force overrides.
pub(super) fn remedy() -> String {
    format!(
        "move the shoot as it is with annotation {SHOOT_FORCE_RESTORE}=true, which takes the verb force-restore on shoots"
    )
}
