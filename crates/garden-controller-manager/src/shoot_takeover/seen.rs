//! What this process has seen of Leases and operations.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{constants::SEED_LEASE_NAMESPACE, gardencore::Shoot};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, ResourceExt,
    runtime::{WatchStreamExt as _, watcher, watcher::Event},
};
use runtime::{Cluster, Result, error::Explain as _};
use tokio::time::Instant;

use super::sightings::Sightings;
use crate::{Context, shoot_migration::wanted_move};

/// What this process has seen. It is lost with the process, and then all of it begins anew.
#[derive(Debug, Default)]
pub struct Seen {
    /// Renewal times of Leases, by seed.
    pub leases: Sightings<Option<Timestamp>>,
    /// [`state_of`] each Shoot, by uid.
    pub operations: Sightings<u64>,
}

/// For a moment: nothing is awaited meanwhile.
pub fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes note of each renewal until shutdown. It wakes nobody: silence is what is acted on, and that is a time.
pub async fn watch_leases(context: Context, seen: Arc<Mutex<Seen>>) {
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
            }
        }
    }
}

/// When the Lease of this seed was renewed, as the garden says now.
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

/// The wish to move, and how far what is being done has come.
pub fn state_of(shoot: &Shoot) -> u64 {
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let last = last.map(|last| {
        let state = format!("{}/{}/{}", last.type_, last.state, last.progress);
        (state, last.description.clone(), last.last_update_time.0)
    });
    runtime::runner::fingerprint((wanted_move(shoot), last)).unwrap_or_default()
}
