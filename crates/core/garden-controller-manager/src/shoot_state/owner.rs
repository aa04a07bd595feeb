//! Whether a ShootState belongs to the Shoot of the same name: a pure decision.

use std::time::Duration;

use api::gardencore::Shoot;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::seen::StateMeta;

/// Time in which Kubernetes collects the ShootState of an earlier Shoot of the same name. Longer than the
/// garbage collector takes for an owner that is gone, shorter than a person waits for a new shoot.
const COLLECTED_WITHIN: Duration = Duration::from_secs(60);

/// The relation of a ShootState to the Shoot of the same name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StateOwnership {
    /// The Shoot owns the ShootState.
    Owned,
    /// The ShootState is being deleted. The watch reports the end.
    Leaving,
    /// An earlier Shoot of the same name owned the ShootState. Kubernetes collects the ShootState within this
    /// time.
    Collected(Duration),
    /// No controller changes the ShootState: a user has to act.
    NotOwned,
}

/// The relation at this time.
pub(super) fn state_ownership(state: &StateMeta, shoot: &Shoot, now: Timestamp) -> StateOwnership {
    let uid = shoot.uid().unwrap_or_default();
    if state.metadata.deletion_timestamp.is_some() {
        return StateOwnership::Leaving;
    }
    if state.owner_references().iter().any(|owner| owner.uid == uid) {
        return StateOwnership::Owned;
    }
    // The garbage collector keeps an object without any owner.
    if state.owner_references().is_empty() {
        return StateOwnership::NotOwned;
    }
    let age = shoot
        .creation_timestamp()
        .map(|created| now.duration_since(created.0));
    let age = age
        .and_then(|age| Duration::try_from(age).ok())
        .unwrap_or_default();
    match COLLECTED_WITHIN.checked_sub(age) {
        Some(left) if !left.is_zero() => StateOwnership::Collected(left),
        _ => StateOwnership::NotOwned,
    }
}

/// The report of a ShootState that the Shoot does not own, with the remedy.
pub(super) fn report(shoot: &Shoot) -> String {
    let (name, uid) = (shoot.name_any(), shoot.uid().unwrap_or_default());
    let seed = shoot
        .status
        .as_ref()
        .and_then(|status| status.seed_name.as_deref());
    format!(
        "ShootState {name} is not owned by Shoot {name} (uid {uid}), so that no seed may use the ShootState. A restore of the \
         garden from a backup loses owners. If seed {} runs the shoot, delete the ShootState and InternalSecrets \
         {name}.state-<number>-<number>: a new ShootState is made and filled. If the seed is lost, set \
         metadata.ownerReferences of the ShootState to [{{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, name: {name}, \
         uid: {uid}, controller: true, blockOwnerDeletion: true}}], and those of the InternalSecrets to the ShootState",
        seed.unwrap_or("of the Shoot")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    const BORN: &str = "2026-01-01T00:00:00Z";

    fn after(seconds: i64) -> Timestamp {
        let born: Timestamp = BORN.parse().unwrap();
        Timestamp::from_second(born.as_second() + seconds).unwrap()
    }

    fn shoot() -> Shoot {
        let mut shoot = Shoot::new("web", api::gardencore::ShootSpec::default());
        shoot.metadata.uid = Some("present".into());
        shoot.metadata.creation_timestamp = serde_json::from_value(json!(BORN)).unwrap();
        shoot
    }

    fn state(owners: &[&str], deleted: Option<&str>) -> StateMeta {
        let owner = |uid: &&str| json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": "web", "uid": uid});
        let owners: Vec<Value> = owners.iter().map(owner).collect();
        serde_json::from_value(
            json!({"metadata": {"name": "web", "ownerReferences": owners, "deletionTimestamp": deleted}}),
        )
        .unwrap()
    }

    #[test]
    fn a_state_without_its_owner_is_reported_once_nothing_collects_it() {
        use StateOwnership::{Collected, Leaving, NotOwned, Owned};
        let seconds = Duration::from_secs;
        for (owners, deleted, age, expected) in [
            (&["present"] as &[&str], None, 0, Owned),
            (&["earlier", "present"], None, 0, Owned),
            (&[], None, 0, NotOwned),
            (&["earlier"], None, 0, Collected(seconds(60))),
            (&["earlier"], None, 59, Collected(seconds(1))),
            (&["earlier"], None, 60, NotOwned),
            (&["earlier"], None, 86_400, NotOwned),
            (&["earlier"], Some(BORN), 86_400, Leaving),
            (&[], Some(BORN), 0, Leaving),
            (&["present"], Some(BORN), 0, Leaving),
        ] {
            let found = state_ownership(&state(owners, deleted), &shoot(), after(age));
            assert_eq!(found, expected, "{owners:?} {deleted:?} {age}");
        }
    }

    #[test]
    fn the_report_fits_into_an_event_and_names_the_owner_to_set() {
        let report = report(&shoot());
        assert!(report.chars().count() < 1000, "{}", report.len());
        assert!(report.contains("name: web, uid: present"), "{report}");
    }
}
