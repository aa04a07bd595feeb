//! The health conditions of the Shoots in a silent seed: no process checks these shoots, so the last report
//! may be wrong.
//!
//! A recovered gardenlet reports again with the next check. Conditions that a takeover depends on keep the
//! last report of the seed.

use api::{
    constants::{
        SHOOT_STATUS,
        condition::{
            API_SERVER_AVAILABLE, CONTROL_PLANE_HEALTHY, EVERY_NODE_READY, OBSERVABILITY_COMPONENTS_HEALTHY,
            SYSTEM_COMPONENTS_HEALTHY,
        },
        shoot_status::UNKNOWN,
    },
    gardencore::Shoot,
    meta::{Condition, ConditionStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Result,
    client::{Cluster, Garden},
    clock,
    error::Explain as _,
};
use serde_json::json;

use crate::MANAGER;

/// Types of the conditions in which a gardenlet reports the health of a shoot.
const HEALTH: [&str; 5] = [
    API_SERVER_AVAILABLE,
    CONTROL_PLANE_HEALTHY,
    OBSERVABILITY_COMPONENTS_HEALTHY,
    EVERY_NODE_READY,
    SYSTEM_COMPONENTS_HEALTHY,
];
/// Shoots in memory at the same time. A Shoot may have a megabyte.
const PAGE: u32 = 10;

/// Sets the health conditions of all Shoots in this seed to `Unknown`, and the label
/// `shoot.gardener.cloud/status` as well. Returns whether all these conditions are `Unknown` now. `is_silent`
/// checks again, before each page of Shoots is written.
///
/// A write fails if the Shoot has changed since the list: neither a new report of the gardenlet nor a
/// takeover by another seed is overwritten. A Shoot that cannot be written keeps no other Shoot from its
/// report.
///
/// # Errors
/// The garden cannot be read, or a Shoot cannot be written.
pub async fn report_unknown<F>(garden: &Garden, seed: &str, is_silent: impl Fn() -> F) -> Result<bool>
where
    F: Future<Output = Result<bool>>,
{
    let all: Api<Shoot> = garden.all();
    let mut params = ListParams::default()
        .fields(&format!("status.seedName={seed}"))
        .limit(PAGE);
    let mut is_complete = true;
    let mut failed = None;
    loop {
        let page = all.list(&params).await;
        let page = page.context(format_args!("could not list the Shoots in seed {seed}"))?;
        let outdated: Vec<_> = page.items.into_iter().filter(is_outdated).collect();
        // After the list: a gardenlet that reports from here on changes the Shoot, so that the write fails.
        if !outdated.is_empty() && !is_silent().await? {
            return Ok(false);
        }
        for shoot in outdated {
            // A Shoot is large, and the future would hold several copies.
            match Box::pin(write(garden, shoot)).await {
                Ok(is_written) => is_complete &= is_written,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return failed.map_or(Ok(is_complete), Err),
        }
    }
}

/// Returns whether the Shoot had not changed since the read.
async fn write(garden: &Garden, shoot: Shoot) -> Result<bool> {
    let api: Api<Shoot> = garden.namespaced(&shoot.namespace().unwrap_or_default());
    let mut newest = shoot;
    if let Some(conditions) = unknown_conditions(&newest, &clock::now_k8s()) {
        let patch = json!({"conditions": conditions});
        let Some(written) = MANAGER.try_merge_status_of(&api, &newest, &patch).await? else {
            return Ok(false);
        };
        newest = written;
    }
    if has_unknown_label(&newest) {
        return Ok(true);
    }
    let label = json!({"metadata": {"labels": {SHOOT_STATUS: UNKNOWN}}});
    Ok(MANAGER.try_merge_of(&api, &newest, &label).await?.is_some())
}

fn is_outdated(shoot: &Shoot) -> bool {
    unknown_conditions(shoot, &clock::now_k8s()).is_some() || !has_unknown_label(shoot)
}

fn has_unknown_label(shoot: &Shoot) -> bool {
    shoot
        .labels()
        .get(SHOOT_STATUS)
        .is_some_and(|label| label == UNKNOWN)
}

/// The conditions of the Shoot with all health conditions set to `Unknown`; `None` without a change.
fn unknown_conditions(shoot: &Shoot, now: &Time) -> Option<Vec<Condition>> {
    let mut conditions = shoot.status.as_ref()?.conditions.clone();
    let mut is_changed = false;
    for condition in &mut conditions {
        // A condition that is already `Unknown` keeps reason and times.
        if !HEALTH.contains(&condition.type_.as_str()) || condition.status == ConditionStatus::Unknown {
            continue;
        }
        is_changed = true;
        *condition = Condition::new(
            &condition.type_,
            ConditionStatus::Unknown,
            "StatusUnknown",
            "The gardenlet stopped renewing the seed's Lease, so the shoot is no longer checked.",
            now.clone(),
        );
    }
    is_changed.then_some(conditions)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ConditionStatus::{True, Unknown};

    use super::*;

    fn shoot(conditions: &[(&str, &str)]) -> Shoot {
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(type_, status)| {
                json!({"type": type_, "status": status, "reason": "R", "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        let mut shoot = Shoot::new("web", api::gardencore::ShootSpec::default());
        shoot.status = Some(serde_json::from_value(json!({"conditions": conditions})).unwrap());
        shoot
    }

    fn unknown(shoot: &Shoot) -> Option<Vec<Condition>> {
        unknown_conditions(shoot, &Time(jiff::Timestamp::UNIX_EPOCH))
    }

    #[test]
    fn the_conditions_that_a_takeover_is_decided_on_stay() {
        let shoot = shoot(&[
            ("OwnershipVerified", "True"),
            ("EveryNodeReady", "False"),
            ("OwnerChecksComplete", "True"),
            ("APIServerAvailable", "Progressing"),
            ("CustomerCondition", "True"),
        ]);
        let status: Vec<_> = unknown(&shoot).unwrap().into_iter().map(|c| c.status).collect();
        assert_eq!(status, [True, Unknown, True, Unknown, True]);
    }

    #[test]
    fn a_shoot_that_is_unknown_is_not_written_again() {
        let mut shoot = shoot(&[("EveryNodeReady", "Unknown"), ("OwnershipVerified", "True")]);
        assert_eq!(unknown(&shoot), None);
        assert!(is_outdated(&shoot));
        shoot.labels_mut().insert(SHOOT_STATUS.into(), UNKNOWN.into());
        assert!(!is_outdated(&shoot));
    }
}
