//! The conditions of a takeover that follow from the reports of the source in the status of the Shoot.
//! garden-controller-manager decides by these conditions, and kubectl-repot shows the result beforehand. Each
//! of the two processes has its own texts.

use api::{
    constants::condition::{
        NEVER_ANSWERED, OUTLASTS_FENCE, OWNER_CHECKS_COMPLETE, OWNERSHIP_VERIFIED, SHOOT_STATE_NEVER_SYNCED,
        SHOOT_STATE_UP_TO_DATE,
    },
    gardencore::{Seed, Shoot, ShootStatus},
    meta::{Condition, ConditionStatus},
};
use kube::ResourceExt as _;
pub use ownership::SHORTEST_FENCE_SECONDS;

use crate::owner_terms;

/// Reasons of condition `OwnershipVerified` of an etcd that asks for the owner.
pub const REPORTED_BY_A_SEED: [&str; 4] = ["Owner", "NotConfirmed", "NoAnswer", "NotToldAnew"];

/// All reasons of condition `OwnershipVerified` that a seed reports. Any further reason is the statement of
/// an operator, and replaces the report of etcd. Policy `shoot-ownership` has the same list, and refuses
/// further reasons to seeds.
pub const REASONS_OF_SEEDS: [&str; 7] = [
    "Owner",
    "NotConfirmed",
    "NoAnswer",
    "NotToldAnew",
    NEVER_ANSWERED,
    OUTLASTS_FENCE,
    "Lost",
];

/// Why waiting cannot fence etcd of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtcdFenceGap {
    /// etcd has never reported an owner check: a process from before the setting runs without the check.
    NeverReported,
    /// etcd serves for longer than a fence lasts while no witness confirms the owner.
    OutlastsFence,
    /// etcd may serve without any answer about the owner (`ownerChecks.silence: Tolerate`).
    ToleratesSilence,
}

/// Why processes of the source may have no owner check.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OwnerCheckGap<'a> {
    /// Condition `OwnerChecksComplete` is missing.
    NeverReported,
    /// The condition is not `True`.
    Incomplete(&'a Condition),
    /// A reconciliation has begun to change the owner terms and has not ended.
    Unfinished,
    /// The reported terms are of a different ownership epoch.
    OtherEpoch,
    /// The Seed was edited after the last reconciliation of the shoot, so that processes may still use the
    /// former settings.
    SeedEdited,
}

/// The gap in the fence of etcd, `None` if waiting fences etcd. The status of the condition does not matter:
/// a seed that has reported checks has an etcd with an owner check. The age of the condition does not matter
/// either: a dead seed sends no report, and a seed without running checks has shut etcd. `tolerates`: the
/// Seed tolerates silence, and etcd may already do so without having reported the setting.
#[must_use]
pub fn find_etcd_fence_gap(shoot: &Shoot, tolerates: bool) -> Option<EtcdFenceGap> {
    let status = shoot.status.as_ref();
    let verified = status.and_then(|status| status.condition(OWNERSHIP_VERIFIED));
    match verified.map(|verified| verified.reason.as_str()) {
        None | Some(NEVER_ANSWERED) => Some(EtcdFenceGap::NeverReported),
        Some(OUTLASTS_FENCE) => Some(EtcdFenceGap::OutlastsFence),
        Some(reason) if tolerates && REPORTED_BY_A_SEED.contains(&reason) => {
            Some(EtcdFenceGap::ToleratesSilence)
        }
        Some(_) => None,
    }
}

