//! The witnesses of a check: the record at the zone's authorities, and the process beside etcd.

use std::sync::Arc;

use api::extensions::Cluster as ClusterObject;
use futures::future::BoxFuture;
use ownership::{Loss, Report};
use runtime::{Cluster, Result, Seed};
use tokio::sync::watch::Receiver;

use crate::{KnownBy, OwnerClaim, Sidecar, URL};

/// A check that has begun. The check continues while the caller polls `run`; dropping `run` ends the right.
pub struct Begun {
    /// The present knowledge.
    pub reports: Receiver<Report>,
    /// The check.
    pub run: BoxFuture<'static, Loss>,
}

/// Asks the witnesses. Tests replace this implementation with a fake.
pub trait Ask: Send + Sync {
    /// The claim to check for a Cluster's shoot; `None` where the seed does not check owners.
    ///
    /// # Errors
    /// The seed checks owners, and a required field is missing or invalid.
    fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>>;

    /// Begins a check for the shoot of that namespace.
    ///
    /// # Errors
    /// The claim or the terms are invalid.
    fn begin(&self, wanted: &OwnerClaim, seed: &Seed, namespace: &str) -> Result<Begun>;
}

/// Asks the real witnesses of a seed.
pub struct Asking {
    /// URL of the processes beside etcd; `{namespace}` stands for the shoot's namespace.
    pub sidecars: String,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            sidecars: URL.to_owned(),
        }
    }
}

impl Ask for Asking {
    /// # Errors
    /// The seed checks owners, and a required field is missing or invalid.
    fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>> {
        cluster.map_or(Ok(None), OwnerClaim::from_cluster)
    }

    fn begin(&self, wanted: &OwnerClaim, seed: &Seed, namespace: &str) -> Result<Begun> {
        let watch = wanted.watch(Arc::new(Sidecar {
            url: self.sidecars.replace("{namespace}", namespace),
            known_by: KnownBy::Secret {
                seed: Box::new(seed.clone()),
                namespace: namespace.to_owned(),
            },
            permit: seed.permit().clone(),
        }))?;
        Ok(Begun {
            reports: watch.reports(),
            run: Box::pin(watch.run()),
        })
    }
}
