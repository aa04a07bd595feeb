//! Consent to a takeover or to a renewal, as the controller records the consent before the hand-over.

use api::gardencore::shoot::{AcceptedLoss, ApprovedBy, OwnershipApproval};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::{next_step::Decision, obstacle::Facts};

/// Validity of an approval. An approval is used at once; after this time its conditions may have changed.
pub const GOOD_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Approves the step from a seed in an epoch to a destination seed.
pub(super) fn approve(
    facts: &Facts<'_>,
    by: ApprovedBy,
    reason: String,
    (from, to, epoch): (&str, &str, i64),
) -> Decision {
    let Ok(expiry) = facts.now.checked_add(GOOD_FOR) else {
        return Decision::Nothing;
    };
    Decision::Approve(OwnershipApproval {
        uid: facts.shoot.uid().unwrap_or_default(),
        from: from.to_owned(),
        to: to.to_owned(),
        epoch,
        accepted_loss: AcceptedLoss::SinceLastSnapshot,
        expiry: Time(expiry),
        by,
        source_is_off: by == ApprovedBy::Operator && from != to && facts.source_is_off(),
        reason,
    })
}
