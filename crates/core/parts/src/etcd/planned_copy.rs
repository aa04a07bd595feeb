//! Check of an incomplete copy after a hand-over by the source seed. No fence bounds the loss, so the copy
//! must be complete, or a user accepts the loss (R17-27, R17-45).

use api::{
    constants::SHOOT_ACCEPT_LOSS,
    druid::CopiedChain,
    gardencore::{
        Shoot,
        shoot::{Ownership as Recorded, OwnershipPhase, RestoredData},
    },
};
use kube::ResourceExt;
use mutation::Mutation;
use ownership::changes_between;
use runtime::{Error, Result, client::Cluster, clock};
use serde_json::json;

use crate::{ConflictLimit, FIELD_MANAGER, Facts, configuration_problem, ownership::data_loss};

/// Value of annotation `shoot.gardener.cloud/accept-loss` that accepts a loss of unknown size.
const UNKNOWN_LOSS: &str = "unknown";

/// The loss that a user accepts with annotation `shoot.gardener.cloud/accept-loss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossConsent {
    /// At most this number of revisions.
    Revisions(i64),
    /// A loss of unknown size.
    Unknown,
}

impl LossConsent {
    /// Reads the annotation; `None` for a missing or invalid value.
    pub(crate) fn from_shoot(shoot: &Shoot) -> Option<Self> {
        let value = shoot.annotations().get(SHOOT_ACCEPT_LOSS)?;
        if value == UNKNOWN_LOSS {
            return Some(Self::Unknown);
        }
        let number = value.parse::<i64>().ok();
        number.filter(|number| *number > 0).map(Self::Revisions)
    }

    /// The accepted number of revisions; `None` for a loss of unknown size.
    pub(crate) fn revisions(self) -> Option<i64> {
        match self {
            Self::Revisions(number) => Some(number),
            Self::Unknown => None,
        }
    }
}

/// Whether a user has accepted the loss of this copy. When the end of the source is unknown, no number can be
/// compared with the loss, so only the explicit consent to a loss of unknown size counts.
pub(crate) fn is_loss_accepted(copied: &CopiedChain, accepted: Option<LossConsent>) -> bool {
    copied.lost_revisions.is_some()
        || (copied.sealed_revision.is_none() && accepted == Some(LossConsent::Unknown))
}

/// Checks and records a copy before the copying Etcd is deleted.
///
/// # Errors
/// The copy is incomplete, and no user has accepted the loss.
pub(crate) async fn settle(f: &Facts, copied: CopiedChain) -> Result<CopiedChain> {
    let newest = f.newest_shoot().await?;
    let Some(planned) = PlannedMove::from_shoot(&newest) else {
        return Ok(copied);
    };
    let copied = planned.check(copied, LossConsent::from_shoot(&newest))?;
    if !copied.complete && matches!(planned, PlannedMove::WithoutPhases(_)) {
        record_loss(f, &copied).await?;
    }
    Ok(copied)
}

/// A move without chosen data, whose source has ended the epoch. The number is the epoch of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlannedMove {
    /// The source seed keeps no owner records, so no phase is recorded. A takeover always records phases.
    WithoutPhases(i64),
    /// Phase `Claiming` after a hand-over. The step that records phase `Opening` records the loss.
    Claiming(i64),
}

impl PlannedMove {
    fn from_shoot(shoot: &Shoot) -> Option<Self> {
        let status = shoot.status.as_ref()?;
        let recorded = status.ownership.as_ref().filter(|recorded| recorded.epoch > 1)?;
        let source = recorded.source.as_ref();
        let origin = source.map_or(recorded.epoch - 1, |source| source.epoch);
        match recorded.phase {
            None => Some(Self::WithoutPhases(origin)),
            Some(OwnershipPhase::Claiming) if recorded.drained => Some(Self::Claiming(origin)),
            _ => None,
        }
    }

    fn origin(self) -> i64 {
        match self {
            Self::WithoutPhases(origin) | Self::Claiming(origin) => origin,
        }
    }