/// The gap in the owner checks of the source's processes; `None` if the source reports all checks with the
/// terms of the present Seed. The age of the report does not matter: a dead seed sends no new report, and the
/// processes of that seed stay as they are.
#[must_use]
pub fn find_owner_check_gap<'a>(status: &'a ShootStatus, source: &Seed) -> Option<OwnerCheckGap<'a>> {
    let Some(complete) = status.condition(OWNER_CHECKS_COMPLETE) else {
        return Some(OwnerCheckGap::NeverReported);
    };
    if complete.status != ConditionStatus::True {
        return Some(OwnerCheckGap::Incomplete(complete));
    }
    // The condition may be older than a flow that has begun to give new terms to processes.
    let entry = status.owner_check_in(&source.name_any());
    let Some((entry, terms)) = entry.and_then(|entry| Some((entry, entry.terms.as_ref()?))) else {
        return Some(OwnerCheckGap::Unfinished);
    };
    if entry.epoch != status.epoch() {
        return Some(OwnerCheckGap::OtherEpoch);
    }
    let present = owner_terms::hash(source, status.epoch());
    (Some(terms) != present.as_ref()).then_some(OwnerCheckGap::SeedEdited)
}

/// Whether a ShootState was ever written for the shoot, or an operator states so. Without the shoot's keys no
/// seed can restore the shoot, and the old seed may come back. The age of the keys does not matter: keys
/// stay.
#[must_use]
pub fn is_state_saved(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    let saved = status.and_then(|status| status.constraint(SHOOT_STATE_UP_TO_DATE));
    saved.is_some_and(|saved| saved.reason != SHOOT_STATE_NEVER_SYNCED)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn seed() -> Seed {
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "a"},
            "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                "provider": {"type": "local", "region": "local"}, "settings": {"ownerChecks": {"enabled": true}}},
        }))
        .unwrap()
    }

    /// A Shoot in epoch 2, with this status of condition `OwnerChecksComplete` and this entry of the seed.
    fn shoot(complete: &str, epoch: i64, terms: Option<&str>) -> Shoot {
        let condition = json!({"type": OWNER_CHECKS_COMPLETE, "status": complete, "reason": "R", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "a", "conditions": [condition], "ownership": {"epoch": 2},
                "ownerChecks": [{"seedName": "a", "epoch": epoch, "terms": terms}]},
        }))
        .unwrap()
    }

    /// Otherwise a new reason would count as the statement of an operator that etcd is off.
    #[test]
    fn no_report_of_a_seed_counts_as_a_fence_where_silence_is_tolerated() {
        for reason in REASONS_OF_SEEDS {
            let condition = json!({"type": OWNERSHIP_VERIFIED, "status": "True", "reason": reason, "message": "m",
                "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
            let mut reported = shoot("True", 2, None);
            reported.status.as_mut().unwrap().conditions = vec![serde_json::from_value(condition).unwrap()];
            // etcd of a lost shoot is shut.
            let is_fenced = reason == "Lost";
            assert_eq!(
                find_etcd_fence_gap(&reported, true).is_none(),
                is_fenced,
                "{reason}"
            );
        }
    }

    #[test]
    fn the_report_of_a_source_counts_for_its_epoch_and_terms() {
        let terms = owner_terms::hash(&seed(), 2).unwrap();
        for (complete, epoch, terms, expected) in [
            ("True", 2, Some(terms.as_str()), None),
            ("True", 2, None, Some(OwnerCheckGap::Unfinished)),
            ("True", 1, None, Some(OwnerCheckGap::Unfinished)),
            ("True", 1, Some(terms.as_str()), Some(OwnerCheckGap::OtherEpoch)),
            ("True", 2, Some("0"), Some(OwnerCheckGap::SeedEdited)),
        ] {
            let status = shoot(complete, epoch, terms).status.unwrap();
            assert_eq!(
                find_owner_check_gap(&status, &seed()),
                expected,
                "{epoch} {terms:?}"
            );
        }
        let mut status = shoot("False", 2, Some(&terms)).status.unwrap();
        let gap = find_owner_check_gap(&status, &seed());
        assert!(matches!(gap, Some(OwnerCheckGap::Incomplete(told)) if told.message == "m"));
        status.conditions.clear();
        let gap = find_owner_check_gap(&status, &seed());
        assert_eq!(gap, Some(OwnerCheckGap::NeverReported));
    }
}
