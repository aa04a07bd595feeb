//! The heartbeat of an extension: a Lease in the extension's namespace, renewed while the process runs. If
//! the Lease is older than five minutes, the gardenlet reports the extension as gone, in condition `Healthy`
//! of the ControllerInstallation.

use std::time::Duration;

use api::constants::EXTENSION_HEARTBEAT;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use runtime::{
    client::{Cluster, Seed, apply::FieldManager},
    clock,
};
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

/// Interval of renewals. Much shorter than the 5 minutes after which the extension counts as gone, so that
/// several renewals may fail.
const EVERY: Duration = Duration::from_secs(30);

/// Renews the Lease in the extension's namespace for ever. A failed renewal is logged and retried.
pub async fn run(seed: Seed, manager: FieldManager, namespace: String, identity: String) {
    let api = seed.namespaced::<Lease>(&namespace);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = manager
            .apply(&api, &lease(&identity, MicroTime(clock::now())))
            .await
        {
            warn!(
                error = format_args!("{error:#}"),
                "the heartbeat could not be written"
            );
        }
    }
}

fn lease(identity: &str, now: MicroTime) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(EXTENSION_HEARTBEAT.into()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(identity.to_owned()),
            lease_duration_seconds: i32::try_from(EVERY.as_secs()).ok(),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }),
    }
}