    /// The copy, with the number of lost revisions if the number is known.
    fn check(self, copied: CopiedChain, accepted: Option<LossConsent>) -> Result<CopiedChain> {
        let missing = copied
            .sealed_revision
            .map(|sealed| changes_between(copied.last_revision, sealed, self.origin()));
        let goes_on = copied.complete || is_loss_accepted(&copied, accepted);
        if goes_on || Mutation::IncompleteCopyAccepted.is_active() {
            return Ok(copied);
        }
        match (missing, accepted) {
            (Some(missing), Some(LossConsent::Revisions(accepted))) if (1..=accepted).contains(&missing) => {
                Ok(CopiedChain {
                    lost_revisions: Some(missing),
                    ..copied
                })
            }
            _ => Err(self.incomplete(&copied, missing)),
        }
    }

    fn incomplete(self, copied: &CopiedChain, missing: Option<i64>) -> Error {
        let (end, number) = match (copied.sealed_revision, missing) {
            (Some(sealed), Some(missing)) => (
                format!("etcd ended at revision {sealed}"),
                format!(
                    "the loss of {missing} revisions: annotate the Shoot with {SHOOT_ACCEPT_LOSS}={missing}"
                ),
            ),
            _ => (
                "nothing in the bucket of the source states the last revision of etcd".to_owned(),
                format!("a loss of unknown size: annotate the Shoot with {SHOOT_ACCEPT_LOSS}={UNKNOWN_LOSS}"),
            ),
        };
        configuration_problem(format!(
            "the copied backups of ownership epoch {} end at revision {}, and {end}: the source handed the shoot over without a record \
             of the end of its epoch (status.ownership.sealed). Accept {number}",
            self.origin(),
            copied.last_revision
        ))
    }
}

/// Records `status.ownership.restored` of a shoot without phases: the record keeps the backups of the source,
/// and reports the loss. At most once per epoch.
async fn record_loss(f: &Facts, copied: &CopiedChain) -> Result<()> {
    let api = f.garden.namespaced::<Shoot>(&f.shoot_namespace());
    let mut conflicts = ConflictLimit::default();
    loop {
        let newest = f.newest_shoot().await?;
        let Some(recorded) = record_of(f, &newest) else {
            return Err(Error::not_owner(format!(
                "the restoration of Shoot {} is over for this seed in epoch {}",
                newest.name_any(),
                f.epoch()
            )));
        };
        let is_recorded = |restored: &RestoredData| restored.epoch == recorded.epoch;
        if recorded.restored.as_ref().is_some_and(is_recorded) {
            return Ok(());
        }
        let restored = data_loss::loss_without_phases(f.epoch(), copied, clock::now());
        let patch = json!({"ownership": data_loss::restored_patch(&restored, Some(recorded))});
        if FIELD_MANAGER
            .try_merge_status_of(&api, &newest, &patch)
            .await?
            .is_some()
        {
            return Ok(());
        }
        conflicts.count("Shoot", &newest.name_any())?;
    }
}

