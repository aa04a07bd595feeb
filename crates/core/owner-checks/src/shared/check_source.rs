//! The witnesses of a check: the record at the zone's authorities, and the process beside etcd.

use std::sync::Arc;

use api::extensions::Cluster as ClusterObject;
use futures::future::BoxFuture;
use ownership::{OwnershipLoss, Report};
use runtime::{
    Result,
    client::{Cluster, Seed},
};
use tokio::sync::watch::Receiver;

use crate::{OwnerClaim, Sidecar, SidecarTrust, URL};

/// A check that has begun. The check continues while the caller polls `run`; dropping `run` ends the right.
pub struct RunningCheck {
    /// The newest result of the check.
    pub reports: Receiver<Report>,
    /// The check.
    pub run: BoxFuture<'static, OwnershipLoss>,
}

/// Begins checks. Tests replace the implementation that asks the real witnesses.
pub trait CheckSource: Send + Sync {
    /// The claim to check for a Cluster's shoot; `None` where the seed does not check owners.
    ///
    /// # Errors
    /// The seed checks owners, and a required field is missing or invalid.
    fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>>;

    /// Begins a check for the shoot of that namespace.
    ///
    /// # Errors
    /// The claim or the terms are invalid.
    fn begin(&self, wanted: &OwnerClaim, seed: &Seed, namespace: &str) -> Result<RunningCheck>;
}

/// Checks that ask the owner record, and the process beside etcd.
pub struct WitnessCheckSource {
    /// URL of the processes beside etcd; `{namespace}` stands for the shoot's namespace.
    pub sidecars: String,
}

impl Default for WitnessCheckSource {
    fn default() -> Self {
        Self {
            sidecars: URL.to_owned(),
        }
    }
}

impl CheckSource for WitnessCheckSource {
    /// # Errors
    /// The seed checks owners, and a required field is missing or invalid.
    fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>> {
        cluster.map_or(Ok(None), OwnerClaim::from_cluster)
    }

    fn begin(&self, wanted: &OwnerClaim, seed: &Seed, namespace: &str) -> Result<RunningCheck> {
        let watch = wanted.watch(Arc::new(Sidecar {
            url: self.sidecars.replace("{namespace}", namespace),
            trust: SidecarTrust::Secret {
                seed: Box::new(seed.clone()),
                namespace: namespace.to_owned(),
            },
            permit: seed.permit().clone(),
        }))?;
        Ok(RunningCheck {
            reports: watch.reports(),
            run: Box::pin(watch.run()),
        })
    }
}
