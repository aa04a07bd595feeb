//! Renews the seed's Lease in the garden: the proof that this gardenlet reaches both the garden and its seed.

use std::{sync::Arc, time::Duration};

use api::{constants::SEED_LEASE_NAMESPACE, gardencore::Seed};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference},
};
use kube::{Api, Resource, ResourceExt};
use runtime::{Error, Result, client::Cluster, clock, error::Explain as _};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::{Context, MANAGER};

/// Pause between renewals. Gardener renews every 2 s. That is twenty writes per seed to the garden's etcd
/// within the 40 s after which a seed counts as silent. Four renewals within the 40 s survive three lost
/// requests at a fifth of the load.
pub const RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// After this time without renewal the gardenlet is not ready. Equal to the monitor period of the garden.
pub const LEASE_DURATION: Duration = Duration::from_secs(40);
/// Timeout of a renewal. Shorter than the interval, so that renewals do not pile up.
const PATIENCE: Duration = Duration::from_secs(8);

/// Renews the Lease until shutdown. A failed renewal is logged and repeated at the next tick. The garden
/// decides about the consequences of a silent seed.
pub async fn renew(context: Arc<Context>) {
    context.heartbeat.begin();
    let mut ticks = interval(RENEW_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = context.shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let outcome = timeout(PATIENCE, renew_once(&context)).await.unwrap_or_else(|_| {
            Err(Error::transient(format!(
                "the garden and the seed did not answer within {PATIENCE:?}"
            )))
        });
        match outcome {
            Ok(()) => context.heartbeat.beat(),
            Err(error) => tracing::warn!(
                error = format_args!("{error:#}"),
                "the seed's Lease was not renewed"
            ),
        }
    }
}

/// A gardenlet that cannot reach its seed must not report the seed as healthy (R17-02).
async fn renew_once(context: &Context) -> Result<()> {
    context
        .seed
        .client()
        .apiserver_version()
        .await
        .context("the seed's API does not answer")?;
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let Some(seed) = seeds
        .get_opt(&context.seed_name)
        .await
        .context("the Seed could not be read")?
    else {
        return Err(Error::transient(format!(
            "Seed {} is gone from the garden: restart the gardenlet to register it again",
            context.seed_name
        )));
    };
    let leases: Api<Lease> = context.garden.namespaced(SEED_LEASE_NAMESPACE);
    MANAGER.apply(&leases, &lease(&seed)).await.map(|_| ())
}

fn lease(seed: &Seed) -> Lease {
    let name = seed.name_any();
    Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(SEED_LEASE_NAMESPACE.to_owned()),
            owner_references: Some(vec![OwnerReference {
                api_version: Seed::api_version(&()).into_owned(),
                kind: Seed::kind(&()).into_owned(),
                name: name.clone(),
                uid: seed.uid().unwrap_or_default(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            renew_time: Some(MicroTime(clock::now())),
            ..LeaseSpec::default()
        }),
    }
}