/// The record without phases, while this seed still has the shoot in this epoch and operation.
fn record_of<'a>(f: &Facts, newest: &'a Shoot) -> Option<&'a Recorded> {
    let status = newest.status.as_ref()?;
    let is_own = status.seed_name.as_deref() == Some(f.seed_object.name_any().as_str());
    let last = status.last_operation.as_ref();
    let goes_on = last.is_none_or(|last| last.type_ == f.operation.type_());
    let recorded = status.ownership.as_ref()?;
    (is_own && goes_on && recorded.epoch == f.epoch() && recorded.phase.is_none()).then_some(recorded)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(ownership: &Value) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local"},
            "status": {"seedName": "b", "ownership": ownership},
        }))
        .unwrap()
    }

    fn copied(complete: bool, sealed: Option<i64>, lost: Option<i64>) -> CopiedChain {
        CopiedChain {
            final_snapshot: complete,
            last_revision: 37,
            saved: None,
            complete,
            sealed_revision: sealed,
            lost_revisions: lost,
            left_aside: Vec::new(),
        }
    }

    /// The fence bounds the loss of a takeover, and a recorded choice stands.
    #[test]
    fn a_copy_is_judged_while_the_data_of_a_planned_move_are_not_chosen() {
        let source = json!({"name": "a", "epoch": 1});
        for (ownership, expected) in [
            (json!({"epoch": 2}), Some(PlannedMove::WithoutPhases(1))),
            (json!({"epoch": 1}), None),
            (
                json!({"epoch": 3, "phase": "Claiming", "drained": true, "source": source}),
                Some(PlannedMove::Claiming(1)),
            ),
            (json!({"epoch": 2, "phase": "Claiming", "source": source}), None),
            (json!({"epoch": 2, "phase": "Opening", "drained": true}), None),
            (json!({"epoch": 2, "phase": "Held", "drained": true}), None),
        ] {
            assert_eq!(
                PlannedMove::from_shoot(&shoot(&ownership)),
                expected,
                "{ownership}"
            );
        }
    }

    /// An older source records no end of the epoch. The destination waited without an end, or began with less
    /// data and did not report the loss.
    #[test]
    fn an_incomplete_copy_of_a_planned_move_needs_the_consent_of_a_person() {
        for planned in [PlannedMove::WithoutPhases(1), PlannedMove::Claiming(1)] {
            let judge = |copied: CopiedChain, accepted| {
                let checked = planned.check(copied, accepted);
                checked
                    .map(|copied| copied.lost_revisions)
                    .map_err(|error| error.to_string())
            };
            assert_eq!(judge(copied(true, None, None), None), Ok(None));
            let number = |number| Some(LossConsent::Revisions(number));
            assert_eq!(judge(copied(false, Some(54), Some(17)), number(17)), Ok(Some(17)));
            // The source noted the end in the bucket, and the copy did not receive the number.
            assert_eq!(judge(copied(false, Some(54), None), number(17)), Ok(Some(17)));
            for accepted in [None, number(16), Some(LossConsent::Unknown)] {
                let error = judge(copied(false, Some(54), None), accepted).unwrap_err();
                assert!(
                    error.contains("end at revision 37, and etcd ended at revision 54"),
                    "{error}"
                );
                assert!(error.contains("accept-loss=17"), "{error}");
            }
            // No number bounds a loss of unknown size.
            for accepted in [None, number(1), number(i64::MAX)] {
                let error = judge(copied(false, None, None), accepted).unwrap_err();
                assert!(error.contains("a loss of unknown size"), "{error}");
                assert!(error.contains("accept-loss=unknown"), "{error}");
            }
            assert_eq!(
                judge(copied(false, None, None), Some(LossConsent::Unknown)),
                Ok(None)
            );
        }
    }

    /// A user who accepts 17 lost revisions has not accepted the loss of all data.
    #[test]
    fn a_number_accepts_no_loss_of_unknown_size() {
        let annotated = |value: &str| {
            let mut shoot = shoot(&json!({"epoch": 2}));
            shoot.metadata.annotations = Some([(SHOOT_ACCEPT_LOSS.to_owned(), value.to_owned())].into());
            LossConsent::from_shoot(&shoot)
        };
        assert_eq!(annotated("17"), Some(LossConsent::Revisions(17)));
        assert_eq!(annotated("unknown"), Some(LossConsent::Unknown));
        for invalid in ["", "0", "-1", "all", "Unknown"] {
            assert_eq!(annotated(invalid), None, "{invalid}");
        }
        for (value, sealed, is_accepted) in [
            ("unknown", None, true),
            ("unknown", Some(54), false),
            ("17", None, false),
            ("17", Some(54), false),
        ] {
            let copied = copied(false, sealed, None);
            assert_eq!(
                is_loss_accepted(&copied, annotated(value)),
                is_accepted,
                "{value} {sealed:?}"
            );
        }
        assert!(!is_loss_accepted(&copied(false, None, None), None));
    }

    #[test]
    fn a_planned_move_that_goes_on_with_any_copy_is_noticed() {
        Mutation::IncompleteCopyAccepted.assert_killed_by(
            an_incomplete_copy_of_a_planned_move_needs_the_consent_of_a_person,
            "Some(17)",
        );
    }
}
