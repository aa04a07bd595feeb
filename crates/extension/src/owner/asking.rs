//! Who is asked whose a shoot is: the record at its authorities, and the process beside etcd.

use std::sync::Arc;

use api::extensions::Cluster as ClusterObject;
use futures::future::BoxFuture;
use owner_checks::{KnownBy, OwnerClaim, Sidecar, URL};
use ownership::{Loss, Report};
use runtime::{Cluster, Result, Seed};
use tokio::sync::watch::Receiver;

/// A check that has begun: it goes on while `run` is polled, and its right ends when that is dropped.
pub(crate) struct Begun {
    pub reports: Receiver<Report>,
    pub run: BoxFuture<'static, Loss>,
}

/// Asks. Another one only where a test plays the world.
pub(crate) trait Ask: Send + Sync {
    /// What is to be asked for the shoot of a Cluster; nothing where its seed does not check owners.
    fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>>;

    /// Begins to ask, for the shoot of that namespace.
    fn begin(&self, wanted: &OwnerClaim, seed: &Seed, namespace: &str) -> Result<Begun>;
}

/// As it is done in a seed.
pub(super) struct Asking {
    /// Where the processes beside etcd answer, by `{namespace}`.
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
    fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>> {
        cluster.map_or(Ok(None), OwnerClaim::of)
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
