//! The addresses of the API's name, resolved in a single loop for all connections.

use std::net::SocketAddr;

use prometheus_client::metrics::gauge::Gauge;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tracing::{info, warn};

use crate::{
    agent::{Doubt, Way},
    limits::LOOK_UP_EVERY,
};

/// The result of the lookups.
#[derive(Clone, Debug, Default)]
pub(super) struct ResolvedAddresses {
    /// The last addresses that a lookup returned. The proxy uses these addresses while DNS is away.
    addresses: Vec<SocketAddr>,
    /// The result of the last lookup.
    last: Option<Result<Vec<SocketAddr>, String>>,
}

/// Resolves the name periodically, without end.
pub(super) async fn follow(way: &Way, known: &watch::Sender<ResolvedAddresses>, count: &Gauge) {
    let mut looks = interval(LOOK_UP_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = None;
    loop {
        looks.tick().await;
        let mut last = way.addresses().await;
        if let Ok(addresses) = &mut last {
            addresses.sort_unstable();
        }
        if let Err(why) = &last
            && told.as_ref() != Some(why)
        {
            warn!(why, "the API's name is not found");
        }
        told = last.as_ref().err().cloned();
        known.send_modify(|known| {
            if let Ok(addresses) = &last
                && !addresses.is_empty()
                && *addresses != known.addresses
            {
                info!(?addresses, "the API's name leads here");
                known.addresses.clone_from(addresses);
                count.set(i64::try_from(addresses.len()).unwrap_or(i64::MAX));
            }
            known.last = Some(last);
        });
    }
}

/// The known addresses; waits for the first result.
pub(super) async fn addresses(
    known: &mut watch::Receiver<ResolvedAddresses>,
) -> Result<Vec<SocketAddr>, String> {
    let found = known.wait_for(|known| !known.addresses.is_empty()).await;
    found
        .map(|known| known.addresses.clone())
        .map_err(|error| error.to_string())
}

/// Returns when several consecutive lookups have not contained this address.
pub(super) async fn led_elsewhere(mut known: watch::Receiver<ResolvedAddresses>, address: SocketAddr) {
    let mut doubt = Doubt::default();
    // The sender is dropped when the process ends, and then the connection ends too.
    while known.changed().await.is_ok() {
        let last = known.borrow_and_update().last.clone();
        if let Some(last) = last
            && doubt.is_sure(last.as_deref(), address)
        {
            return;
        }
    }
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
