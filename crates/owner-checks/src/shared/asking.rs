//! Who is asked whose a shoot is: the record at its authorities, and the process beside etcd.

use std::sync::Arc;

use api::extensions::Cluster as ClusterObject;
use futures::future::BoxFuture;
use ownership::{Loss, Report};
use runtime::{Cluster, Result, Seed};
use tokio::sync::watch::Receiver;

use crate::{KnownBy, OwnerClaim, Sidecar, URL};

/// A check that has begun: it goes on while `run` is polled, and its right ends when that is dropped.
pub struct Begun {
    /// What is known at each moment.
    pub reports: Receiver<Report>,
    /// The check.
    pub run: BoxFuture<'static, Loss>,
}

/// Asks. Another one only where a test plays the world.
pub trait Ask: Send + Sync {
    /// What is to be asked for the shoot of a Cluster; nothing where its seed does not check owners.
    ///
    /// # Errors
    /// It does, and something that is needed is missing or wrong.
    fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>>;

    /// Begins to ask, for the shoot of that namespace.
    ///
    /// # Errors
    /// It cannot be asked like that.
    fn begin(&self, wanted: &OwnerClaim, seed: &Seed, namespace: &str) -> Result<Begun>;
}

/// As it is done in a seed.
pub struct Asking {
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
    ///
    /// # Errors
    /// It does, and something that is needed is missing or wrong.
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
