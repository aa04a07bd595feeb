//! The Leases and operations that this process has observed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{constants::SEED_LEASE_NAMESPACE, gardencore::Shoot};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, ResourceExt,
    runtime::{WatchStreamExt as _, watcher, watcher::Event},
};
use placement::journey;
use runtime::{Result, client::Cluster, error::Explain as _};
use tokio::time::Instant;

use super::sightings::{Advance, Sightings};
use crate::{Context, shoot_migration::wanted_move};

/// The observations of this process. A restart loses them, and all times start again.
#[derive(Debug, Default)]
pub struct TakeoverObservations {
    /// Renewal times of Leases, by seed.
    pub leases: Sightings<Option<Timestamp>>,
    /// [`state_of`] each Shoot, by uid.
    pub operations: Sightings<u64>,
    /// How far [`operation_of`] each Shoot has come, by uid.
    pub progress: Sightings<Advance>,
}

impl TakeoverObservations {
    /// Removes the observations of this Shoot.
    pub fn forget(&mut self, uid: &str) {
        self.operations.forget(uid);
        self.progress.forget(uid);
    }
}

/// Locks briefly: the caller must not await while holding the lock.
pub fn lock(seen: &Mutex<TakeoverObservations>) -> MutexGuard<'_, TakeoverObservations> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records each renewal until shutdown. A renewal triggers no reconciliation: the controller acts on silence,
/// which is a time.
pub async fn watch_leases(context: Context, seen: Arc<Mutex<TakeoverObservations>>) {
    let leases: Api<Lease> = context.garden.namespaced(SEED_LEASE_NAMESPACE);
    let events = watcher(leases, watcher::Config::default())
        .default_backoff()
        .take_until(context.shutdown.cancelled());
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let (mut seen, now) = (lock(&seen), Instant::now());
        match event {
            Ok(Event::Apply(lease) | Event::InitApply(lease)) => {
                seen.leases.note_renewal(&lease.name_any(), renewed(&lease), now);
            }
            Ok(Event::Delete(lease)) => {
                seen.leases.note(&lease.name_any(), None, now);
            }
            Ok(Event::Init | Event::InitDone) => {}
            Err(error) => {
                tracing::debug!(%error, "the Leases of seeds cannot be watched: silence is counted anew");
                seen.leases.begin_anew(now);
                seen.operations.begin_anew(now);
                seen.progress.begin_anew(now);
            }
        }
    }
}

/// When the Lease of this seed was renewed, read from the garden now.
pub async fn read_renewal(context: &Context, seed: &str) -> Result<Option<Timestamp>> {
    let leases: Api<Lease> = context.garden.namespaced(SEED_LEASE_NAMESPACE);
    let lease = leases.get_opt(seed).await;
    let lease = lease.context(format_args!("could not read the Lease of seed {seed}"))?;
    Ok(lease.as_ref().and_then(renewed))
}

fn renewed(lease: &Lease) -> Option<Timestamp> {
    let renewed = lease.spec.as_ref()?.renew_time.as_ref()?;
    Some(renewed.0)
}

/// A hash of the requested move and of the progress of the present operation.
pub fn state_of(shoot: &Shoot) -> u64 {
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let last = last.map(|last| {
        let state = format!("{}/{}/{}", last.type_, last.state, last.progress);
        (state, last.description.clone(), last.last_update_time.0)
    });
    runtime::controller::runner::fingerprint((wanted_move(shoot), last)).unwrap_or_default()
}

/// A hash of the present operation, equal for all of its attempts. A gardenlet records when the first attempt
/// began; a new destination and each step of the ownership begin a new operation.
pub fn operation_of(shoot: &Shoot) -> u64 {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let began = status.and_then(|status| status.retry_cycle_start_time.as_ref());
    let owned = status.and_then(|status| status.ownership.as_ref());
    let place = format!(
        "{:?} {:?} {:?}",
        last.map(|last| last.type_),
        journey(shoot),
        owned.map(|owned| owned.phase)
    );
    let epoch = owned.map(|owned| owned.epoch);
    runtime::controller::runner::fingerprint((wanted_move(shoot), place, began.map(|began| began.0), epoch))
        .unwrap_or_default()
}

/// Percent of the present attempt.
pub fn progress_of(shoot: &Shoot) -> i32 {
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    last.map_or(0, |last| last.progress)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(change: &dyn Fn(&mut Value)) -> Shoot {
        let mut shoot = json!({
            "metadata": {"name": "web", "uid": "u"},
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "b", "kubernetes": {}},
            "status": {"seedName": "a", "retryCycleStartTime": "2026-01-01T00:00:00Z", "ownership": {"epoch": 1, "phase": "Leaving"},
                "lastOperation": {"type": "Migrate", "state": "Processing", "progress": 30, "description": "d",
                    "lastUpdateTime": "2026-01-01T00:10:00Z"}},
        });
        change(&mut shoot);
        serde_json::from_value(shoot).unwrap()
    }

    /// The fields that a gardenlet writes with each attempt do not change the operation.
    #[test]
    fn an_operation_is_the_same_however_often_it_is_tried() {
        let first = operation_of(&shoot(&|_| ()));
        for (place, value) in [
            ("state", json!("Error")),
            ("progress", json!(0)),
            ("description", json!("Deleting machines")),
            ("lastUpdateTime", json!("2026-01-01T00:20:00Z")),
        ] {
            let again = shoot(&|shoot| shoot["status"]["lastOperation"][place] = value.clone());
            assert_eq!(operation_of(&again), first, "{place}");
        }
        let errors = json!([{"description": "d"}]);
        let again = shoot(&|shoot| shoot["status"]["lastErrors"] = errors.clone());
        assert_eq!(operation_of(&again), first);
    }

    #[test]
    fn another_operation_is_told_from_the_one_before() {
        let first = operation_of(&shoot(&|_| ()));
        let others: [&dyn Fn(&mut Value); 6] = [
            &|shoot| shoot["spec"]["seedName"] = json!("c"),
            &|shoot| shoot["status"]["retryCycleStartTime"] = json!("2026-01-01T12:00:00Z"),
            &|shoot| shoot["status"]["ownership"]["phase"] = json!("Sealing"),
            &|shoot| shoot["status"]["ownership"]["epoch"] = json!(2),
            &|shoot| shoot["status"]["lastOperation"]["type"] = json!("Restore"),
            &|shoot| shoot["status"]["lastOperation"]["state"] = json!("Succeeded"),
        ];
        for other in others {
            assert_ne!(operation_of(&shoot(other)), first, "{:?}", shoot(other));
        }
    }
}
